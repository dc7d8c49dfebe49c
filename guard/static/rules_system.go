package static

import (
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
		match: matching(persistsStartup, effect.Write, effect.Move, effect.Link, effect.Schedule, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "persist-profile", Category: "persistence", Severity: High, CWE: "CWE-506",
			Seen: "it makes {} run a program each time somebody logs in or starts a tool.", Fine: "Setting PATH, variables or harmless aliases there would be fine.",
		},
		match: matching(persistsProfile, effect.Write),
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
		match: matching(changesAccounts, effect.Write, effect.Move, effect.Exec, effect.Link),
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

func changesAccounts(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Exec {
		return accountCommand(e)
	}

	if !e.class.Has(place.AuthFile) {
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

var privilegeRules = []row{
	{
		Rule: Rule{
			ID: "setuid-program", Category: "privilege_escalation", Severity: High, CWE: "CWE-250",
			Seen: "it makes {} run with another user's rights.", Fine: "`chmod +x` would be fine.",
		},
		match: matching(setsUID, effect.Mode),
	},
	{
		Rule: Rule{
			ID: "become-root", Category: "privilege_escalation", Severity: Medium, CWE: "CWE-250",
			Seen: "it takes another user's rights ({}).", Fine: "Working as the user you are would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Target.Text), oneOf(e.Target.Text, "setuid", "seteuid", "setreuid", "setresuid", "setgid", "capset") && (e.Data.Text == "0" || e.Target.Text == "capset")
		}, effect.Priv),
	},
	{
		Rule: Rule{
			ID: "search-setuid", Category: "privilege_escalation", Severity: Medium, CWE: "CWE-250",
			Seen: "it searches the system for programs that give other rights ({}).", Fine: "Looking at the modes of your own files would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if e.name() != "find" {
				return "", false
			}

			return show("find -perm"), e.argHas("-4000", "/4000", "-2000", "/6000", "-6000", "u=s", "+s", "-04000") && e.argHas("/")
		}, effect.Exec),
	},
}

func setsUID(f *facts, e *fact) (string, bool) {
	mode := strings.TrimPrefix(e.Data.Text, "0o")

	switch e.Via {
	case "chown", "chgrp", "setfacl", "chattr":
		return "", false
	case "setcap":
		return show(e.path), strings.Contains(mode, "cap_setuid") || strings.Contains(mode, "cap_sys_admin") || strings.Contains(mode, "cap_dac") || strings.Contains(mode, "cap_sys_ptrace")
	}

	if mode == "" {
		return "", false
	}

	if strings.Trim(mode, "01234567") == "" {
		mode = strings.TrimLeft(mode, "0")

		return show(e.path), len(mode) == 4 && mode[0]&4 != 0
	}

	for part := range strings.SplitSeq(mode, ",") {
		i := strings.IndexAny(part, "+=")
		if i >= 0 && strings.Contains(part[i:], "s") && !strings.HasPrefix(part, "g") && !strings.HasPrefix(part, "o") {
			return show(e.path), true
		}
	}

	return "", false
}

var containerRules = []row{
	{
		Rule: Rule{
			ID: "container-escape", Category: "container_escape", Severity: Critical, CWE: "CWE-693",
			Seen: "it reaches for the machine around the sandbox ({}).", Fine: "Working inside the sandbox would be fine.",
		},
		match: matching(escapes, effect.Read, effect.Write, effect.Exec, effect.Connect, effect.Receive, effect.Send, effect.Priv, effect.Link),
	},
}

