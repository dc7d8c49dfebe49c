package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/emulator"
)

const (
	// guardTakes and createTakes are how long a guard far away takes to answer, and
	// E2B to make a sandbox: the same for all that is compared.
	guardTakes  = 80 * time.Millisecond
	createTakes = 150 * time.Millisecond
	// programRuns is how many programs are timed of each.
	programRuns = 30

	benchKey   = "e2b_00000000000000000000000000000000000000be"
	benchModel = "sa-bench"
)

// programs compares a client that takes the steps of a code runner in order (ask
// the guard, make a sandbox, run the program, end the sandbox) with one that posts
// the program to the gateway, before the same emulated E2B and the same guard.
type programs struct {
	guard, e2b    string
	plain, pooled *proxy
	http          *http.Client
	close         func()
}

func startPrograms(ctx context.Context, binary string) (p *programs, err error) {
	emu, err := emulator.New(emulator.Options{})
	if err != nil {
		return nil, fmt.Errorf("starting the emulator: %w", err)
	}
	e2b, endE2B, err := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2/sandboxes" {
			w = &lateAnswer{ResponseWriter: w, from: time.Now().Add(createTakes)}
		}
		emu.ServeHTTP(w, r)
	}))
	if err != nil {
		return nil, errors.Join(err, emu.Close())
	}
	guard, endGuard, err := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(guardTakes)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"g","usage":{},"choices":[{"message":{"role":"assistant","content":"{\"classification\":\"pass\"}"}}]}`)
	}))
	p = &programs{guard: guard, e2b: e2b, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	p.close = func() {
		p.http.CloseIdleConnections()
		for _, gateway := range []*proxy{p.plain, p.pooled} {
			if gateway != nil {
				gateway.close()
			}
		}
		endE2B()
		endGuard()
		_ = emu.Close() // Its folders are the system's to clean.
	}
	for _, g := range []struct {
		to      **proxy
		options string
	}{{&p.plain, ""}, {&p.pooled, "pool 2"}} {
		if err == nil {
			*g.to, err = startProxy(ctx, binary, running(e2b, guard, g.options))
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// running is the directive of a gateway that runs programs.
func running(e2b, guard, options string) string {
	return fmt.Sprintf(`e2b_guard {
		upstream {
			api_url %[1]s
			sandbox_url %[1]s
			api_key e2b_00000000000000000000000000000000000000aa
		}
		client bench %[2]s
		guard superagent {
			url %[3]s/api/guard
			api_key %[4]s
		}
		run {
			%[5]s
		}
	}`, e2b, benchKey, guard, benchModel, options)
}

func serve(handler http.Handler) (url string, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", func() {}, fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// lateAnswer does not begin before its time.
type lateAnswer struct {
	http.ResponseWriter
	from time.Time
}

func (l *lateAnswer) WriteHeader(status int) {
	time.Sleep(time.Until(l.from))
	l.ResponseWriter.WriteHeader(status)
}

// measure times programs, one of each kind in turns.
func (p *programs) measure(ctx context.Context) (steps, run, pooled []float64, err error) {
	kinds := []struct {
		times *[]float64
		do    func(context.Context, string) error
	}{
		{&steps, p.inOrder},
		{&run, func(ctx context.Context, code string) error { return p.post(ctx, p.plain, code) }},
		{&pooled, func(ctx context.Context, code string) error { return p.post(ctx, p.pooled, code) }},
	}
	const warmUp = 2
	for i := range programRuns + warmUp {
		for kind, k := range kinds {
			code := fmt.Sprintf("echo %d-%d", i, kind) // Never judged before.
			started := time.Now()
			if err := k.do(ctx, code); err != nil {
				return nil, nil, nil, err
			}
			if i >= warmUp {
				*k.times = append(*k.times, time.Since(started).Seconds())
			}
		}
	}
	return steps, run, pooled, nil
}

// post has a gateway run the program.
func (p *programs) post(ctx context.Context, gateway *proxy, code string) error {
	body, err := json.Marshal(map[string]string{"language": "bash", "code": code})
	if err != nil {
		return fmt.Errorf("encoding a program: %w", err)
	}
	answer, err := p.call(ctx, http.MethodPost, gateway.url+"/run", http.Header{"X-Api-Key": {benchKey}}, body)
	if err == nil && !strings.Contains(string(answer), strings.TrimPrefix(code, "echo ")) {
		err = fmt.Errorf("the program did not run: %s", answer)
	}
	return err
}

// inOrder takes the steps as a client without a gateway does, with as few calls as
// can be.
func (p *programs) inOrder(ctx context.Context, code string) error {
	ask, err := json.Marshal(map[string]string{"prompt": code})
	if err != nil {
		return fmt.Errorf("encoding a question: %w", err)
	}
	if _, err := p.call(ctx, http.MethodPost, p.guard+"/api/guard", nil, ask); err != nil {
		return err
	}
	key := http.Header{"X-Api-Key": {benchKey}}
	created, err := p.call(ctx, http.MethodPost, p.e2b+"/v2/sandboxes", key, []byte(`{"templateID":"base","timeout":80}`))
	if err != nil {
		return err
	}
	var made struct{ SandboxID, EnvdAccessToken string }
	if err := json.Unmarshal(created, &made); err != nil {
		return fmt.Errorf("reading a sandbox: %w", err)
	}
	body, err := startBody(code)
	if err != nil {
		return err
	}
	_, err = p.call(ctx, http.MethodPost, p.e2b+"/process.Process/Start", http.Header{
		"Content-Type": {"application/connect+json"}, "E2b-Sandbox-Id": {made.SandboxID}, "E2b-Sandbox-Port": {envdPort}, "X-Access-Token": {made.EnvdAccessToken},
	}, body)
	_, ended := p.call(ctx, http.MethodDelete, p.e2b+"/sandboxes/"+made.SandboxID, key, nil)
	return errors.Join(err, ended)
}

func (p *programs) call(ctx context.Context, method, url string, header http.Header, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if header != nil {
		req.Header = header.Clone()
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode >= http.StatusBadRequest || bytes.Contains(b, []byte(`"error"`))) {
		err = fmt.Errorf("%s %s answered %d: %s", method, url, resp.StatusCode, b)
	}
	return b, err
}

// comparePrograms are the rows of the table.
func comparePrograms(steps, run, pooled []float64) []comparison {
	const atOnce, warm = 0.7, 0.5
	return []comparison{
		ratio("POST /run, p50", steps, run, milliseconds, atOnce, false),
		ratio("POST /run with a pool, p50", steps, pooled, milliseconds, warm, false),
	}
}
