package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/scripting"
)

var credentialRules = []row{
	{
		Rule: Rule{
			ID: "read-credentials", Category: "credential_theft", Severity: High, CWE: "CWE-522",
			Seen: "it reads {}, which holds credentials.", Fine: "Using the tool they belong to (ssh, aws, git, docker), or reading files of your project, would be fine.",
		},
		match: matching(readsSecret, effect.Read, effect.Move, effect.Link, effect.Call),
	},
	{
		Rule: Rule{
			ID: "search-credentials", Category: "credential_theft", Severity: High, CWE: "CWE-522",
			Seen: "it searches the system for credentials ({}).", Fine: "Searching your own project would be fine.",
		},
		match: matching(searchesSecrets, effect.Exec, effect.Call),
	},
	{
		Rule: Rule{
			ID: "metadata-endpoint", Category: "credential_theft", Severity: Critical, CWE: "CWE-918",
			Seen: "it asks {}, the endpoint that hands out a cloud machine's credentials.", Fine: "Credentials that were given to the sandbox on purpose would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(place.Host(e.Target.Text)), e.host.Has(place.Metadata) && !describesMachine(e.Target.Text)
		}, effect.Connect, effect.Receive, effect.Send),
	},
	{
		Rule: Rule{
			ID: "credential-tool", Category: "credential_theft", Severity: High, CWE: "CWE-522",
			Seen: "it runs {}, a tool for stealing or guessing credentials.", Fine: "Testing your own code with test credentials would be fine.",
		},
		match: matching(credentialTool, effect.Exec, effect.Receive),
	},
	{
		Rule: Rule{
			ID: "read-account-file", Category: "sensitive_file_access", Severity: Medium, CWE: "CWE-200",
			Seen: "it reads {}, which describes accounts or keys of the system.", Fine: "`id` or `whoami` would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.path), e.class.Has(place.Private|place.AuthFile) && !e.class.Has(place.Secret) && strings.HasPrefix(e.path, "/etc/")
		}, effect.Read),
	},
}

// secretTools read secrets because that is their job.
var secretTools = setOf("ssh", "ssh-add", "ssh-keygen", "gpg", "aws", "docker", "kubectl", "git", "openssl", "sftp", "source", "grep-quiet")

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}

	return m
}

func readsSecret(f *facts, e *fact) (string, bool) {
	p, c := e.path, e.class

	switch e.Kind {
	case effect.Link:
		p = place.Resolve(e.Data.Text, f.a.cwd)
		c = place.Classify(p)
	case effect.Move:
		// A copy of a browser's store, in whatever profile, is made to be read.
		if !e.Flags.Has(effect.FlagCopy) || len(e.Args) == 0 {
			return "", false
		}

		p = e.Args[0].Text

		return show(p), place.Browser(p)
	case effect.Call:
		return "\x00a browser's saved passwords, cookies or cards", e.Target.Text == scripting.BrowserTable
	}

	// Through the file API "self" is not the caller's own process.
	if strings.HasPrefix(e.Via, "file ") && strings.HasPrefix(p, "/proc/") && strings.HasSuffix(p, "/environ") {
		return show(p), true
	}

	if e.Via == "file take" && place.HoldsSecrets(p) {
		return show(p), true
	}

	if !c.Has(place.Secret) || secretTools[e.Via] || e.Flags.Has(effect.FlagQuiet) {
		return "", false
	}

	return show(p), true
}

var searchNames = []string{
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".pem", ".ppk", ".p12", ".pfx", ".kdbx", "wallet.dat", ".gnupg", ".aws", "credentials", ".netrc", ".git-credentials",
	".pgp", ".gpg", ".key", "shadow", "*.wallet", "keystore", ".ssh", "mnemonic", "seed phrase", "private key", ".env", "*.ovpn", ".mozilla", "google-chrome", "places.sqlite", "login data", "cookies.sqlite", "logins.json", "key4.db",
}

var searchWords = []string{"password", "passwd", "secret", "mnemonic", "private key", "seed", "api_key", "apikey", "aws_access", "begin rsa", "token", "pass", "pwd"}

func searchesSecrets(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Call {
		return walksForSecrets(f, e)
	}

	switch e.name() {
	case "find", "fd", "locate", "plocate":
		wide := e.name() == "locate" || e.name() == "plocate"
		for _, a := range e.Args {
			wide = wide || wideRoot(place.Resolve(a.Text, f.a.cwd))

			if strings.HasPrefix(a.Text, "-") {
				break
			}
		}

		if !wide {
			return "", false
		}

		for i, a := range e.Args {
			isName := i > 0 && (e.Args[i-1].Text == "-name" || e.Args[i-1].Text == "-iname" || e.Args[i-1].Text == "-path" || e.Args[i-1].Text == "-regex") || e.name() != "find"
			if !isName {
				continue
			}

			for _, n := range searchNames {
				if strings.Contains(strings.ToLower(a.Text), n) && !strings.HasSuffix(a.Text, ".pub") {
					return show(a.Text), true
				}
			}
		}
	case "grep", "egrep", "rg", "fgrep", "ag", "zgrep":
		return grepsSecrets(f, e)
	}

	return "", false
}

