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

		// A log that was read comes back as something else.
		read := false

		f.each(func(r *fact) { read = read || r.path == e.path }, effect.Read)

		return show(e.path), e.class.Has(place.Log) && read
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
		match: matching(disables, effect.Exec, effect.Write, effect.Delete),
	},
}

var protections = []string{
	"ufw", "firewalld", "iptables", "nftables", "apparmor", "auditd", "fail2ban", "clamav", "rsyslog", "syslog", "systemd-journald", "cbdaemon", "falcon-sensor", "crowdsec", "ossec",
	"wazuh", "mdatp", "selinux", "osqueryd", "falco", "sysmon", "aide", "snort", "suricata", "tripwire", "cbagentd", "ds_agent", "xagt", "sophos", "esets", "kesl", "sentinelone", "chronyd-audit", "clamd", "freshclam",
	"osquery", "crowdstrike", "sysdig", "tetragon", "rkhunter", "chkrootkit", "elastic-agent", "auditbeat", "velociraptor", "lacework", "datadog-agent-security", "traced", "mcafee", "nessus",
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

// protectionDirs are where protections are installed.
var protectionDirs = []string{"/opt/", "/etc/", "/usr/lib/", "/var/lib/", "/var/ossec"}

// auditTrails are commands that end the record a cloud keeps of what is done.
var auditTrails = map[string][]string{
	"aws": {
		"cloudtrail stop-logging", "cloudtrail delete-trail", "cloudtrail put-event-selectors", "guardduty delete-detector", "guardduty disassociate", "configservice stop-configuration-recorder",
		"configservice delete-configuration-recorder", "securityhub disable-security-hub", "logs delete-log-group", "ec2 delete-flow-logs", "access-analyzer delete-analyzer",
	},
	"gcloud": {"logging sinks delete", "logging sinks update --disabled", "logging buckets delete"},
	"az":     {"monitor diagnostic-settings delete", "monitor activity-log alert delete", "security pricing create --tier free"},
}

func disables(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Delete {
		for _, d := range protectionDirs {
			if rest, ok := strings.CutPrefix(e.path, d); ok && protection(strings.ToLower(rest)) && !strings.Contains(rest, "/log") && rest != "fail2ban/jail.local" {
				return show(e.path), e.Flags.Has(effect.FlagRecursive) && !strings.Contains(rest, "/")
			}
		}

		return "", false
	}

	if e.Kind == effect.Exec {
		if d, ok := deletesBy(auditTrails)(f, e); ok {
			return d, true
		}
	}

	if e.Kind == effect.Write {
		switch {
		case e.Via == "sed -i" && (strings.Contains(e.path, "/journald.conf") || strings.Contains(e.path, "/selinux/config") || strings.Contains(e.path, "/audit/") || strings.Contains(e.path, "/rsyslog") || strings.Contains(e.path, "/syslog")):
			return show(e.path), true
		case e.path == "/etc/selinux/config" || e.path == "/etc/sysconfig/selinux":
			return show(e.path), strings.Contains(e.Data.Text, "=disabled") || strings.Contains(e.Data.Text, "=permissive")
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
		return show(n + " -F"), (e.arg("-F", "--flush", "-X") && (e.operand(0) == "" || oneOf(e.operand(0), "nat", "filter", "mangle")) || e.arg("-P", "--policy") && e.arg("ACCEPT") && !e.arg("OUTPUT")) && !f.rebuildsFirewall()
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
	case "firewall-cmd":
		return show(n), e.argHas("--set-default-zone=trusted", "--panic-off") || e.arg("--set-default-zone") && e.arg("trusted")
	case "aa-disable", "aa-complain", "apparmor_parser":
		return show(n), n != "apparmor_parser" || e.arg("-R")
	case "killall", "pkill":
		for _, a := range e.Args {
			if len(a.Text) > 3 && protection(a.Text) {
				return show(n + " " + a.Text), true
			}
		}
	case "apt", "apt-get", "yum", "dnf", "rpm", "dpkg", "apk", "zypper", "pacman":
		for _, a := range e.Args {
			if protection(a.Text) && e.arg("remove", "purge", "erase", "-e", "autoremove", "del", "rm", "-P", "-r", "-R", "-Rns") {
				return show(n + " … " + a.Text), true
			}
		}
	}

	return "", false
}

// rebuildsFirewall says whether rules are cleared only to be written anew: what
// comes in is dropped by default, and what is needed is let in.
func (f *facts) rebuildsFirewall() bool {
	drops, accepts := false, false

	f.each(func(e *fact) {
		if !oneOf(e.name(), "iptables", "ip6tables", "iptables-legacy", "iptables-nft") {
			return
		}

		drops = drops || e.arg("INPUT") && e.arg("DROP", "REJECT") && e.arg("-P", "--policy", "-A")
		accepts = accepts || e.arg("-A", "-I", "--append", "--insert") && e.arg("ACCEPT")
	}, effect.Exec)

	return drops && accepts
}
