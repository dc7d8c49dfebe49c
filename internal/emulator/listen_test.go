package emulator

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListenRefusesToBeExposed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1"} {
		require.Error(t, Listen(t.Context(), addr, false, Options{}, nil), addr)
	}
	require.ErrorContains(t, Listen(t.Context(), "0.0.0.0:0", false, Options{}, nil), "--unsafe-expose")
}

func TestListenServesBothHTTPVersionsUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- Listen(ctx, "127.0.0.1:0", false, Options{}, func(a net.Addr) { ready <- a })
	}()
	url := "http://" + (<-ready).String()
	for version := 1; version <= 2; version++ {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(version == 1)
		protocols.SetUnencryptedHTTP2(version == 2)
		transport := &http.Transport{Protocols: protocols}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v2/sandboxes", strings.NewReader(`{"templateID":"base"}`))
		require.NoError(t, err)
		req.Header.Set("X-API-Key", "k")
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, version, resp.ProtoMajor)
		require.Equal(t, http.StatusCreated, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		transport.CloseIdleConnections()
	}
	cancel()
	require.NoError(t, <-done)
}

// A folder that was given stays, but nothing of the emulator's in it.
func TestCloseEmptiesAGivenFolder(t *testing.T) {
	dir := t.TempDir()
	e, err := New(Options{Dir: dir})
	require.NoError(t, err)
	sb, err := e.start(sandboxSpec{template: "base", timeout: time.Minute})
	require.NoError(t, err)
	s := &snapshot{id: "t/s:default", dir: filepath.Join(dir, "snapshot-x")}
	require.NoError(t, copyTree(filepath.Join(sb.dir, "root"), s.dir))
	e.snapshots[s.id] = s
	require.NoError(t, e.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = e.start(sandboxSpec{template: "base", timeout: time.Minute})
	require.ErrorIs(t, err, errClosed)
}
