package files

import (
	"path"
	"slices"
	"strings"
)

// Canonical resolves ".." in an absolute path. envd hands such a path to the
// kernel as it is, where ".." behind a symbolic link leads elsewhere than the
// names say: /var/run/../etc/x is /etc/x. What is judged is the path without, so
// that is the path to forward. In relative paths, and behind "~", envd resolves
// ".." by name itself.
func Canonical(name string) string {
	if !strings.HasPrefix(name, "/") || !slices.Contains(strings.Split(name, "/"), "..") {
		return name
	}
	resolved := path.Clean(name)
	if strings.HasSuffix(name, "/") && resolved != "/" {
		resolved += "/" // It still says that a folder is meant.
	}
	return resolved
}

// clean resolves "." and ".." and gives a relative path the home it is relative
// to, written "~". envd resolves the same, but writes ".." back in its answer.
func clean(name string) string {
	switch {
	case strings.HasPrefix(name, "/"):
		return path.Clean(name)
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = name[1:]
	}
	// A home is two levels below the root at most: "../.." from it reaches "/".
	joined := path.Clean("/~/" + strings.TrimPrefix(name, "/"))
	if joined == "/~" || strings.HasPrefix(joined, "/~/") {
		return joined[1:]
	}
	return escaped(name)
}

// Judged is the path to judge a name by: a relative one that leaves the home is, of
// all that it may be, the most dangerous. See escaped.
func Judged(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	if p := clean(name); strings.HasPrefix(p, "/") {
		return p
	}
	return name
}

