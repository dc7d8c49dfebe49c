package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

var shellRules = []row{
	{
		Rule: Rule{
			ID: "reverse-shell", Category: "reverse_shell", Severity: Critical, CWE: "CWE-506",
			Seen: "it gives a shell to a network connection ({}).", Fine: "A server that answers requests of your own program would be fine.",
		},
		match: reverseShell,
	},
	{
		Rule: Rule{
			ID: "beacon", Category: "reverse_shell", Severity: High, CWE: "CWE-506",
			Seen: "it leaves {} running, an unknown program that reports to a bare address.", Fine: "Running your own program against a named host would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			t := e.Target.Text
			if !e.Flags.Has(effect.FlagBackground) || !strings.HasPrefix(t, "./") && !place.IsTemp(t) {
				return "", false
			}

			for i := range e.Args {
				a := e.Args[i].Text
				if c := place.ClassifyHost(a); strings.Contains(a, "://") && c.Has(place.Literal) && !c.Has(place.Loopback|place.Internal) {
					return show(t), true
				}
			}

			return "", false
		}, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "remote-command", Category: "reverse_shell", Severity: Critical, CWE: "CWE-506",
			Seen: "it runs what it reads from a network connection ({}).", Fine: "Reading data from a connection and not running it would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), e.Data.Has(effect.TaintNetwork)
		}, effect.Eval),
	},
}

func reverseShell(f *facts) []hit {
	out := matching(func(f *facts, e *fact) (string, bool) {
		if !e.Flags.Has(effect.FlagNetIO) {
			return "", false
		}

		n := e.name()

		return show(e.Via), shells[n] || e.Target.IsUnknown() || strings.HasPrefix(n, "python") || oneOf(n, "perl", "ruby", "php", "node", "script", "pty.spawn", "login")
	}, effect.Exec)(f)

	// A standard stream bound to a socket, and a shell started: the classic.
	bound := false

	f.each(func(e *fact) {
		bound = bound || e.Data.Has(effect.TaintNetwork|effect.TaintSocket)
	}, effect.Dup)

	if bound {
		f.each(func(e *fact) {
			if shells[e.name()] || e.Target.IsUnknown() {
				out = append(out, hit{e.Span, show(e.Via)})
			}
		}, effect.Exec)
	}

	return out
}

var downloadRules = []row{
	{
		Rule: Rule{
			ID: "download-execute", Category: "download_execute", Severity: High, CWE: "CWE-494",
			Seen: "it downloads code from {} and runs it unseen.", Fine: "Downloading it, reading it, and then running it in a step of its own, or installing a package, would be fine.",
		},
		match: downloadExecute,
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
	}, effect.Eval)(f)

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
		if e.Kind == effect.Mode && unnamed != "" && !e.Target.IsConst() && executable(e.Data.Text) {
			out = append(out, hit{e.Span, unnamed})

			return
		}

		if from, ok := lookup(e.Target.Key()); ok && (e.Kind != effect.Mode || executable(e.Data.Text)) {
			out = append(out, hit{e.Span, from})

			return
		}

		if e.Kind == effect.Mode {
			return
		}

		n := e.name()
		if !shells[n] && !strings.HasPrefix(n, "python") && !oneOf(n, "perl", "ruby", "php", "node", "source", "deno", "bun", "start", "open", "xdg-open", "cmd", "cmd.exe", "rundll32", "powershell") {
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
	}, effect.Exec, effect.Eval, effect.Mode)

	return out
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

var obfuscationRules = []row{
	{
		Rule: Rule{
			ID: "decode-execute", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it decodes hidden text and runs it ({}).", Fine: "The same code written out plainly would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), e.Data.Has(effect.TaintDecoded) && e.Lang != "pickle" && e.Lang != "yaml"
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "hidden-name", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it hides the name of what it runs ({}).", Fine: "Calling it by its name would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), e.Flags.Has(effect.FlagHidden)
		}, effect.Exec, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "hidden-address", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it hides where it connects to ({}).", Fine: "Writing the address plainly would be judged by where it leads.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			c := e.host

			return show(e.Target.Text), e.Target.Has(effect.TaintDecoded) && e.Target.IsConst() && strings.Contains(e.Target.Text, ".") && !c.Has(place.Loopback)
		}, effect.Connect, effect.Receive),
	},
	{
		Rule: Rule{
			ID: "native-code", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it loads machine code into memory and runs it ({}).", Fine: "Loading a library file by name would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if e.Kind == effect.Eval {
				return show(e.Via), e.Lang == "native" && e.Data.Has(effect.TaintDecoded|effect.TaintDownload|effect.TaintNetwork)
			}

			return show(e.Target.Text), oneOf(e.Target.Text, "memfd_create", "VirtualAlloc", "RtlMoveMemory", "CreateRemoteThread", "mprotect", "shellcode")
		}, effect.Native, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "unsafe-deserialise", Category: "obfuscated_execution", Severity: Medium, CWE: "CWE-502",
			Seen: "it deserialises data that may run code ({}).", Fine: "JSON, or yaml.safe_load, would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), (e.Lang == "pickle" || e.Lang == "yaml") && e.Data.Has(effect.TaintDecoded|effect.TaintDownload|effect.TaintNetwork|effect.TaintInput)
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "armed-pickle", Category: "obfuscated_execution", Severity: High, CWE: "CWE-502",
			Seen: "it deserialises an object that starts a program ({}).", Fine: "Pickles of plain data would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if e.Lang != "pickle" && e.Lang != "yaml" {
				return "", false
			}

			for _, m := range []string{"cos\nsystem", "cposix\nsystem", "posix\x94", "csubprocess\n", "cbuiltins\n", "c__builtin__\n", "!!python/object/apply", "!!python/object/new"} {
				if strings.Contains(e.Data.Text, m) {
					return show(e.Via), true
				}
			}

			return "", false
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "eval-input", Category: "obfuscated_execution", Severity: Medium, CWE: "CWE-95",
			Seen: "it runs text that comes from outside ({}).", Fine: "Parsing the text, for instance as JSON, would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Data.Taint.String()), e.Data.Has(effect.TaintInput) && e.Lang != "bash" && !e.Data.Has(effect.TaintDecoded|effect.TaintDownload|effect.TaintNetwork) && e.Lang != "pickle"
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "sandbox-escape", Category: "container_escape", Severity: High, CWE: "CWE-693",
			Seen: "it climbs out of the language's own confinement ({}).", Fine: "Calling what you need directly would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			// A plug-in registry lists the subclasses of its own class; an escape
			// reaches the classes through a value's type.
			if e.Target.Text == "subclasses" {
				chain := f.textHas(e.Span, "__class__", "__mro__", "__base", "object.__subclasses__", "__init__.__globals__", "f_builtins", "__globals__[")
				if !chain && !(f.textHas(e.Span, "f_back", "gi_frame") && f.textHas(e.Span, "f_globals", "f_builtins")) {
					return "", false
				}
			}

			return show(e.Target.Text), true
		}, effect.Escape),
	},
}

