package place

import (
	"path"
	"strings"
)

// trees are the directories whose recursive removal destroys the system.
var trees = setOf("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt",
	"/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "/Applications",
	"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/share", "/usr/include", "/usr/local/bin",
	"/usr/local/lib", "/usr/local/sbin", "/usr/local/share", "/var/lib", "/var/log", "/var/spool", "/var/www", "/var/cache", "/var/run",
	"/var/backups", "/var/mail", "/private", "/private/etc", "/private/var",
	"/lib/modules", "/usr/libexec", "/var/lib/dpkg", "/var/lib/docker", "/var/lib/mysql", "/var/lib/postgresql", "/etc/ssh", "/etc/ssl")

// removable are places below vital trees that ordinary work cleans up.
var removable = []string{
	"/var/lib/apt/lists", "/var/cache", "/var/tmp", "/usr/local", "/usr/src", "/usr/share/doc", "/usr/share/man",
	"/usr/share/locale", "/etc/apt/sources.list.d", "/etc/apt/trusted.gpg.d", "/etc/apt/keyrings", "/etc/apt/preferences.d", "/etc/nginx",
	"/etc/apache2", "/etc/httpd", "/etc/supervisor", "/var/www", "/var/lib/docker/tmp", "/run/user", "/dev/shm", "/dev/mqueue",
	"/var/crash", "/var/lib/jenkins", "/boot/efi/EFI", "/etc/yum.repos.d", "/usr/share/nginx", "/usr/share/fonts", "/usr/share/keyrings",
	"/usr/share/applications",
}

// vitalBelow are the trees of which no file may go.
var vitalBelow = []string{
	"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/var/lib/dpkg",
	"/var/lib/rpm", "/var/spool", "/var/mail",
}

var logFiles = setOf("syslog", "auth.log", "secure", "messages", "wtmp", "btmp", "lastlog", "utmp", "kern.log", "daemon.log",
	"faillog", "dpkg.log", "alternatives.log", "boot.log", "cron", "cron.log", "dmesg", "maillog", "mail.log", "user.log",
	"debug", "audit.log", "security", "sudo.log", "tallylog", "bootstrap.log", "apt/history.log", "audit", "journal", "yum.log")

// system classifies absolute paths by where they are.
func system(p string) Class {
	var c Class

	dir, base := path.Split(p)
	dir = path.Clean(dir)

	if trees[p] || isGlobAll(base) && trees[dir] && !IsTemp(dir) || globsTree(dir, base) || dir == "/var" && base != "tmp" && base != "crash" {
		c |= Tree | Vital
	}

	if IsTemp(p) {
		c |= Temp
	}

	if underAny(p, vitalBelow) && !(underAny(p, removable) && !trees[p]) && !IsTemp(p) {
		c |= Vital
	}

	switch {
	case strings.HasSuffix(p, "/EXTERNALLY-MANAGED"), strings.HasPrefix(p, "/dev/null"), strings.HasPrefix(p, "/dev/fd"),
		strings.HasPrefix(p, "/dev/std"), strings.HasPrefix(p, "/dev/tty"), strings.HasPrefix(p, "/dev/pts"),
		strings.Contains(p, "/site-packages/"), strings.Contains(p, "/dist-packages/"), strings.Contains(p, "/node_modules/"),
		strings.HasPrefix(p, "/proc/self/fd"):
		c &^= Vital
	}

	if strings.HasPrefix(p, "/var/log") || strings.HasPrefix(p, "/run/log/journal") {
		c |= logClass(p)
	}

	c |= kernel(p) | auth(p) | startup(p)

	if underAny(p, []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/lib", "/lib64", "/boot"}) && !strings.Contains(p, "-packages/") {
		c |= Binary
	}

	return c
}

// globsTree says whether a pattern takes one of the trees at the top.
func globsTree(dir, pattern string) bool {
	if dir != "/" && dir != "/usr" || !strings.ContainsAny(pattern, "*?[") {
		return false
	}

	for t := range trees {
		if d, name := path.Split(t); path.Clean(d) == dir && name != "" {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
	}

	return false
}

func logClass(p string) Class {
	if p == "/var/log" || strings.HasPrefix(p, "/run/log/journal") {
		return Log
	}

	rest := strings.TrimPrefix(p, "/var/log/")
	first, second, _ := strings.Cut(rest, "/")

	switch {
	case isGlobAll(first), logFiles[rest], first == "audit", first == "journal", first == "apt", first == "installer":
		return Log
	case second == "" && strings.HasSuffix(first, ".log"):
		// Programs of one's own log elsewhere, or below a directory.
		return Log
	case strings.Contains(first, "*") && second == "" && !strings.Contains(first, ".gz") && !strings.Contains(first, ".1") && !strings.Contains(first, ".old"):
		return Log
	}

	return 0
}

func kernel(p string) Class {
	switch {
	case p == "/proc/sysrq-trigger", p == "/proc/sys/kernel/sysrq", p == "/proc/sys/kernel/randomize_va_space",
		p == "/proc/sys/kernel/modprobe", p == "/sys/power/state":
		return Kernel
	case p == "/proc/sys/kernel/core_pattern", under(p, "/proc/1/root"), under(p, "/proc/1/ns"), under(p, "/proc/1/cwd"):
		return HostEscape
	case strings.HasSuffix(p, "/docker.sock"), strings.HasSuffix(p, "/containerd.sock"), strings.HasSuffix(p, "/crio.sock"):
		return HostEscape
	case under(p, "/sys/fs/cgroup") || p == "/dev/kmsg":
		return 0
	case p == "/dev/mem", p == "/dev/kmem", p == "/dev/port", p == "/proc/kcore":
		return Device
	case IsBlockDevice(p):
		return Device
	}

	return 0
}

// IsBlockDevice says whether a path names a disk or a partition.
func IsBlockDevice(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}

	for _, pre := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "dm-", "mapper/", "md", "disk", "rdisk", "block/"} {
		if strings.HasPrefix(name, pre) {
			return true
		}
	}

	return false
}

