package static

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

var resourceRules = []row{
	{
		Rule: Rule{
			ID: "fork-bomb", Category: "resource_exhaustion", Severity: Critical, CWE: "CWE-400",
			Seen: "it starts processes without end ({}).", Fine: "A fixed number of workers would be fine.",
		},
		match: finding(forkBombs, effect.Spawn, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "fill-resource", Category: "resource_exhaustion", Severity: High, CWE: "CWE-400",
			Seen: "it fills {} without a sensible limit.", Fine: "A file or buffer of a few gigabytes at most would be fine.",
		},
		match: matching(fills, effect.Alloc, effect.Exec, effect.Write),
	},
}

func forkBombs(f *facts) []hit {
	return append(endlessStarts(f), startsItself(f)...)
}

// startsItself is a program that starts itself, in a loop or more than once.
func startsItself(f *facts) []hit {
	var out []hit

	called, run := 0, 0

	f.each(func(e *fact) {
		// What takes the place of the program is still one.
		if !e.Flags.Has(effect.FlagSelf) || e.base == "cd" || e.base == "echo" || strings.HasPrefix(e.Via, "os.exec") {
			return
		}

		// A call that starts a program is seen as the call, and as what it runs.
		n := &run
		if strings.Contains(e.Via, ".") {
			n = &called
		}

		*n++

		if *n > 1 || e.Flags.Has(effect.FlagUnbounded) || e.Flags.Has(effect.FlagLoop) && e.Flags.Has(effect.FlagBackground) {
			out = append(out, hit{e.Span, show(e.name())})
		}
	}, effect.Exec)

	return out
}

func endlessStarts(f *facts) []hit {
	return matching(func(f *facts, e *fact) (string, bool) {
		switch e.Kind {
		case effect.Spawn:
			return show(e.Via), e.Flags.Has(effect.FlagUnbounded) || e.Flags.Has(effect.FlagRecursing) && (e.Flags.Has(effect.FlagBackground) || e.Via == "fork" || workerOfItself(f, e))
		case effect.Exec:
			if e.Flags.Has(effect.FlagUnbounded) && e.Flags.Has(effect.FlagBackground) && e.Via != "nohup" {
				// The shell waits with sleep in the background.
				return show(e.name()), strings.Contains(e.Via, ".") || !oneOf(e.name(), "wait", "echo", "true") && (e.name() != "sleep" || !f.textHas(effect.Span{End: len(f.a.subject.Text)}, "wait $", "wait \"$", "wait\n", "wait;"))
			}

			return show(e.name()), e.Flags.Has(effect.FlagRecursing) && e.Flags.Has(effect.FlagUnbounded)
		}

		return "", false
	}, effect.Spawn, effect.Exec).find(f)
}

// workerOfItself says whether a worker runs the file that starts it, with
// nothing that tells the two apart.
func workerOfItself(f *facts, e *fact) bool {
	text := f.a.subject.Text

	return e.Target.Text == "worker" && strings.Count(text, "isMainThread") < 2 && !strings.Contains(text, ".isMainThread") && !strings.Contains(text, "workerData") &&
		!strings.Contains(text, "parentPort") && !strings.Contains(text, "threadId")
}

// Limits of what one snippet may ask for.
const (
	maxDisk   = 64 << 30
	maxMemory = 8 << 30
)