var minerRules = []row{
	{
		Rule: Rule{
			ID: "crypto-miner", Category: "crypto_miner", Severity: Critical, CWE: "CWE-400",
			Seen: "it mines cryptocurrency ({}).", Fine: "Computing that your task needs would be fine.",
		},
		match: minerMatch,
	},
}

var miners = setOf("xmrig", "xmr-stak", "xmr-stak-rx", "minerd", "cpuminer", "cpuminer-multi", "cgminer", "bfgminer", "ethminer", "lolMiner", "lolminer", "t-rex", "nbminer",
	"phoenixminer", "PhoenixMiner", "gminer", "teamredminer", "srbminer", "SRBMiner-MULTI", "ccminer", "nheqminer", "claymore", "kdevtmpfsi", "kinsing", "xmrigDaemon", "xmrig-cuda",
	"miniZ", "rigel", "bzminer", "wildrig", "cryptodredge", "randomx-miner", "xmrig-notls", "ethdcrminer64", "sgminer", "nanominer", "onezerominer", "verusminer", "hellminer")

// minerMarks are in what miners are told or say, and in nothing else.
var minerMarks = []string{"stratum+tcp://", "stratum+ssl://", "stratum2+", "stratum+tls://", "mining.subscribe", "mining.authorize", "--donate-level", "--coin=monero", "--coin monero", "cryptonight", "randomx/0", "rx/0", "--algo=rx", "coinhive.min.js", "CoinHive.Anonymous"}

func minerMatch(f *facts) []hit {
	out := matching(func(f *facts, e *fact) (string, bool) {
		n := e.name()
		if oneOf(n, "grep", "echo", "printf", "pkill", "pgrep", "killall", "rm", "man", "which", "cat", "ls", "find", "sed", "awk", "egrep", "rg", "git-grep", "apt-cache", "type") {
			return "", false
		}

		if miners[n] || miners[strings.ToLower(n)] {
			return show(n), !e.arg("--help", "--version")
		}

		for _, a := range e.Args {
			if mark := minerMark(a.Text); mark != "" && !shells[n] {
				return show(mark), true
			}

			if !program.Known(n) && (strings.Contains(a.Text, "pool") || strings.Contains(a.Text, "xmr") || strings.Contains(a.Text, "mine")) && place.ClassifyHost(a.Text).Has(place.Pool) {
				return show(a.Text), true
			}

			if oneOf(n, "docker", "podman", "nerdctl", "kubectl") && minerName(a.Text) {
				return show(a.Text), true
			}
		}

		return "", false
	}, effect.Exec)(f)

	return append(out, matching(func(f *facts, e *fact) (string, bool) {
		switch e.Kind {
		case effect.Connect:
			return show(e.Target.Text), e.host.Has(place.Pool) || strings.HasPrefix(e.Target.Text, "stratum")
		case effect.Receive, effect.Install, effect.Import:
			return show(e.Target.Text), minerName(e.Target.Text)
		case effect.Send, effect.Write, effect.Call:
			// Scripts are read as such; text is only talk.
			if e.Kind == effect.Write && !oneOf(path.Ext(e.path), ".json", ".conf", ".cfg", ".ini", ".yaml", ".yml", ".toml") {
				return "", false
			}

			if mark := minerMark(e.Data.Text); mark != "" {
				return show(mark), true
			}

			for i := range e.Args {
				if mark := minerMark(e.Args[i].Text); mark != "" {
					return show(mark), true
				}
			}
		}

		return "", false
	}, effect.Connect, effect.Receive, effect.Install, effect.Import, effect.Send, effect.Write, effect.Call)(f)...)
}

func minerMark(s string) string {
	if len(s) < 6 {
		return ""
	}

	for _, m := range minerMarks {
		if strings.Contains(s, m) {
			return m
		}
	}

	return ""
}

// minerName says whether a package, image or URL is named after a miner.
func minerName(s string) bool {
	s = strings.ToLower(s)
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '/' || r == ':' || r == '@' || r == '=' }) {
		name, _, _ := strings.Cut(part, ".")
		if miners[program.Base(name)] || strings.HasPrefix(part, "xmrig") || strings.HasPrefix(part, "coin-hive") || strings.HasPrefix(part, "coinhive") || strings.HasPrefix(part, "cryptonight") {
			return true
		}
	}

	return false
}
