// Package place knows what places mean: which paths of a Linux sandbox hold
// secrets, run by themselves, or must not be removed, and which hosts are more
// than just another host. It holds tables and pure functions, nothing else.
package place

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Home is what "~" and $HOME stand for: the home of E2B's default user.
const Home = "/home/user"

// Class is a set of things that are true of a path.
type Class uint32

// The classes.
const (
	// Secret holds credentials; reading it is theft unless its own tool does.
	Secret Class = 1 << iota
	// Private is harmless to read and harmful to send away (.env, /etc/passwd,
	// shell histories, key files of a project).
	Private
	// SelfRunning is run by something else later: profile files, cron, units,
	// git hooks, sitecustomize.
	SelfRunning
	// Startup is the part of SelfRunning that no ordinary work writes: cron,
	// systemd units, init scripts, ld.so.preload, udev rules.
	Startup
	// AuthFile decides who may do what: passwd, shadow, sudoers, pam,
	// authorized_keys, sshd_config.
	AuthFile
	// Log is a system log or a shell history.
	Log
	// Vital must not be removed: system trees, homes, device nodes.
	Vital
	// Tree is a directory whose recursive removal destroys a system or a home:
	// the root, its children, a home.
	Tree
	// Kernel is a switch of the running kernel: sysrq, core_pattern, modules.
	Kernel
	// Device is a block device or memory.
	Device
	// HostEscape leads out of a container: the docker socket, /proc/1/root,
	// cgroup release_agent.
	HostEscape
	// Temp is a place anybody can write: /tmp, /var/tmp, /dev/shm.
	Temp
	// Binary is where system programs live.
	Binary
)

// Has says whether any class of x holds.
func (c Class) Has(x Class) bool { return c&x != 0 }

// Resolve turns a path as written into an absolute, clean one: "~" and the
// like become Home, relative paths are taken from cwd. A relative path with
// cwd unknown ("") stays relative. A trailing "/" or "/." is dropped; globs
// and holes stay.
func Resolve(p, cwd string) string {
	p = strings.TrimPrefix(p, "file://")

	switch {
	case p == "":
		return ""
	case p == "~" || strings.HasPrefix(p, "~/"):
		p = Home + p[1:]
	case p == "~root" || strings.HasPrefix(p, "~root/"):
		p = "/root" + p[len("~root"):]
	case p[0] == '~':
		name, rest, _ := strings.Cut(p[1:], "/")
		if name != "+" && name != "-" {
			p = "/home/" + name + "/" + rest
		}
	}

	if p[0] == '/' {
		return path.Clean(p)
	}

	if cwd != "" {
		return path.Clean(cwd + "/" + p)
	}

	p = path.Clean(p)
	// Nobody works that deep: the way up ends at the root.
	if climbs := strings.Count(p, "../"); climbs >= rootClimbs && strings.HasPrefix(p, strings.Repeat("../", climbs)) {
		return p[len("../")*climbs-1:]
	}

	return p
}

// rootClimbs is how many steps up lead to the root from wherever code is run.
const rootClimbs = 6

// Classify says what is true of a path that Resolve returned.
func Classify(p string) Class {
	if p == "" {
		return 0
	}

	var c Class

	if p[0] == '/' {
		c |= system(p)
	}

	c |= byHome(p)
	c |= byName(p)

	return c
}

// IsTemp says whether anybody can write there.
func IsTemp(p string) bool {
	return under(p, "/tmp") || under(p, "/usr/tmp") || under(p, "/var/tmp") || under(p, "/dev/shm")
}

// under says whether p is dir or below it.
func under(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// Under says whether a path is one of the directories or below one.
func Under(p string, dirs []string) bool { return underAny(p, dirs) }

func underAny(p string, dirs []string) bool {
	for _, d := range dirs {
		if under(p, d) {
			return true
		}
	}

	return false
}

// home splits a path below a home into the home and the rest ("" for the home
// itself); ok is false elsewhere.
func home(p string) (rest string, ok bool) {
	if under(p, "/root") {
		return strings.TrimPrefix(strings.TrimPrefix(p, "/root"), "/"), true
	}

	for _, base := range []string{"/home/", "/Users/"} {
		if after, found := strings.CutPrefix(p, base); found {
			_, rest, _ = strings.Cut(after, "/")

			return rest, after != ""
		}
	}

	return "", false
}

// isGlobAll says whether a last element takes everything in a directory.
func isGlobAll(name string) bool {
	switch name {
	case "*", ".*", "**", "{*,.*}", ".[!.]*", ".??*", ".[^.]*", "*.*", "{,.}*", ".[a-zA-Z]*", "..?*", "?*", "[!.]*", "[a-z]*", "[a-zA-Z0-9]*", effect.HoleText + "*":
		return true
	}

	return false
}

// BehindProcess is the part of a path behind a directory that /proc links to: the
// working directory, the root or an open file of a process.
func BehindProcess(p string) (rest string, ok bool) {
	parts := strings.Split(p, "/")
	if len(parts) < 4 || parts[1] != "proc" {
		return "", false
	}

	for i := 3; i < len(parts); i++ {
		switch parts[i] {
		case "cwd", "root":
			return strings.Join(append([]string{""}, parts[i+1:]...), "/"), true
		case "fd":
			if i+1 < len(parts) {
				return strings.Join(append([]string{""}, parts[i+2:]...), "/"), true
			}
		}
	}

	return "", false
}
