package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

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
			ID: "root-shell", Category: "privilege_escalation", Severity: High, CWE: "CWE-269",
			Seen: "it gets a shell of another user out of {}.", Fine: "Running one command with sudo would be fine.",
		},
		match: finding(rootShell, effect.Exec),
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

// rootShell finds shells with nothing to do but wait for commands, that keep
// the rights of a program never meant to start one: an editor or a search under
// sudo, a setuid shell, code that first becomes root.
func rootShell(f *facts) []hit {
	var became *fact

	f.each(func(e *fact) {
		if became == nil && oneOf(e.Target.Text, "setuid", "seteuid", "setreuid", "setresuid") && e.Data.Text == "0" {
			became = e
		}
	}, effect.Priv)

	return matching(func(f *facts, e *fact) (string, bool) {
		if !shells[e.name()] || e.name() == "busybox" || e.name() == "fish" || !interactive(e) {
			return "", false
		}

		switch {
		case e.arg("-p") && oneOf(e.name(), "sh", "bash", "dash", "ksh", "zsh"):
			return show(e.name() + " -p"), true
		case became != nil:
			return show(became.Target.Text), true
		case e.Flags.Has(effect.FlagRoot):
			by := f.startedBy(e)

			return show(by), by != ""
		}

		return "", false
	}, effect.Exec).find(f)
}

// startedBy is the program under sudo, made for something else, that a shell
// was started by.
func (f *facts) startedBy(shell *fact) string {
	by := ""

	f.each(func(e *fact) {
		if e.Flags.Has(effect.FlagRoot) && e.Span.Start <= shell.Span.Start && e.Span.End >= shell.Span.End && breaksOut(e.name()) {
			by = e.name()
		}
	}, effect.Exec)

	return by
}

// interactive says whether a shell is given nothing to run.
func interactive(e *fact) bool {
	for i := range e.Args {
		if t := e.Args[i].Text; t != "" && t[0] != '-' || strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.ContainsAny(t, "cs") {
			return false
		}
	}

	return true
}

// breaksOut says whether a program that starts a shell is for something else.
func breaksOut(name string) bool {
	return oneOf(name, "find", "awk", "gawk", "mawk", "vi", "vim", "nvim", "view", "tar", "less", "man", "more", "ed", "git", "make", "zip", "gdb", "perl", "ruby", "lua", "php", "node", "xargs", "expect") ||
		strings.HasPrefix(name, "python")
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
		return show(e.Target.Text), e.Target.Text == "setns" || e.Target.Text == "chroot" && (strings.HasPrefix(e.Data.Text, "/proc/1/root") || strings.HasPrefix(e.Data.Text, "/proc/1/cwd"))
	}

	switch n := e.name(); n {
	case "docker", "podman", "nerdctl":
		if !e.arg("run", "create", "exec") {
			return "", false
		}

		if e.arg("--privileged") && (e.arg("--pid=host", "--ipc=host", "--userns=host") || e.argHas("chroot", "nsenter", "/dev:/")) || e.argHas("SYS_ADMIN", "SYS_MODULE") && e.arg("--cap-add") || e.argHas("docker.sock:") {
			return show(n + " run"), true
		}

		return show(n + " run -v /:"), mountsHost(e)
	case "kubectl", "oc":
		return show(n), hostPod(strings.Join(strings.Fields(joinArgs(e)), "")) && e.arg("run", "create", "apply", "patch", "debug") || e.arg("debug") && e.argHas("node/") && e.argHas("--profile=sysadmin")
	case "ctr", "crictl":
		return show(n + " run"), e.arg("run") && (e.arg("--privileged") || mountsHost(e))
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
	case "chroot":
		if e.argHas("/proc/1/root", "/proc/1/cwd") {
			return show("/proc/1/root"), true
		}

		d := f.mountedDevice(e.operand(0))

		return show(d), d != ""
	case "ls", "stat", "cat", "find", "cp":
		return show("/proc/1/root"), e.argHas("/proc/1/root", "/proc/1/cwd")
	case "debugfs":
		return show("debugfs"), e.argHas("/dev/")
	case "unshare":
		return "", false
	}

	return "", false
}

// hostFolders are folders of the machine that decide what runs on it, and as whom.
// Some tools of observation mount them to read.
var hostFolders = setOf("/etc", "/root", "/boot", "/proc", "/sys", "/dev", "/usr", "/lib", "/var/lib/docker", "/var/run", "/run")

func mountsHost(e *fact) bool {
	for i, a := range e.Args {
		t := a.Text
		if i > 0 && (e.Args[i-1].Text == "-v" || e.Args[i-1].Text == "--volume") && mountsHostFolder(t) {
			return true
		}

		for _, flag := range []string{"-v", "--volume="} {
			if volume, ok := strings.CutPrefix(t, flag); ok && mountsHostFolder(volume) {
				return true
			}
		}

		if strings.Contains(t, "src=/,") || strings.Contains(t, "source=/,") {
			return true
		}
	}

	return false
}

// mountsHostFolder looks at a volume as docker is given it: host:container[:options].
func mountsHostFolder(volume string) bool {
	host, rest, ok := strings.Cut(volume, ":")
	if !ok {
		return false
	}

	if host == "/" {
		return true
	}

	_, options, _ := strings.Cut(rest, ":")

	return hostFolders[strings.TrimRight(host, "/")] && !oneOf(options, "ro", "ro,rslave", "ro,z")
}

// hostPod says whether a pod's description, without its blanks, takes it out
// of its confinement.
func hostPod(text string) bool {
	for _, mark := range []string{`"hostPID":true`, `"privileged":true`, `"hostPath":{"path":"/"`, `"hostIPC":true`, "hostPID:true", "privileged:true"} {
		if strings.Contains(text, mark) {
			return true
		}
	}

	return false
}

func joinArgs(e *fact) string {
	var b strings.Builder
	for i := range e.Args {
		b.WriteString(e.Args[i].Text)
		b.WriteByte(' ')
	}

	return b.String()
}

// mountedDevice is the disk that the code mounts where it then goes.
func (f *facts) mountedDevice(dir string) string {
	device := ""

	f.each(func(e *fact) {
		if e.name() != "mount" || dir == "" {
			return
		}

		for i := range e.Args {
			if place.IsBlockDevice(e.Args[i].Text) && !strings.HasPrefix(e.Args[i].Text, "/dev/loop") && e.lastOperand() != "" && place.Resolve(dir, f.a.cwd) == place.Resolve(e.lastOperand(), f.a.cwd) {
				device = e.Args[i].Text
			}
		}
	}, effect.Exec)

	return device
}
