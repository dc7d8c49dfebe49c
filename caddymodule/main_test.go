package caddymodule

import (
	"fmt"
	"os"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestMain gives Caddy a storage that no other program uses: the seal key is kept
// there.
func TestMain(m *testing.M) {
	if os.Getenv(runMainEnv) != "" {
		runMain()
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "e2bguard-storage-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	caddy.DefaultStorage.Path = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // The system cleans up what is left.
	os.Exit(code)
}