func escapes(f *facts, e *fact) (string, bool) {
	switch e.Kind {
	case effect.Write:
		return show(e.path), e.class.Has(place.HostEscape)
	case effect.Read, effect.Link:
		return show(e.path), strings.HasPrefix(e.path, "/proc/1/root") || strings.HasPrefix(e.path, "/proc/1/cwd")
	case effect.Connect, effect.Receive, effect.Send:
		return show(e.Target.Text), strings.Contains(e.Target.Text, "docker.sock") || strings.Contains(e.Target.Text, "containerd.sock")
	case effect.Priv:
		return show(e.Target.Text), e.Target.Text == "setns"
	}

	switch n := e.name(); n {
	case "docker", "podman", "nerdctl":
		if !e.arg("run", "create", "exec") {
			return "", false
		}

		if e.arg("--privileged") && e.arg("--pid=host", "--ipc=host", "--userns=host") || e.argHas("SYS_ADMIN", "SYS_MODULE") && e.arg("--cap-add") || e.argHas("docker.sock:") {
			return show(n + " run"), true
		}

		return show(n + " run -v /:"), mountsHost(e)
	case "nsenter":
		return show("nsenter"), e.arg("1", "-t1", "--target=1") && e.argHas("-t", "--target", "1")
	case "curl", "wget", "socat", "nc":
		return show("docker.sock"), e.argHas("docker.sock", "containerd.sock")
	case "mount":
		for _, a := range e.Args {
			if place.IsBlockDevice(a.Text) && strings.HasPrefix(a.Text, "/dev/dm-") {
				return show(a.Text), true
			}
		}

		return show("mount cgroup"), e.arg("cgroup") && e.argHas("memory", "rdma")
	case "ls", "stat", "chroot", "cat", "find", "cp":
		return show("/proc/1/root"), e.argHas("/proc/1/root", "/proc/1/cwd")
	case "debugfs":
		return show("debugfs"), e.argHas("/dev/")
	case "unshare":
		return "", false
	}

	return "", false
}

func mountsHost(e *fact) bool {
	for i, a := range e.Args {
		t := a.Text
		if i > 0 && (e.Args[i-1].Text == "-v" || e.Args[i-1].Text == "--volume") && strings.HasPrefix(t, "/:") {
			return true
		}

		if strings.HasPrefix(t, "-v/:") || strings.HasPrefix(t, "--volume=/:") || strings.Contains(t, "src=/,") || strings.Contains(t, "source=/,") {
			return true
		}
	}

	return false
}

var logRules = []row{
	{
		Rule: Rule{
			ID: "tamper-logs", Category: "log_tampering", Severity: High, CWE: "CWE-117",
			Seen: "it removes or empties {}, a log of what happened.", Fine: "Cleaning logs of your own program would be fine.",
		},
		match: matching(tampersLogs, effect.Delete, effect.Write, effect.Link, effect.Move, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "hide-history", Category: "log_tampering", Severity: High, CWE: "CWE-778",
			Seen: "it stops the shell from recording what is done ({}).", Fine: "Nothing needs the history switched off.",
		},
		match: matching(hidesHistory, effect.Exec, effect.SetEnv, effect.Call),
	},
}

func tampersLogs(f *facts, e *fact) (string, bool) {
	switch e.Kind {
	case effect.Exec:
		switch e.name() {
		case "journalctl":
			for _, a := range e.Args {
				if v, ok := strings.CutPrefix(a.Text, "--vacuum-"); ok {
					_, n, _ := strings.Cut(v, "=")

					return show("journalctl " + a.Text), strings.Trim(n, "0smhdKMGTiB") == "" || n == "1s" || n == "1"
				}
			}
		case "wevtutil", "auditctl":
			return show(e.name()), e.arg("cl", "-D")
		}

		return "", false
	case effect.Link:
		return show(e.path), e.class.Has(place.Log) && strings.HasPrefix(e.Data.Text, "/dev/null")
	case effect.Move:
		if e.Flags.Has(effect.FlagCopy) {
			return show(e.path), e.class.Has(place.Log) && len(e.Args) > 0 && e.Args[0].Text == "/dev/null"
		}

		return "", false
	}

	if !e.class.Has(place.Log) {
		return "", false
	}

	if e.Kind == effect.Write {
		if e.Flags.Has(effect.FlagAppend) && e.Via != "sed -i" || len(strings.TrimSpace(e.Data.Text)) > 2 && e.Data.IsConst() && e.Via != "sed -i" {
			return "", false
		}
	}

	return show(e.path), true
}

