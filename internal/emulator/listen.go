package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Listen serves an emulator on addr until ctx ends, then ends its sandboxes.
// ready is told the address it listens on.
//
// Unless unsafeExpose is set, addr must be a loopback address: whoever reaches
// the emulator runs commands as its user.
func Listen(ctx context.Context, addr string, unsafeExpose bool, opts Options, ready func(net.Addr)) error {
	if !unsafeExpose {
		if err := checkLoopback(addr); err != nil {
			return err
		}
	}
	e, err := New(opts)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Join(fmt.Errorf("listening on %s: %w", addr, err), e.Close())
	}
	if ready != nil {
		ready(listener.Addr())
	}
	return errors.Join(e.serve(ctx, listener), e.Close())
}

func (e *Emulator) serve(ctx context.Context, listener net.Listener) error {
	const headerTimeout = 30 * time.Second
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
		e.own.Store(int64(tcp.Port))
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: e, ReadHeaderTimeout: headerTimeout, Protocols: protocols}
	stopped := make(chan struct{})
	defer func() { <-stopped }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close() // Streams of a running command would keep Shutdown waiting.
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// isOwn says whether a port is the emulator's own: forwarding there would be a
// loop.
func (e *Emulator) isOwn(port uint64) bool { return e.own.Load() == int64(port) } // Checked by the caller.

func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("listen address %q is not a loopback address, and whoever reaches the emulator runs commands as this user; "+
		"use 127.0.0.1, or --unsafe-expose if that is wanted", addr)
}
