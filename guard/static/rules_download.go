package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

var downloadRules = []row{
	{
		Rule: Rule{
			ID: "download-execute", Category: "download_execute", Severity: High, CWE: "CWE-494",
			Seen: "it downloads code from {} and runs it unseen.", Fine: "Downloading it, reading it, and then running it in a step of its own, or installing a package, would be fine.",
		},
		match: finding(downloadExecute, effect.Eval, effect.Write),
	},
	{
		Rule: Rule{
			ID: "hidden-powershell", Category: "download_execute", Severity: High, CWE: "CWE-494",
			Seen: "it runs PowerShell out of sight, or with code that it decodes or downloads ({}).", Fine: "A PowerShell script written out plainly would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if !oneOf(strings.ToLower(e.name()), "powershell", "pwsh", "powershell_ise") {
				return "", false
			}

			for i := range e.Args {
				a := strings.ToLower(e.Args[i].Text)
				for _, mark := range []string{"hidden", "-enc", "-encodedcommand", "downloadstring", "downloadfile", "invoke-expression", "iex(", "iex ", "frombase64string"} {
					if strings.HasPrefix(a, mark) || !strings.HasPrefix(mark, "-") && strings.Contains(a, mark) {
						return show(mark), true
					}
				}
			}

			return "", false
		}, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "package-from-anywhere", Category: "download_execute", Severity: High, CWE: "CWE-494",
			Seen: "it installs code from {}, which anybody on the way can replace.", Fine: "Installing from the registry, or by https from a named host, would be fine.",
		},
		match: matching(packageFromAnywhere, effect.Install),
	},
}

func downloadExecute(f *facts) []hit {
	out := matching(func(f *facts, e *fact) (string, bool) {
		if !e.Data.Has(effect.TaintDownload) || e.Lang == "yaml" || e.Lang == "json" {
			return "", false
		}

		return untrustedOrigin(e.Data.Origins())
	}, effect.Eval).find(f)

	out = append(out, storedAndRun(f)...)

	return append(out, stages(f)...)
}

// stages are several scripts fetched into a place anybody can write: the
// loading of an attack in steps.
func stages(f *facts) []hit {
	var last *fact

	n := 0

	f.each(func(e *fact) {
		if !e.Data.Has(effect.TaintDownload) || !e.class.Has(place.Temp) {
			return
		}

		if lang := byPath(e.path); lang != "bash" && lang != "python" && lang != "perl" {
			return
		}

		if _, bad := untrustedOrigin(e.Data.Origins()); bad {
			n++
			last = e
		}
	}, effect.Write)

	if n < 3 {
		return nil
	}

	return []hit{{last.Span, show(last.Data.Origin)}}
}

// untrustedOrigin is the first source that is no installer of good name; no
// source at all is not trusted.
func untrustedOrigin(origins []string) (string, bool) {
	seen := false

	for _, o := range origins {
		if !strings.Contains(o, "://") {
			continue
		}

		seen = true

		if !trustedCode(o) {
			return show(o), true
		}
	}

	return "\x00the network", !seen
}

// releasePaths are places where projects publish what people run.
var releasePaths = []string{
	"github.com/*/releases/", "dl.k8s.io/", "storage.googleapis.com/kubernetes-release/", "releases.hashicorp.com/", "go.dev/dl/", "golang.org/dl/", "nodejs.org/dist/",
	"get.helm.sh/", "dl.google.com/", "download.java.net/", "repo.anaconda.com/", "s3.amazonaws.com/session-manager-downloads/", "awscli.amazonaws.com/", "packages.cloud.google.com/",
	"downloads.apache.org/", "archive.apache.org/dist/", "www.python.org/ftp/", "julialang-s3.julialang.org/", "static.rust-lang.org/", "download.pytorch.org/", "registry.npmjs.org/",
	"files.pythonhosted.org/", "objects.githubusercontent.com/", "dl.min.io/", "dl.static-php.net/", "www.apachefriends.org/", "chromedriver.storage.googleapis.com/",
}