func fills(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Exec {
		switch e.name() {
		case "stress", "stress-ng":
			return show(e.name()), !e.argHas("--help", "--version") && !e.argHas("-t", "--timeout")
		case "dd":
			if !e.Flags.Has(effect.FlagLoop) {
				return "", false
			}

			for _, a := range e.Args {
				if strings.HasPrefix(a.Ref, program.ManyRef) && strings.HasPrefix(a.Text, "of=") {
					return "\x00the disk", true
				}
			}
		}

		return "", false
	}

	if e.Kind == effect.Write {
		// What comes from somewhere ends there.
		d := &e.Data
		made := d.IsConst() && d.Text != "" && d.Taint == 0 || strings.HasPrefix(d.Ref, effect.BlockRef) || d.Taint == effect.TaintRandom

		return "\x00the disk", made && e.Flags.Has(effect.FlagUnbounded) && e.path != "/dev/null" && !strings.HasPrefix(e.path, "/dev/std")
	}

	size, err := strconv.ParseInt(e.Data.Text, 10, 64)
	if err != nil {
		return "\x00the " + e.Target.Text, e.Flags.Has(effect.FlagUnbounded)
	}

	limit := int64(maxDisk)
	if e.Target.Text == "memory" {
		limit = maxMemory
	}

	return "\x00the " + e.Target.Text, size > limit || e.Flags.Has(effect.FlagUnbounded)
}

var scanRules = []row{
	{
		Rule: Rule{
			ID: "network-scan", Category: "network_scanning", Severity: High, CWE: "CWE-200",
			Seen: "it tries many hosts or ports ({}).", Fine: "Connecting to the one host and port you need would be fine.",
		},
		match: finding(func(f *facts) []hit { return append(append(scansByTool(f), scansByLoop(f)...), scansByPacket(f)...) }, effect.Exec, effect.Connect, effect.Receive, effect.Raw),
	},
	{
		Rule: Rule{
			ID: "attack-tool", Category: "reverse_shell", Severity: High, CWE: "CWE-506",
			Seen: "it runs {}, a tool for attacking other machines.", Fine: "Testing your own program would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.name()), oneOf(e.name(), "msfvenom", "msfconsole", "msfdb", "weevely", "sliver-server", "sliver-client", "koadic", "setoolkit", "beef-xss", "evil-winrm", "chisel", "ligolo-agent", "pwncat", "pwncat-cs", "villain") &&
				!e.arg("--help", "-h", "--version", "--list", "-l")
		}, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "open-tunnel", Category: "reverse_shell", Severity: Medium, CWE: "CWE-506",
			Seen: "it opens the sandbox to the outside through a tunnel ({}).", Fine: "Listening on a port of the sandbox would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			n := e.name()

			return show(n), oneOf(n, "ngrok", "devtunnel", "localtunnel", "lt", "bore") && len(e.Args) > 0 && !e.arg("--help", "--version", "version", "config") ||
				n == "cloudflared" && e.arg("tunnel", "access") || n == "code" && e.arg("tunnel") || oneOf(n, "ssh", "autossh") && e.arg("-R")
		}, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "packet-forging", Category: "network_scanning", Severity: High, CWE: "CWE-406",
			Seen: "it forges, floods or sniffs packets ({}).", Fine: "Ordinary connections would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if e.Kind == effect.Raw {
				return show(e.Target.Text), e.Target.Text == "flood" || e.Target.Text == "spoof" || e.Flags.Has(effect.FlagUnbounded)
			}

			return show(e.name()), oneOf(e.name(), "hping3", "hping", "arpspoof", "slowloris", "ettercap", "mdk3", "mdk4", "aireplay-ng", "goldeneye", "torshammer") && len(e.Args) > 0 && !e.arg("--help", "-h", "--version")
		}, effect.Raw, effect.Exec),
	},
}

func scansByTool(f *facts) []hit {
	return matching(func(f *facts, e *fact) (string, bool) {
		n := e.name()
		if !oneOf(n, "nmap", "masscan", "zmap", "rustscan", "unicornscan", "nbtscan", "fping", "arp-scan", "netdiscover", "enum4linux", "nikto", "sqlmap", "gobuster", "ffuf", "dirb", "wpscan", "nuclei") {
			return "", false
		}

		if e.arg("--help", "-h", "--version", "-V", "--iflist", "-help") || e.operand(0) == "" {
			return "", false
		}

		if oneOf(n, "masscan", "zmap", "arp-scan", "netdiscover", "nbtscan", "unicornscan") {
			return show(n), true
		}

		for _, a := range e.Args {
			c := place.ClassifyHost(a.Text)
			if c.Has(place.Loopback) {
				return "", false
			}

			if strings.Contains(a.Text, "/") && c.Has(place.Literal) && !strings.HasSuffix(a.Text, "/32") || rangeOfHosts(a.Text) {
				return show(n + " " + a.Text), true
			}
		}

		return "", false
	}, effect.Exec).find(f)
}

