package caddymodule

import (
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.uber.org/zap"
)

// adminWarning is the same wherever the admin endpoint is found open.
const adminWarning = "Caddy's admin endpoint listens on TCP, where any process of this host (in Kubernetes: any container of the pod) " +
	"can change the configuration and so switch e2b_guard off; write `admin unix//run/e2bguard/admin.sock` or `admin off` in the global options"

// adaptLogger is where warnings about a Caddyfile go, for tests to replace.
var adaptLogger = func() *zap.Logger { return caddy.Log().Named("http.handlers.e2b_guard") }

const adminWarnedKey = "e2b_guard.admin_warned"

// adminWarned keeps the warning of Provision quiet after that of the Caddyfile,
// which knows the address.
var adminWarned atomic.Bool

// warnAdmin warns about a TCP admin endpoint when a Caddyfile is adapted:
// `validate` included, for the handler itself cannot see that part of the
// configuration.
func warnAdmin(h httpcaddyfile.Helper) {
	if h.State[adminWarnedKey] != nil {
		return
	}
	h.State[adminWarnedKey] = true
	listen := caddy.DefaultAdminListen
	if admin, ok := h.Option("admin").(*caddy.AdminConfig); ok && admin != nil {
		if admin.Disabled {
			adminWarned.Store(true)
			return
		}
		if admin.Listen != "" {
			listen = admin.Listen
		}
	}
	adminWarned.Store(true)
	if overTCP(listen) {
		adaptLogger().Warn(adminWarning, zap.String("admin", listen))
	}
}

// warnDefaultAdmin warns when the default TCP admin endpoint is up, for
// configurations that were written in JSON.
func warnDefaultAdmin(logger *zap.Logger) {
	if adminWarned.Load() || !overTCP(caddy.DefaultAdminListen) {
		return
	}
	addr, err := caddy.ParseNetworkAddress(caddy.DefaultAdminListen)
	if err == nil && caddy.ListenerUsage(addr.Network, addr.JoinHostPort(0)) > 0 {
		logger.Warn(adminWarning, zap.String("admin", caddy.DefaultAdminListen))
	}
}

func overTCP(listen string) bool {
	addr, err := caddy.ParseNetworkAddress(listen)
	return err != nil || !(addr.IsUnixNetwork() || strings.HasPrefix(addr.Network, "fd"))
}
