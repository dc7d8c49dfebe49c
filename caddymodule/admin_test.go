package caddymodule

import (
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestAdminEndpointOnTCPIsWarnedAbout(t *testing.T) {
	for options, warned := range map[string]bool{
		"":                                  true, // Caddy's default
		"admin localhost:2020":              true,
		"admin :2019":                       true,
		"admin 0.0.0.0:2019":                true,
		"admin off":                         false,
		"admin unix//run/x/admin.sock":      false,
		"admin unix//run/x/admin.sock|0200": false,
	} {
		t.Run(options, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			before := adaptLogger
			adaptLogger = func() *zap.Logger { return zap.New(core) }
			defer func() { adaptLogger = before }()
			_, err := adapt("{\n\t" + options + "\n}\n:8080 {\n\te2b_guard\n}\n:8081 {\n\te2b_guard\n}\n")
			require.NoError(t, err)
			if warned {
				assert.Equal(t, 1, logs.Len(), "once, however many handlers there are")
			} else {
				assert.Zero(t, logs.Len())
			}
		})
	}
}

// TestAdminWarningCoversJSON: a configuration in JSON was not seen by the
// Caddyfile adapter.
func TestAdminWarningCoversJSON(t *testing.T) {
	before := caddy.DefaultAdminListen
	t.Cleanup(func() { caddy.DefaultAdminListen = before; require.NoError(t, caddy.Stop()) })
	caddy.DefaultAdminListen = freeAddress(t)
	adminWarned.Store(false)
	require.NoError(t, caddy.Load([]byte(`{"admin":{"config":{"persist":false}}}`), true))
	core, logs := observer.New(zap.WarnLevel)
	warnDefaultAdmin(zap.New(core))
	assert.Equal(t, 1, logs.Len())

	require.NoError(t, caddy.Load([]byte(`{"admin":{"disabled":true}}`), true))
	caddy.DefaultAdminListen = "unix/" + filepath.Join(t.TempDir(), "admin.sock")
	warnDefaultAdmin(zap.New(core))
	assert.Equal(t, 1, logs.Len(), "a socket is no reason to warn")
}
