//go:build !linux

package emulator

import (
	"errors"
	"slices"
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

// reaped forgets a group that is empty: its number may be another's soon.
func (s *spawner) reaped(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) {
		s.groups = slices.DeleteFunc(s.groups, func(group int) bool { return group == pid })
	}
}

// listens cannot tell whose a port is.
func (s *spawner) listens(string, uint64) bool { return true }
