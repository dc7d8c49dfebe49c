package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// proxy is one process of the built binary, and a client of its own.
type proxy struct {
	url  string
	http *http.Client
	idle int64 // Resident bytes before the first request.

	process *exec.Cmd
	dir     string
	log     bytes.Buffer
}

// startProxy runs the binary with one directive for every request.
func startProxy(ctx context.Context, binary, directive string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, fmt.Errorf("finding a port: %w", err)
	}
	dir, err := os.MkdirTemp("", "e2bguard-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	config := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://%s {\n\t%s\n}\n", address, directive)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}

	const connections = 64
	p := &proxy{
		url: "http://" + address,
		dir: dir,
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: connections,
			DisableCompression:  true,
			WriteBufferSize:     chunkBytes,
			ReadBufferSize:      chunkBytes,
		}},
	}
	p.process = exec.CommandContext(ctx, binary, "run", "--config", config, "--adapter", "caddyfile") //nolint:gosec // The binary under test.
	p.process.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "TMPDIR="+dir)
	p.process.Stdout, p.process.Stderr = &p.log, &p.log
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	if err := p.ready(ctx, address); err != nil {
		p.close()
		return nil, fmt.Errorf("%w; it said:\n%s", err, p.log.String())
	}
	p.idle, err = resident(p.process.Process.Pid)
	return p, err
}

// ready waits until the process accepts connections and has settled.
func (p *proxy) ready(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	const settle = time.Second
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			time.Sleep(settle)
			return nil
		}
		if ctx.Err() != nil {
			return errors.New("it does not listen")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *proxy) close() {
	p.http.CloseIdleConnections()
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
	_ = os.RemoveAll(p.dir)
}

// peak runs work and returns the most resident bytes seen meanwhile.
func (p *proxy) peak(work func() error) (int64, error) {
	done := make(chan error, 1)
	go func() { done <- work() }()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var most int64
	for {
		select {
		case err := <-done:
			return most, err
		case <-ticker.C:
			if now, err := resident(p.process.Process.Pid); err == nil {
				most = max(most, now)
			}
		}
	}
}

// resident returns the resident bytes of a process.
func resident(pid int) (int64, error) {
	if statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
		fields := strings.Fields(string(statm))
		pages, err := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize()), err
	}
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // A number.
	if err != nil {
		return 0, fmt.Errorf("reading memory: %w", err)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return kib << 10, err
}
