package emulator

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// confinement says what this machine lets the emulator do, so that absolute
// paths mean the same to commands as to the files API.
type confinement struct {
	chroot bool
	why    string // why not, if not
}

func (c confinement) describe() string {
	if c.chroot {
		return "Commands see the sandbox's folder as \"/\" (own mount namespace), so absolute paths agree with the files API."
	}
	return "Commands see this machine's real paths (" + c.why + "): relative paths and $HOME are the sandbox's, " +
		"absolute paths such as /home/user are not."
}

// account is a user of a sandbox.
type account struct {
	name string
	uid  uint32
	home string
}

var accounts = map[string]account{
	"user": {name: "user", uid: 1000, home: "/home/user"},
	"root": {name: "root", uid: 0, home: "/root"},
}

const defaultUser = "user"

// spawner starts a sandbox's processes, all from one OS thread, which carries
// the sandbox's mount namespace and root where there are such.
type spawner struct {
	confined bool
	fs       *sandboxFS
	jobs     chan func()
	stop     chan struct{}
	stopOnce sync.Once
	exited   chan struct{}
	spawnerOS
}

func newSpawner(c confinement, files *sandboxFS) *spawner {
	s := &spawner{
		confined: c.chroot, fs: files,
		jobs: make(chan func()), stop: make(chan struct{}), exited: make(chan struct{}),
	}
	ready := make(chan error, 1)
	go s.loop(ready)
	if err := <-ready; err != nil {
		// Without the namespace the thread is of no use: begin again without it.
		s.confined, s.exited = false, make(chan struct{})
		go s.loop(ready)
		<-ready
	}
	return s
}

// loop owns one OS thread until close. The thread is not given back to the
// runtime, since its namespace and root differ from the others'.
func (s *spawner) loop(ready chan<- error) {
	runtime.LockOSThread()
	if onMainThread() {
		// The main thread must keep its root; holding it makes the runtime take
		// another one for the second goroutine.
		moved := make(chan struct{})
		go func() { close(moved); s.loop(ready) }()
		<-moved
		runtime.UnlockOSThread()
		return
	}
	defer close(s.exited)
	if s.confined {
		if err := s.enter(); err != nil {
			ready <- err
			return
		}
	}
	ready <- nil
	for {
		select {
		case job := <-s.jobs:
			job()
		case <-s.stop:
			return
		}
	}
}

func (s *spawner) close() {
	s.stopOnce.Do(func() { close(s.stop) })
	<-s.exited
}

var errSandboxEnded = errors.New("the sandbox has ended")

// on runs f on the sandbox's thread.
func (s *spawner) on(f func() error) error {
	done := make(chan error, 1)
	select {
	case s.jobs <- func() { done <- f() }:
		return <-done
	case <-s.stop:
		return errSandboxEnded
	}
}

// prepare makes cmd one of the sandbox: directory, user, environment, group.
// cwd is a sandbox path that exists.
func (s *spawner) prepare(cmd *exec.Cmd, u account, cwd string, env map[string]string, tty bool) error {
	host, err := s.fs.hostPath(cwd)
	if err != nil {
		return err
	}
	home, err := s.fs.hostPath(u.home)
	if err != nil {
		return err
	}
	temp := filepath.Join(s.fs.dir, "tmp")
	tools := filepath.Join(s.fs.dir, "opt/e2b/bin")
	if s.confined {
		resolved, err := s.fs.resolve(cwd, true)
		if err != nil {
			return err
		}
		host, home, temp, tools = resolved, u.home, "/tmp", "/opt/e2b/bin"
	}
	cmd.Dir = host
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH") + ":" + tools, "HOME=" + home, "USER=" + u.name, "LOGNAME=" + u.name,
	}
	if !s.confined {
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = s.attributes(u, tty)
	return nil
}
