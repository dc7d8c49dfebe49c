package caddymodule

import (
	"strings"

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
		return &shared{state: gateway.NewState()}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*shared), nil
}

func releaseShared(key string) error {
	_, err := pool.Delete(key)
	return err
}

var _ caddy.Destructor = (*shared)(nil)