// escaped resolves a relative path that leaves the home: which home it is is not
// known here, so the part after the last ".." is taken to be below the root, the
// most dangerous reading.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	kept := parts[:0:0]
	for _, p := range parts {
		switch p {
		case "", ".":
		case "..":
			if len(kept) > 0 {
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, p)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// SelfRunning reports whether a file (or folder) put at path runs, or changes
// what runs, without being named again, and why. envd writes as root, so the
// whole system counts.
func SelfRunning(name string) (why string, ok bool) {
	p := clean(name)
	base := path.Base(p)
	switch {
	case shellFiles[base]:
		return "shell start-up file", true
	case startupFiles[base]:
		return "start-up file of a program", true
	case strings.HasSuffix(base, ".pth"):
		return "run when Python starts", true
	}
	for _, root := range systemRoots {
		if p == root.path || strings.HasPrefix(p, root.path+"/") {
			if exempt(p) {
				return "", false
			}
			return root.why, true
		}
	}
	if p == "/" || p == "~" || homes[path.Dir(p)] || homes[p] || p == "/root" || p == "/usr" || p == "/var" {
		return "a whole home or system folder", true
	}
	for _, f := range folders {
		if strings.HasSuffix(p, "/"+f.path) || strings.Contains(p+"/", "/"+f.path+"/") {
			return f.why, true
		}
	}
	if wholeFolders[base] {
		return "a folder of start-up files", true
	}
	for _, bin := range binFolders {
		if rest, found := strings.CutPrefix(inHome(p), bin); found && (rest == "" || rest[0] == '/') {
			return "folder of programs in PATH", true
		}
	}
	return "", false
}

// inHome is a path below a home, relative to it; "" if it is not below one.
func inHome(p string) string {
	for _, home := range []string{"~/", "/root/"} {
		if rest, ok := strings.CutPrefix(p, home); ok {
			return rest
		}
	}
	if rest, ok := strings.CutPrefix(p, "/home/"); ok {
		_, rest, _ = strings.Cut(rest, "/")
		return rest
	}
	return ""
}

// homes are the folders whose entries are homes.
var homes = map[string]bool{"/home": true}

// exempt are places below a system root where nothing runs by itself.
func exempt(p string) bool {
	for _, free := range []string{"/dev/shm", "/dev/null", "/dev/stdout", "/dev/stderr", "/run/user", "/run/shm", "/var/run/user", "/var/run/shm", "/var/lib/e2b"} {
		if p == free || strings.HasPrefix(p, free+"/") {
			return true
		}
	}
	return false
}

type place struct{ path, why string }

// systemRoots are the folders of the system that programs, libraries and their
// configuration are read from.
var systemRoots = []place{
	{"/etc", "system configuration"},
	{"/bin", "system program"}, {"/sbin", "system program"},
	{"/usr/bin", "system program"}, {"/usr/sbin", "system program"}, {"/usr/libexec", "system program"},
	{"/usr/local/bin", "system program"}, {"/usr/local/sbin", "system program"}, {"/usr/games", "system program"}, {"/usr/local/games", "system program"},
	{"/lib", "system library"}, {"/lib32", "system library"}, {"/lib64", "system library"},
	{"/usr/lib", "system library"}, {"/usr/lib32", "system library"}, {"/usr/lib64", "system library"}, {"/usr/local/lib", "system library"},
	{"/boot", "boot files"}, {"/proc", "kernel interface"}, {"/sys", "kernel interface"}, {"/dev", "device"},
	{"/run", "state of system services"}, {"/var/run", "state of system services"}, {"/var/lock", "state of system services"}, {"/var/spool", "scheduled jobs"}, {"/var/lib", "state of system services"},
	{"/usr/share/perl", "system library"}, {"/usr/share/perl5", "system library"}, {"/usr/local/share/perl", "system library"},
	{"/usr/share/nodejs", "system library"}, {"/usr/share/python3", "system library"}, {"/usr/share/bash-completion", "shell start-up file"},
	{"/usr/local/etc", "system configuration"},
	{"/snap", "system program"}, {"/nix", "system program"}, {"/root/.server", "the code interpreter itself"},
}

// shellFiles are read by shells when they start or end.
var shellFiles = set(
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile", ".shrc", ".shinit",
	".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
	".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".xserverrc", ".envrc", ".bash_env",
)

// startupFiles are read by other programs when they start, and name code or
// where code comes from.
var startupFiles = set(
	"sitecustomize.py", "usercustomize.py", ".pythonrc", ".pythonrc.py", ".pythonstartup", ".pdbrc",
	"authorized_keys", "authorized_keys2", "ld.so.preload", "crontab",
	".gitconfig", ".gitmodules", ".gitattributes", ".hgrc",
	".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".noderc", "pip.conf", ".pypirc", ".condarc", ".gemrc", ".bundle",
	".Rprofile", ".Renviron", "Rprofile.site", "Renviron.site", ".irbrc", ".pryrc", ".rspec", ".perldb", ".juliarc.jl",
	".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".emacs", ".tmux.conf", ".screenrc", ".inputrc", ".gdbinit", ".lldbinit",
	".curlrc", ".wgetrc", ".psqlrc", ".sqliterc", ".my.cnf", ".mailcap", ".forward", ".pam_environment", ".rpmmacros", ".mavenrc", ".netrc",
)

// folders hold such files, wherever they are.
var folders = []place{
	{".ssh", "SSH configuration"},
	{".git/hooks", "git hook"}, {".git/config", "git configuration"}, {".git/modules", "git configuration"}, {".git/info", "git configuration"},
	{".githooks", "git hook"}, {".husky", "git hook"},
	{".config/autostart", "started with the session"}, {".config/systemd", "systemd unit"}, {".config/environment.d", "environment of the session"},
	{".config/fish", "shell start-up file"}, {".config/git", "git configuration"}, {".config/pip", "package installer configuration"},
	{".config/nvim", "start-up file of a program"}, {".vim", "start-up file of a program"}, {".emacs.d", "start-up file of a program"},
	{".config/matplotlib", "start-up file of a program"}, {".jupyter", "Jupyter configuration"}, {".config/jupyter", "Jupyter configuration"},
	{".ipython", "run when IPython starts"}, {".local/share/jupyter", "Jupyter kernel"}, {".local/share/applications", "started by the desktop"},
	{".local/share/systemd", "systemd unit"}, {".local/share/fish", "shell start-up file"}, {".bashrc.d", "shell start-up file"}, {".profile.d", "shell start-up file"},
	{".cargo/config", "build configuration"}, {".cargo/config.toml", "build configuration"}, {".cargo/env", "shell start-up file"},
	{".m2/settings.xml", "build configuration"}, {".gradle/init.d", "build configuration"}, {".docker/config.json", "credential helper"},
	{".oh-my-zsh", "shell start-up file"}, {".nvm", "shell start-up file"}, {".pyenv/shims", "folder of programs in PATH"},
	{"node_modules/.bin", "folder of programs in PATH"}, {"cron.d", "scheduled job"}, {"profile.d", "shell start-up file"},
}

// wholeFolders would bring such folders along if they were moved into place.
var wholeFolders = set(".git", ".config", ".local", ".cargo")

// binFolders are folders of a home that are usually in PATH.
var binFolders = []string{"bin", ".local/bin", ".cargo/bin", ".npm-global/bin", ".bun/bin", ".deno/bin", "go/bin", ".pyenv/bin"}

// Absolute is the path that envd makes of a name: "~" and relative names are below
// the home of the user, "" for E2B's default one. It is "" where envd refuses the
// name.
func Absolute(name, username string) string {
	home := "/home/user"
	switch username {
	case "", "user":
	case "root":
		home = "/root"
	default:
		home = "/home/" + path.Base(username)
	}
	switch {
	case strings.HasPrefix(name, "/"):
		return path.Clean(name)
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Clean(home + name[1:])
	case strings.HasPrefix(name, "~"):
		return ""
	default:
		return path.Clean(home + "/" + name)
	}
}