// trustedCode says whether people are told by the project itself to run what
// an URL serves.
func trustedCode(u string) bool {
	c := place.ClassifyHost(u)
	if c.Has(place.Loopback) {
		return true
	}

	if strings.HasPrefix(u, "http://") && c.Has(place.Installer) && !strings.Contains(u, effect.HoleText) {
		// Without TLS anybody on the way decides what runs; curl is often given a
		// bare name that redirects to https.
		return true
	}

	if c.Has(place.Installer) {
		return true
	}

	rest := u[strings.Index(u, "://")+3:]

	for _, p := range releasePaths {
		before, after, wild := strings.Cut(p, "*")
		if !wild && strings.HasPrefix(rest, p) || wild && strings.HasPrefix(rest, before) && strings.Contains(rest, after) {
			return strings.HasPrefix(u, "https://")
		}
	}

	return false
}

// storedAndRun finds files written from a download and then run, in languages
// whose front ends do not follow files themselves.
func storedAndRun(f *facts) []hit {
	stored := map[string]string{}
	unnamed := ""

	f.each(func(e *fact) {
		if !e.Data.Has(effect.TaintDownload) {
			return
		}

		if from, bad := untrustedOrigin(e.Data.Origins()); bad {
			if !e.Target.IsConst() {
				unnamed = from
			}

			if k := e.Target.Key(); k != "" && len(stored) < 64 {
				stored[k] = from
				stored[e.path] = from
			}
		}
	}, effect.Write)

	if len(stored) == 0 && unnamed == "" {
		return nil
	}

	var out []hit

	lookup := func(k string) (string, bool) {
		if k == "" {
			return "", false
		}

		from, ok := stored[k]
		if !ok {
			from, ok = stored[place.Resolve(k, f.a.cwd)]
		}

		return from, ok
	}

	f.each(func(e *fact) {
		// Two unknown paths of one snippet are taken for the same.
		if e.Kind == effect.Mode && unnamed != "" && !e.Target.IsConst() && makesExecutable(e) {
			out = append(out, hit{e.Span, unnamed})

			return
		}

		if from, ok := lookup(e.Target.Key()); ok && (e.Kind != effect.Mode || makesExecutable(e)) {
			out = append(out, hit{e.Span, from})

			return
		}

		if e.Kind == effect.Mode {
			return
		}

		n := e.name()
		if packageTools[n] {
			for i := range e.Args {
				if from, ok := lookup(e.Args[i].Key()); ok {
					out = append(out, hit{e.Span, from})

					return
				}
			}

			return
		}

		if !shells[n] && !strings.HasPrefix(n, "python") && !oneOf(n, "perl", "ruby", "php", "node", "java", "Rscript", "source", "deno", "bun", "start", "open", "xdg-open", "cmd", "cmd.exe", "rundll32", "powershell") {
			return
		}

		for i := range e.Args {
			if strings.HasPrefix(e.Args[i].Text, "-") {
				continue
			}

			if from, ok := lookup(e.Args[i].Key()); ok {
				out = append(out, hit{e.Span, from})
			}

			return
		}
	}, effect.Exec, effect.Eval, effect.Mode, effect.Load)

	return out
}

// packageTools install packages from files, whose scripts then run.
var packageTools = setOf("dpkg", "apt", "apt-get", "gdebi", "rpm", "yum", "dnf", "zypper", "apk", "pacman", "snap", "flatpak", "installer", "msiexec", "pip", "pip3", "pipx", "npm", "gem", "brew")

// makesExecutable says whether a change of mode lets a file run.
func makesExecutable(e *fact) bool {
	if e.Data.IsUnknown() {
		return executable(e.Data.Ref)
	}

	return executable(e.Data.Text)
}

// executable says whether a mode lets a file run.
func executable(mode string) bool {
	mode = strings.TrimPrefix(mode, "0o")
	if strings.Trim(mode, "01234567") == "" && mode != "" {
		return strings.IndexByte("1357", mode[len(mode)-1]) >= 0 || len(mode) >= 3 && strings.IndexByte("1357", mode[len(mode)-3]) >= 0
	}

	return strings.Contains(mode, "+x") || strings.Contains(mode, "+rx") || strings.Contains(mode, "=rwx") || strings.Contains(mode, "X") || strings.Contains(mode, "EXEC")
}

// packageFromAnywhere is code that an installer runs from an address without
// a name or without protection on the way.
func packageFromAnywhere(f *facts, e *fact) (string, bool) {
	t := e.Target.Text
	t = strings.TrimPrefix(strings.TrimPrefix(t, "git+"), "svn+")

	if !strings.Contains(t, "://") {
		return "", false
	}

	c := place.ClassifyHost(t)

	return show(t), !c.Has(place.Loopback|place.Internal|place.Registry) && (strings.HasPrefix(t, "http://") || c.Has(place.Literal))
}