func hidesHistory(f *facts, e *fact) (string, bool) {
	switch e.Kind {
	case effect.Exec:
		return show("history -c"), e.name() == "history" && e.arg("-c", "-cw", "-wc", "-d")
	case effect.Call:
		return show(e.Target.Text), e.Target.Text == "set +o history"
	}

	switch e.Target.Text {
	case "HISTFILE":
		return show("HISTFILE"), e.Data.IsEmpty() || e.Data.Text == "/dev/null"
	case "HISTSIZE", "HISTFILESIZE":
		return show(e.Target.Text), e.Data.Text == "0"
	}

	return "", false
}

var securityRules = []row{
	{
		Rule: Rule{
			ID: "disable-security", Category: "disable_security", Severity: High, CWE: "CWE-693",
			Seen: "it switches off a protection ({}).", Fine: "Asking for its status would be fine.",
		},
		match: matching(disables, effect.Exec, effect.Write),
	},
}

var protections = []string{
	"ufw", "firewalld", "iptables", "nftables", "apparmor", "auditd", "fail2ban", "clamav", "rsyslog", "syslog", "systemd-journald", "cbdaemon", "falcon-sensor", "crowdsec", "ossec",
	"wazuh", "mdatp", "selinux", "osqueryd", "falco", "sysmon", "aide", "snort", "suricata", "tripwire", "cbagentd", "ds_agent", "xagt", "sophos", "esets", "kesl", "sentinelone", "chronyd-audit", "clamd", "freshclam",
}

func protection(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".service"), ".socket")
	for _, p := range protections {
		if strings.HasPrefix(name, p) {
			return true
		}
	}

	return false
}

func disables(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Write {
		switch {
		case e.Via == "sed -i" && (strings.Contains(e.path, "/journald.conf") || strings.Contains(e.path, "/selinux/config") || strings.Contains(e.path, "/audit/") || strings.Contains(e.path, "/rsyslog") || strings.Contains(e.path, "/syslog")):
			return show(e.path), true
		case e.path == "/proc/sys/kernel/randomize_va_space", e.path == "/proc/sys/kernel/yama/ptrace_scope", e.path == "/proc/sys/kernel/kptr_restrict", e.path == "/sys/fs/selinux/enforce", e.path == "/selinux/enforce":
			return show(e.path), strings.HasPrefix(strings.TrimSpace(e.Data.Text), "0")
		}

		return "", false
	}

	switch n := e.name(); n {
	case "setenforce":
		return show("setenforce 0"), e.arg("0", "Permissive", "permissive")
	case "ufw":
		return show("ufw " + e.operand(0)), e.arg("disable", "reset")
	case "iptables", "ip6tables", "iptables-legacy", "iptables-nft":
		return show(n + " -F"), e.arg("-F", "--flush", "-X") && e.operand(0) == "" || e.arg("-P", "--policy") && e.arg("ACCEPT")
	case "nft":
		return show("nft flush"), e.arg("flush") && e.arg("ruleset")
	case "systemctl", "service", "chkconfig", "rc-service", "update-rc.d", "initctl", "launchctl", "sv":
		for _, a := range e.Args {
			if protection(a.Text) && e.arg("stop", "disable", "mask", "kill", "off", "remove", "unload", "down") {
				return show(n + " … " + a.Text), true
			}
		}
	case "sysctl":
		return show("sysctl"), e.argHas("randomize_va_space=0", "kernel.yama.ptrace_scope=0", "dmesg_restrict=0") && !e.arg("-n")
	case "mdatp":
		return show(n), e.argHas("disabled", "false")
	case "auditctl":
		return show(n), e.arg("-e", "-e0") && e.arg("0") || e.arg("-e0")
	case "aa-teardown", "aa-disable", "apparmor_parser":
		return show(n), n != "apparmor_parser" || e.arg("-R")
	case "killall", "pkill":
		for _, a := range e.Args {
			if len(a.Text) > 3 && protection(a.Text) {
				return show(n + " " + a.Text), true
			}
		}
	case "apt", "apt-get", "yum", "dnf", "rpm":
		for _, a := range e.Args {
			if protection(a.Text) && e.arg("remove", "purge", "erase", "-e", "autoremove") {
				return show(n + " … " + a.Text), true
			}
		}
	}

	return "", false
}
