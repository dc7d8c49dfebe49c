package caddymodule

import (
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

// pool holds what must outlive a reload of the configuration and be one for
// several handlers before the same E2B account.
var pool = caddy.NewUsagePool()

// shared is what handlers before the same account share: what is known about
// running sandboxes.
type shared struct {
	state *gateway.State

	mu sync.Mutex
	// handlers are those that still have something to do: whether they are part of
	// the running configuration, or were replaced.
	handlers map[*Handler]bool
}

func (s *shared) join(h *Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[h] = true
}

// leave takes a handler out of the running configuration. If that has none for
// the account any more, it returns all that still have something to do: nothing
// comes after them.
func (s *shared) leave(h *Handler) (last []*Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.handlers[h]; there {
		s.handlers[h] = false
	}
	for other, running := range s.handlers {
		if running {
			return nil
		}
		last = append(last, other)
	}
	return last
}

func (s *shared) forget(h *Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handlers, h)
}

// Destruct implements caddy.Destructor.
func (*shared) Destruct() error { return nil }

// stateKey tells accounts apart: handlers for different E2B keys must not share
// what is known about sandboxes, since their clients may go by the same names.
func stateKey(u gateway.Upstream) string {
	return strings.Join([]string{u.APIURL.String(), u.SandboxURL.String(), u.APIKey.String()}, " ")
}

func acquireShared(key string) (*shared, error) {
	v, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) {
		return &shared{state: gateway.NewState(), handlers: map[*Handler]bool{}}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*shared), nil
}

// releaseShared reports whether nobody else shares it.
func releaseShared(key string) (last bool, err error) { return pool.Delete(key) }

var _ caddy.Destructor = (*shared)(nil)
