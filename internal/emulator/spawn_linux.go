package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type spawnerOS struct {
	namespace string // the link of /proc/<pid>/ns/mnt, where there is an own one
}

func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

func probeConfinement() confinement {
	if os.Geteuid() != 0 {
		return confinement{why: "the emulator does not run as root"}
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with its namespace.
		result <- unshareMounts()
	}()
	if err := <-result; err != nil {
		return confinement{why: "a mount namespace is not permitted: " + err.Error()}
	}
	return confinement{chroot: true}
}

func unshareMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	// Nothing mounted from here on may reach the machine's own namespace.
	return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// ownDirs are the top-level folders that are the sandbox's, not the machine's.
var ownDirs = []string{"home", "root", "tmp", "mnt", "opt", "srv", "var", "code", "etc", "media", "boot", "lost+found"}

// writableDirs are the machine's folders that must not become read-only.
var writableDirs = []string{"dev", "proc", "sys", "run"}

// enter gives the calling thread a mount namespace whose root is the sandbox's
// folder, with the machine's programs bound into it read-only.
func (s *spawner) enter() error {
	if err := unshareMounts(); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	root := s.fs.dir
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(ownDirs, name) || strings.HasPrefix(name, ".") {
			continue
		}
		src, dst := "/"+name, filepath.Join(root, name)
		switch {
		case e.Type()&os.ModeSymlink != 0:
			if link, err := os.Readlink(src); err == nil {
				_ = os.Symlink(link, dst) // Already there in a copied sandbox.
			}
		case e.IsDir():
			if err := bind(src, dst, !slices.Contains(writableDirs, name)); err != nil {
				return err
			}
		}
	}
	for _, dir := range toolDirs(os.Getenv("PATH")) {
		if err := bind(dir, filepath.Join(root, dir), true); err != nil {
			return err
		}
	}
	for _, m := range s.fs.mounts {
		if err := bind(m.dir, filepath.Join(root, m.at), false); err != nil {
			return err
		}
	}
	if err := bind("/etc", filepath.Join(root, hostEtc), true); err != nil {
		return err
	}
	if err := linkEtc(root); err != nil {
		return err
	}
	link, err := os.Readlink(fmt.Sprintf("/proc/self/task/%d/ns/mnt", unix.Gettid()))
	if err != nil {
		return err
	}
	s.namespace = link
	if err := unix.Chroot(root); err != nil {
		return fmt.Errorf("entering the sandbox's folder: %w", err)
	}
	return unix.Chdir("/")
}

func bind(src, dst string, readOnly bool) error {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(src, dst, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %s: %w", src, err)
	}
	if readOnly {
		err := unix.MountSetattr(unix.AT_FDCWD, dst, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil {
			return fmt.Errorf("making %s read-only: %w", src, err)
		}
	}
	return nil
}

// toolDirs are the folders below ownDirs that PATH needs: "/root/.pyenv" for
// "/root/.pyenv/shims".
func toolDirs(path string) []string {
	var dirs []string
	for p := range strings.SplitSeq(path, ":") {
		parts := strings.Split(strings.Trim(filepath.Clean(p), "/"), "/")
		depth := 2
		if parts[0] == "home" {
			depth = 3
		}
		if !filepath.IsAbs(p) || parts[0] == "etc" || !slices.Contains(ownDirs, parts[0]) || len(parts) < depth {
			continue
		}
		dir := "/" + filepath.Join(parts[:depth]...)
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// hostEtc is where commands find the machine's /etc.
const hostEtc = ".host/etc"

// linkEtc completes the sandbox's /etc with links to the machine's files, so
// that programs find their configuration and the sandbox can add to it.
func linkEtc(root string) error {
	for _, dir := range []string{"", "profile.d"} {
		entries, err := os.ReadDir(filepath.Join("/etc", dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			dst := filepath.Join(root, "etc", dir, e.Name())
			if _, err := os.Lstat(dst); err == nil {
				continue
			}
			if err := os.Symlink(filepath.Join("/", hostEtc, dir, e.Name()), dst); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *spawner) attributes(u account, tty bool) *syscall.SysProcAttr {
	// The thread lives as long as the sandbox, so that its death means that the
	// emulator was killed, and its processes must not stay behind.
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: !tty}
	if s.confined {
		attr.Credential = &syscall.Credential{Uid: u.uid, Gid: u.uid, Groups: []uint32{u.uid}}
	}
	return attr
}

// members finds the sandbox's processes, whatever they made of their groups
// and sessions.
func (s *spawner) members(id string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	marker := []byte("E2B_SANDBOX_ID=" + id + "\x00")
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if s.namespace != "" {
			if link, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/mnt")); err == nil && link == s.namespace {
				pids = append(pids, pid)
			}
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && bytes.Contains(append([]byte{0}, env...), append([]byte{0}, marker...)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *spawner) signalAll(id string, sig syscall.Signal) {
	for _, pid := range s.members(id) {
		_ = syscall.Kill(pid, sig) // Gone already is as good.
	}
}

// killAll kills the sandbox's processes until none is left: one may have been
// forking while it was looked for.
func (s *spawner) killAll(id string) {
	const rounds = 50
	for range rounds {
		pids := s.members(id)
		alive := false
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) && !zombie(pid) {
				alive = true
			}
		}
		if !alive {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// zombie says whether the process is dead and only waits for its parent.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}

// started and reaped do nothing: the sandbox's processes are found in /proc.
func (s *spawner) started(int) {}

func (s *spawner) reaped(int) {}

// listens says whether a process of the sandbox listens on a TCP port.
func (s *spawner) listens(id string, port uint64) bool {
	inodes := listeners(port)
	if len(inodes) == 0 {
		return false
	}
	for _, pid := range s.members(id) {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if link, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && inodes[link] {
				return true
			}
		}
	}
	return false
}

// listeners gives the sockets that listen on a port, as /proc/<pid>/fd names
// them.
func listeners(port uint64) map[string]bool {
	const listening = "0A"
	sockets := make(map[string]bool)
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			const local, state, inode = 1, 3, 9
			f := strings.Fields(line)
			if len(f) > inode && f[state] == listening && strings.HasSuffix(f[local], suffix) {
				sockets["socket:["+f[inode]+"]"] = true
			}
		}
	}
	return sockets
}
