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