func auth(p string) Class {
	switch {
	case p == "/etc/passwd", p == "/etc/group":
		return AuthFile | Private
	case p == "/etc/shadow", p == "/etc/gshadow", p == "/etc/master.passwd", p == "/etc/shadow-", p == "/etc/gshadow-", p == "/etc/security/opasswd":
		return AuthFile | Secret
	case p == "/etc/sudoers", under(p, "/etc/sudoers.d"), under(p, "/etc/pam.d"), p == "/etc/pam.conf", p == "/etc/doas.conf",
		p == "/etc/ssh/sshd_config", under(p, "/etc/ssh/sshd_config.d"), under(p, "/etc/polkit-1"), p == "/etc/login.defs",
		p == "/etc/security/access.conf", p == "/etc/nsswitch.conf",
		strings.Contains(p, "/security/pam_") && strings.HasSuffix(p, ".so") && (strings.HasPrefix(p, "/lib") || strings.HasPrefix(p, "/usr/lib")):
		return AuthFile
	case strings.HasPrefix(p, "/etc/ssh/ssh_host_") && !strings.HasSuffix(p, ".pub"):
		return Secret
	case under(p, "/etc/ssl/private"), under(p, "/var/lib/kubelet/pki"), under(p, "/etc/kubernetes/pki"), p == "/etc/kubernetes/admin.conf",
		under(p, "/var/run/secrets/kubernetes.io"), under(p, "/run/secrets/kubernetes.io"), under(p, "/run/secrets"), under(p, "/var/lib/sss/db"),
		p == "/etc/krb5.keytab", under(p, "/etc/openvpn"), under(p, "/etc/wireguard"), p == "/proc/kcore", p == "/dev/mem", p == "/dev/kmem":
		return Secret
	case strings.HasPrefix(p, "/proc/"):
		return procSecret(p)
	}

	return 0
}

// procSecret classifies other processes' memory and environment.
func procSecret(p string) Class {
	rest := strings.TrimPrefix(p, "/proc/")
	pid, file, _ := strings.Cut(rest, "/")

	switch file {
	case "environ":
		if pid == "self" || pid == "thread-self" || pid == "$$" {
			return Private
		}

		return Secret
	case "mem", "auxv", "pagemap":
		return Secret
	case "root/etc/shadow":
		return Secret
	}

	return 0
}

func startup(p string) Class {
	switch {
	case under(p, "/etc/cron.d"), under(p, "/etc/cron.daily"), under(p, "/etc/cron.hourly"), under(p, "/etc/cron.weekly"),
		under(p, "/etc/cron.monthly"), p == "/etc/crontab", p == "/etc/anacrontab", under(p, "/var/spool/cron"), under(p, "/var/spool/at"),
		p == "/etc/rc.local", p == "/etc/rc.d/rc.local", under(p, "/etc/init.d"), under(p, "/etc/rc.d"), p == "/etc/inittab",
		p == "/etc/ld.so.preload", under(p, "/etc/udev/rules.d"), under(p, "/etc/update-motd.d"), under(p, "/etc/xdg/autostart"),
		under(p, "/etc/NetworkManager/dispatcher.d"), under(p, "/etc/modules-load.d"), p == "/etc/modules", under(p, "/etc/init"),
		under(p, "/etc/apt/apt.conf.d"), under(p, "/usr/lib/systemd/system-generators"), under(p, "/etc/emacs"), p == "/etc/ld.so.conf",
		under(p, "/etc/ld.so.conf.d"), under(p, "/etc/dpkg/dpkg.cfg.d"), under(p, "/etc/rc0.d"), under(p, "/etc/rc3.d"), under(p, "/etc/rc5.d"):
		return SelfRunning | Startup
	case strings.Contains(p, "/systemd/") && (under(p, "/etc") || under(p, "/usr/lib") || under(p, "/lib") || under(p, "/run")) &&
		(strings.HasSuffix(p, ".service") || strings.HasSuffix(p, ".timer") || strings.HasSuffix(p, ".socket") || strings.HasSuffix(p, ".path")):
		return SelfRunning | Startup
	case p == "/etc/profile", under(p, "/etc/profile.d"), p == "/etc/bash.bashrc", p == "/etc/bashrc", under(p, "/etc/zsh"), p == "/etc/zshrc",
		p == "/etc/environment", p == "/etc/zprofile", p == "/etc/csh.cshrc", p == "/etc/gitconfig", p == "/etc/inputrc", p == "/etc/vimrc",
		under(p, "/etc/vim"), under(p, "/etc/fish"), p == "/etc/screenrc", p == "/etc/tmux.conf":
		return SelfRunning
	}

	return 0
}

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}

	return m
}
