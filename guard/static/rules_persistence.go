package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

var persistenceRules = []row{
	{
		Rule: Rule{
			ID: "persist-startup", Category: "persistence", Severity: High, CWE: "CWE-506",
			Seen: "it arranges that something runs later by itself ({}).", Fine: "Starting it now, in the background, would be fine.",
		},
		match: matching(outsideImages(persistsStartup), effect.Write, effect.Move, effect.Link, effect.Schedule, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "persist-profile", Category: "persistence", Severity: High, CWE: "CWE-506",
			Seen: "it makes {} run a program each time somebody logs in or starts a tool.", Fine: "Setting PATH, variables or harmless aliases there would be fine.",
		},
		match: matching(outsideImages(persistsProfile), effect.Write),
	},
	{
		Rule: Rule{
			ID: "link-profile", Category: "persistence", Severity: High, CWE: "CWE-59",
			Seen: "it gives {} another name, by which it could be changed unseen.", Fine: "Linking a file of your own to that place would be fine.",
		},
		match: matching(outsideImages(linksProfile), effect.Link),
	},
	{
		Rule: Rule{
			ID: "hijack-command", Category: "persistence", Severity: High, CWE: "CWE-426",
			Seen: "it replaces the command {} by something else.", Fine: "An alias that only adds options, such as `alias ls='ls --color'`, would be fine.",
		},
		match: matching(hijacks, effect.Call),
	},
	{
		Rule: Rule{
			ID: "change-accounts", Category: "persistence", Severity: High, CWE: "CWE-269",
			Seen: "it changes who may log in or what accounts may do ({}).", Fine: "Working as the user you are would be fine.",
		},
		match: matching(outsideImages(changesAccounts), effect.Write, effect.Move, effect.Exec, effect.Link),
	},
	{
		Rule: Rule{
			ID: "kernel-module", Category: "persistence", Severity: High, CWE: "CWE-506",
			Seen: "it loads {} into the kernel.", Fine: "Nothing in a sandbox needs a kernel module.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if !oneOf(e.name(), "insmod", "modprobe", "kextload", "bpftool") || e.arg("-r", "--help", "-n", "--show-depends", "-c", "--showconfig", "-l", "-D") || e.operand(0) == "" {
				return "", false
			}

			return show(e.operand(0)), e.name() == "insmod" || e.Flags.Has(effect.FlagRoot) && strings.Contains(e.operand(0), "/") || e.arg("-f", "--force")
		}, effect.Exec),
	},
}

func persistsStartup(f *facts, e *fact) (string, bool) {
	switch e.Kind {
	case effect.Schedule:
		if e.Target.Text == "cron entry" {
			return "", false
		}

		return show(e.Target.Text), oneOf(e.Target.Text, "cron", "at", "systemd", "rc", "launchd")
	case effect.Exec:
		if e.name() != "systemctl" || !e.arg("enable", "link") {
			return "", false
		}

		for i := range e.Args {
			if place.IsTemp(e.Args[i].Text) {
				return show(e.Args[i].Text), true
			}
		}

		return "", false
	}

	// Appending to whatever a search of the whole system finds infects it.
	if e.Kind == effect.Write && e.Target.Text == "/"+effect.HoleText && e.Target.Ref == "" && e.Flags.Has(effect.FlagLoop) {
		return show("/*"), true
	}

	if e.class.Has(place.Startup) && !(e.Kind == effect.Write && e.Flags.Has(effect.FlagTruncate) && e.Data.IsEmpty()) {
		return show(e.path), !strings.HasPrefix(e.path, "/etc/apt/apt.conf.d") && !strings.HasPrefix(e.path, "/etc/ld.so.conf.d")
	}

	return "", false
}

// persistsProfile looks at what is written to profile files: definitions are
// fine, programs that start are not.
func persistsProfile(f *facts, e *fact) (string, bool) {
	if !e.class.Has(place.SelfRunning) || e.class.Has(place.Startup|place.AuthFile) {
		return "", false
	}

	if strings.HasSuffix(e.path, ".pth") {
		return show(e.path), strings.Contains(e.Data.Text, "import ") && strings.ContainsAny(e.Data.Text, ";(")
	}

	if (e.Data.Has(effect.TaintDownload|effect.TaintNetwork) || e.Data.Has(effect.TaintDecoded) && e.Data.IsUnknown()) && !strings.Contains(e.path, ".git/hooks/") {
		return show(e.path), !onlyTrusted(e.Data.Origins())
	}

	// What the code does not show cannot be judged.
	if e.Data.IsUnknown() && e.Data.Taint&(effect.TaintFile|effect.TaintOutput) == 0 && e.Kind == effect.Write && e.Via != "sed -i" && strings.Contains(e.path, "/.") && byPath(e.path) == "bash" {
		return show(e.path), true
	}

	return show(e.path), byPath(e.path) != "python" && startsProgram(e.Data.Text)
}