// walksForSecrets sees code that lists the whole system or a home while it
// knows the names of key files.
func walksForSecrets(f *facts, e *fact) (string, bool) {
	if len(e.Args) == 0 || !e.Args[0].IsConst() || !wideRoot(strings.TrimSuffix(place.Resolve(e.Args[0].Text, ""), "/**")) {
		return "", false
	}

	n := 0

	for _, name := range []string{"id_rsa", "id_ed25519", "wallet.dat", ".pem", "credentials", ".kdbx", ".git-credentials", ".netrc", ".aws", "shadow", ".ssh"} {
		if strings.Contains(f.a.subject.Text, name) || strings.Contains(f.a.subject.Text, strings.ReplaceAll(name, ".", `\.`)) {
			n++
		}
	}

	return show(e.Target.Text + " " + e.Args[0].Text), n > 1
}

// wideRoot says whether a search there goes beyond a project.
func wideRoot(p string) bool {
	switch p {
	case "/", "/home", "/root", "/etc", "/opt", "/var", "/srv", "/usr", place.Home, "/home/*", "/Users":
		return true
	}

	return false
}

func grepsSecrets(f *facts, e *fact) (string, bool) {
	recursive, word, wide := e.name() == "rg" || e.name() == "ag", "", false

	for _, a := range e.Args {
		t := strings.ToLower(a.Text)

		if strings.HasPrefix(t, "-") {
			recursive = recursive || t == "--recursive" || !strings.HasPrefix(t, "--") && strings.Contains(t, "r")

			continue
		}

		if word == "" {
			for _, w := range searchWords {
				if strings.Contains(t, w) {
					word = a.Text

					break
				}
			}
		}

		p := place.Resolve(a.Text, f.a.cwd)
		wide = wide || wideRoot(p) || strings.HasSuffix(p, "/.config") || strings.HasSuffix(p, "/.ssh") || strings.HasSuffix(p, "/.aws") || strings.HasSuffix(p, "/.local")
	}

	return show(word), recursive && word != "" && wide
}

var credentialTools = setOf("mimipenguin", "lazagne", "laZagne.py", "laZagne", "lazagne.py", "hydra", "medusa", "john", "hashcat", "unshadow", "linpeas.sh", "linpeas", "LinEnum.sh",
	"linenum.sh", "AutoSUID.sh", "pspy", "pspy64", "crackmapexec", "responder", "procdump", "mimipenguin.sh", "patator", "ncrack", "linux-exploit-suggester.sh",
	"traitor", "dirtycow", "sucrack", "sudo_killer.sh", "impacket-secretsdump", "secretsdump.py", "bettercap", "ettercap")

func credentialTool(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Receive {
		base := path.Base(e.Target.Text)

		return show(base), credentialTools[base]
	}

	if e.arg("--help", "-h", "--version") || len(e.Args) > 0 && strings.HasPrefix(e.Args[0].Text, "--list=") {
		return "", false
	}

	if e.name() == "sshpass" {
		// One password for one host is a way to log in; a list of them is a guess.
		return show("sshpass"), e.Flags.Has(effect.FlagLoop)
	}

	if credentialTools[e.name()] {
		return show(e.name()), true
	}

	// An interpreter running the tool's script is the tool.
	for _, a := range e.Args {
		if strings.HasPrefix(a.Text, "-") {
			continue
		}

		if base := path.Base(a.Text); (shells[e.name()] || strings.HasPrefix(e.name(), "python")) && credentialTools[base] {
			return show(base), true
		}

		break
	}

	return "", false
}

// describesMachine says whether a metadata endpoint is asked for nothing but what
// the machine is. The names are those of the providers' own documentation.
func describesMachine(url string) bool {
	url = strings.TrimRight(url, "/")

	return oneOf(url[strings.LastIndexByte(url, '/')+1:], "instance-id", "instance-type", "ami-id", "availability-zone", "availability-zone-id", "region", "local-ipv4", "local-hostname",
		"public-ipv4", "public-hostname", "mac", "zone", "machine-type", "cpu-platform", "numeric-project-id", "preempted", "spot", "tags")
}