// rangeOfHosts says whether an argument is 10.0.0.1-254 or 10.0.0.*.
func rangeOfHosts(s string) bool {
	if strings.Count(s, ".") != 3 || !strings.ContainsAny(s, "-*") {
		return false
	}

	return strings.Trim(s, "0123456789.-*,/") == ""
}

func scansByLoop(f *facts) []hit {
	return matching(func(f *facts, e *fact) (string, bool) {
		// Many pages of one site are many requests to one host.
		host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e.Target.Text, "https://"), "http://"), "/")

		// Whoever looks for a free port, or waits for a server, looks at itself and
		// stops at the first.
		if e.host.Has(place.Loopback) && e.Flags.Has(effect.FlagLeaves) {
			return "", false
		}

		if e.Target.Many && numbered(host) || e.Port.Many && e.Kind == effect.Connect {
			return show(e.Target.Text), true
		}

		if e.Flags.Has(effect.FlagManyHosts) && (strings.Contains(host, effect.HoleText) || e.Target.IsUnknown()) || e.Flags.Has(effect.FlagManyPorts) {
			return show(e.Target.Text), true
		}

		ref := e.Target.Ref
		if !strings.HasPrefix(ref, program.ManyRef) {
			ref = e.Port.Ref
		}

		n, err := strconv.Atoi(strings.TrimPrefix(ref, program.ManyRef))
		if err != nil || !strings.HasPrefix(ref, program.ManyRef) || n < 50 {
			return "", false
		}

		return show(e.Target.Text), strings.Contains(host, effect.HoleText) && strings.Count(host, ".") >= 2 || strings.HasPrefix(e.Port.Ref, program.ManyRef)
	}, effect.Connect, effect.Receive).find(f)
}

// numbered says whether a host is an address of which a part is unknown.
func numbered(host string) bool {
	host, _, _ = strings.Cut(host, ":")

	return strings.Contains(host, effect.HoleText) && strings.Count(host, ".") >= 1 && strings.Trim(strings.ReplaceAll(host, effect.HoleText, ""), "0123456789.") == ""
}

// scansByPacket is a scan whose packets are made by hand.
func scansByPacket(f *facts) []hit {
	return matching(func(f *facts, e *fact) (string, bool) {
		return show(e.Via), e.Target.Text == "raw" && (e.Flags.Has(effect.FlagManyHosts) || e.Flags.Has(effect.FlagManyPorts))
	}, effect.Raw).find(f)
}

var disruptionRules = []row{
	{
		Rule: Rule{
			ID: "halt-system", Category: "system_disruption", Severity: High, CWE: "CWE-404",
			Seen: "it stops or crashes the machine ({}).", Fine: "Ending your own process would be fine.",
		},
		match: matching(halts, effect.Exec, effect.Write, effect.Kill),
	},
	{
		Rule: Rule{
			ID: "kill-system-process", Category: "system_disruption", Severity: High, CWE: "CWE-404",
			Seen: "it kills {}, which the sandbox needs to run.", Fine: "Killing a process you started would be fine.",
		},
		match: finding(killsSystem, effect.Kill),
	},
	{
		Rule: Rule{
			ID: "kernel-switch", Category: "system_disruption", Severity: Medium, CWE: "CWE-404",
			Seen: "it changes a switch of the running kernel ({}).", Fine: "Reading it would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.path), strings.HasPrefix(e.path, "/proc/sys/") || strings.HasPrefix(e.path, "/sys/")
		}, effect.Write),
	},
	{
		Rule: Rule{
			ID: "stop-services", Category: "system_disruption", Severity: Medium, CWE: "CWE-404",
			Seen: "it stops what the sandbox needs to run ({}).", Fine: "Stopping a service you started would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.name()), oneOf(e.name(), "systemctl", "service") && e.arg("stop", "disable", "mask") && e.argHas("ssh", "network", "dbus", "systemd-", "envd", "cron", "resolv") ||
				oneOf(e.name(), "ip", "ifconfig") && e.arg("down") && !e.arg("lo", "docker0") || e.name() == "nmcli" && e.arg("networking") && e.arg("off")
		}, effect.Exec),
	},
}