// linksProfile looks for other names of files that run by themselves.
func linksProfile(f *facts, e *fact) (string, bool) {
	if e.Data.Text == "" || e.Data.IsUnknown() || e.class.Has(place.SelfRunning) {
		return "", false
	}

	// A symbolic link is read from its own folder, a hard link from where one is.
	for _, dir := range []string{f.a.cwd, path.Dir(e.path)} {
		p := place.Resolve(e.Data.Text, dir)
		if place.Classify(p).Has(place.SelfRunning) && !place.Under(p, []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"}) {
			return show(p), true
		}
	}

	return "", false
}

func onlyTrusted(origins []string) bool {
	for _, o := range origins {
		if strings.Contains(o, "://") && !trustedCode(o) {
			return false
		}
	}

	return len(origins) > 0
}

// startsProgram says whether profile text runs something from a place anybody
// can write, or in the background.
func startsProgram(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}

		first, _, _ := strings.Cut(line, " ")

		switch {
		case strings.HasPrefix(first, "/tmp/"), strings.HasPrefix(first, "/var/tmp/"), strings.HasPrefix(first, "/dev/shm/"):
			return true
		case strings.HasSuffix(line, "&") && !strings.HasSuffix(line, "&&") && !strings.HasPrefix(line, "eval"):
			return true
		case strings.Contains(line, "curl ") && strings.Contains(line, "| "), strings.Contains(line, "wget ") && strings.Contains(line, "| "):
			return true
		}

		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/tmp/.") || strings.HasPrefix(word, "/dev/shm/.") {
				return true
			}
		}
	}

	return false
}

// commandNames are commands that people type without thinking.
var commandNames = setOf("sudo", "su", "ssh", "ls", "cd", "cat", "grep", "find", "cp", "mv", "rm", "ps", "top", "git", "curl", "wget", "passwd", "login", "vi", "vim", "nano", "less",
	"python", "python3", "pip", "npm", "node", "bash", "sh", "docker", "kubectl", "apt", "apt-get", "echo", "sleep", "kill", "man", "clear", "exit", "netstat", "ss")

func hijacks(f *facts, e *fact) (string, bool) {
	if e.Target.Text != "alias" || len(e.Args) < 2 || !commandNames[e.Args[0].Text] {
		return "", false
	}

	name, text := e.Args[0].Text, e.Args[1].Text
	words := strings.Fields(text)
	if len(words) > 0 && strings.HasPrefix(words[0], "/tmp/") {
		return show(name), true
	}

	if strings.Contains(text, name) {
		return "", false
	}

	return show(name), len(words) > 0 && oneOf(words[0], "rm", "curl", "wget", "nc", "bash", "sh", "eval", "shutdown", "reboot", "dd", "kill", "killall", "chmod", "mv")
}

var accountTools = setOf("useradd", "adduser", "usermod", "chpasswd", "chsh", "passwd", "visudo", "gpasswd", "groupmod", "vipw", "pw", "newusers")

// outsideImages leaves out what a Dockerfile puts into its image: it is there
// that accounts and services of an image are made.
func outsideImages(look func(*facts, *fact) (string, bool)) func(*facts, *fact) (string, bool) {
	return func(f *facts, e *fact) (string, bool) {
		if e.Flags.Has(effect.FlagImage) {
			return "", false
		}

		return look(f, e)
	}
}

func changesAccounts(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Exec {
		return accountCommand(e)
	}

	if !e.class.Has(place.AuthFile) {
		return "", false
	}

	if strings.Contains(e.path, "/ssh/sshd_config") && hardensSSHD(e) {
		return "", false
	}

	if strings.HasSuffix(e.path, "/authorized_keys") && f.a.subject.Labels["ssh"] == "allowed" {
		return "", false
	}

	return show(e.path), e.path != "/etc/login.defs"
}

func accountCommand(e *fact) (string, bool) {
	n := e.name()
	if !accountTools[n] || len(e.Args) == 0 && n != "chpasswd" || e.arg("--help", "-h", "--version") {
		return "", false
	}

	switch n {
	case "passwd":
		if e.arg("-S", "--status", "-a", "-e", "--expire", "-x", "-n", "-w") {
			return "", false
		}

		return show("passwd " + e.operand(0)), e.arg("--stdin", "-d", "-u") && e.operand(0) != ""
	case "usermod", "gpasswd":
		return show(n), e.argHas("sudo", "wheel", "root", "admin") && !e.argHas("--shell") || e.arg("-p", "--password", "-u", "-o") && e.arg("-p", "--password", "0")
	case "useradd", "adduser":
		return show(n), e.arg("-p", "--password", "-o") || e.argHas("sudo", "wheel") || e.arg("-u", "-g") && e.arg("0")
	case "chsh":
		return show(n), oneOf(e.lastOperand(), "nobody", "root", "www-data", "daemon", "bin")
	case "chpasswd", "newusers", "vipw":
		return show(n), true
	}

	return "", false
}

func (e *fact) lastOperand() string {
	for i := len(e.Args) - 1; i >= 0; i-- {
		if !strings.HasPrefix(e.Args[i].Text, "-") {
			return e.Args[i].Text
		}
	}

	return ""
}
