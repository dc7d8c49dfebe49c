package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

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