var systemProcesses = []string{"systemd", "dbus-daemon", "rsyslogd", "sshd", "cron", "crond", "journald", "NetworkManager", "envd", "udevd", "polkitd", "Xorg", "bluetoothd", "avahi-daemon", "sssd", "auditd", "init"}

// systemProcess is the system's process that a name or pattern means.
func systemProcess(pattern string) string {
	pattern = strings.Trim(pattern, "^$/[] '\"")
	for _, p := range systemProcesses {
		if pattern == p || strings.HasPrefix(pattern, p+"/") || strings.HasPrefix(pattern, p+" ") {
			return p
		}
	}

	return ""
}

// allProcessesPhrase is said of a kill that leaves nothing out.
const allProcessesPhrase = "\x00every process"

func killsSystem(f *facts) []hit {
	var out []hit

	// Which processes the snippet picks out of the list of all.
	picked := ""

	f.each(func(e *fact) {
		if !oneOf(e.name(), "grep", "awk", "pgrep", "pidof", "egrep", "gawk", "mawk") {
			return
		}

		for _, a := range e.Args {
			if p := systemProcess(a.Text); p != "" && (e.name() == "pgrep" || e.name() == "pidof" || e.Data.Has(effect.TaintInfo)) {
				picked = p
			}
		}
	}, effect.Exec)

	f.each(func(e *fact) {
		switch p := systemProcess(e.Target.Text); {
		case (e.Target.Ref == program.AllProcesses || e.Target.Has(effect.TaintInfo) && strings.Contains(e.Target.Origin, effect.Processes)) && e.Data.Text != "0" && !f.looksAtProcesses():
			out = append(out, hit{e.Span, allProcessesPhrase})
		case e.Target.Origin == effect.Processes && f.picksSystem() != "":
			out = append(out, hit{e.Span, show(f.picksSystem())})
		case p != "" && e.Via != "kill" && e.Data.Text != "0":
			out = append(out, hit{e.Span, show(p)})
		case picked != "" && !e.Target.IsConst() && e.Data.Text != "0" && e.Target.Ref != "!":
			out = append(out, hit{e.Span, show(picked)})
		}
	}, effect.Kill)

	return out
}

func halts(f *facts, e *fact) (string, bool) {
	switch e.Kind {
	case effect.Write:
		return show(e.path), e.path == "/proc/sysrq-trigger" || e.path == "/sys/power/state"
	case effect.Kill:
		t := e.Target.Text

		return show("kill " + t), (t == "-1" || t == "1" || t == "0-1") && e.Data.Text != "0" && e.Data.Text != "HUP" || oneOf(t, "init", "systemd", "envd") && e.Data.Text != "0" || t == "user:root"
	}

	switch e.name() {
	case "shutdown", "reboot", "halt", "poweroff":
		return show(e.name()), !e.arg("-c", "--help", "--version", "-k", "--show") && !e.Flags.Has(effect.FlagElsewhere)
	case "init", "telinit":
		return show(e.name()), e.arg("0", "6")
	case "systemctl":
		return show("systemctl " + e.operand(0)), e.operand(0) != "" && oneOf(e.operand(0), "poweroff", "reboot", "halt", "kexec", "emergency", "rescue") || e.operand(0) == "isolate" && e.argHas("rescue", "emergency", "poweroff", "reboot", "halt")
	case "killall5":
		return show("killall5"), true
	}

	return "", false
}

