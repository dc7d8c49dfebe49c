//go:build !linux

package emulator

import (
	"sync"
	"syscall"
)

// spawnerOS remembers process groups: there is no portable way to find the
// processes of a sandbox otherwise.
type spawnerOS struct {
	mu     sync.Mutex
	groups []int
}

func onMainThread() bool { return false }

func probeConfinement() confinement {
	return confinement{why: "mount namespaces exist on Linux only"}
}

func (s *spawner) enter() error { return nil }

func (s *spawner) attributes(_ account, tty bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !tty}
}

func (s *spawner) signalAll(_ string, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range s.groups {
		_ = syscall.Kill(-group, sig) // Gone already is as good.
	}
}

func (s *spawner) killAll(id string) { s.signalAll(id, syscall.SIGKILL) }

func (s *spawner) started(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, pid)
}