var surveillanceRules = []row{
	{
		Rule: Rule{
			ID: "log-keys", Category: "surveillance", Severity: High, CWE: "CWE-200",
			Seen: "it records the user's {}.", Fine: "Working on data you were given would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return e.Target.Text, oneOf(e.Target.Text, "keyboard", "camera", "microphone")
		}, effect.Capture),
	},
	{
		Rule: Rule{
			ID: "capture-screen", Category: "surveillance", Severity: Medium, CWE: "CWE-200",
			Seen: "it records the user's {}.", Fine: "Working on data you were given would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return e.Target.Text, oneOf(e.Target.Text, "screen", "clipboard", "sound", "keys", "picture")
		}, effect.Capture),
	},
	{
		Rule: Rule{
			ID: "host-survey", Category: "recon", Severity: Low, CWE: "CWE-200",
			Seen: "it collects facts about the machine and its users ({}).", Fine: "Asking for the one fact you need would be fine.",
		},
		match: finding(func(f *facts) []hit {
			seen := map[string]bool{}

			var last *fact

			f.each(func(e *fact) {
				seen[e.Target.Text] = true
				last = e
			}, effect.Info)

			if len(seen) < 4 {
				return nil
			}

			return []hit{{last.Span, show("several commands")}}
		}, effect.Info),
	},
}

var networkRules = []row{
	{
		Rule: Rule{
			ID: "network-blocked-install", Category: "policy", Severity: Critical, CWE: "",
			Seen: "the sandbox has no network, so {} would hang.",
			Fine: "Use what is installed, or ask the operator to write `network allow packages` in the gateway's configuration.",
		},
		match: matching(blockedInstall, effect.Install),
	},
}

// blockedInstall is certain only about literal names from a registry.
func blockedInstall(f *facts, e *fact) (string, bool) {
	if !f.blockedNetwork() || e.Flags.Has(effect.FlagElsewhere) || !e.Target.IsConst() {
		return "", false
	}

	t := e.Target.Text

	switch {
	case t == "" && oneOf(e.Via, "pip", "pip3"), strings.HasPrefix(t, "."), strings.HasPrefix(t, "/"), strings.HasPrefix(t, "file:"),
		strings.HasSuffix(t, ".whl"), strings.HasSuffix(t, ".deb"), strings.HasSuffix(t, ".tgz"), strings.HasSuffix(t, ".tar.gz") && !strings.Contains(t, "://"),
		e.Lang == "git" && !strings.Contains(t, "://") && !strings.Contains(t, "@"), e.Lang == "npm" && t == "", e.Lang == "cargo" && t == "", e.Lang == "go":
		return "", false
	}

	if e.Lang == "git" && place.ClassifyHost(t).Has(place.Loopback) {
		return "", false
	}

	return show(strings.TrimSpace(e.Via + " " + t)), true
}

// looksAtProcesses says whether code asks a process for what it is before it
// ends it. The shell chooses by filters instead, which the list remembers.
func (f *facts) looksAtProcesses() bool {
	if f.a.language == "bash" {
		return false
	}

	return f.textHas(effect.Span{End: len(f.a.subject.Text)}, ".name", ".info", ".cmdline", ".exe(", ".pid ==", ".ppid", ".username", ".status(", "is_zombie", ".connections", ".create_time", ".memory", ".cpu_percent", "os.getpid() !=")
}

// picksSystem is a process of the system that code compares the names of
// processes with, in order to end it and not to spare it.
func (f *facts) picksSystem() string {
	all := effect.Span{End: len(f.a.subject.Text)}
	if f.textHas(all, "not in", "!=", "continue", "exclude", "protect") {
		return ""
	}

	for _, p := range systemProcesses {
		if f.textHas(all, "\""+p+"\"", "'"+p+"'", "\""+p+"\\") {
			return p
		}
	}

	return ""
}
