package caddymodule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/emulator"
)

// runMainEnv makes the test binary the program.
const runMainEnv = "E2BGUARD_TEST_RUN_MAIN"

func runMain() { caddycmd.Main() }

// crashRoundsEnv is how often the program is killed; 10 times without it.
const crashRoundsEnv = "E2BGUARD_CRASH_ROUNDS"

const (
	reaperAccountKey = "e2b_00000000000000000000000000000000000000aa"
	reaperClientKey  = "e2b_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// yard is a gateway with client keys before an emulated E2B.
type yard struct {
	dir, caddyfile, base, audit string
	emu                         *emulator.Emulator
}

func newYard(t *testing.T, reaper string) *yard {
	t.Helper()
	dir := t.TempDir()
	emu, err := emulator.New(emulator.Options{Dir: filepath.Join(dir, "emulator")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, emu.Close()) })
	up := httptest.NewServer(emu)
	t.Cleanup(up.Close)
	addr := freeAddress(t)
	y := &yard{dir: dir, base: "http://" + addr, audit: filepath.Join(dir, "audit.jsonl"), emu: emu}
	y.caddyfile = fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	grace_period 2s
}
http://%s {
	e2b_guard {
		upstream {
			api_url     %s
			sandbox_url %s
			api_key     %s
		}
		client team-a %s
		seal_key %s
		limits {
			sandbox_lifetime 1h
			memory off
		}
		persistence allow pause
		reaper {
			%s
		}
		audit %s {
			rotate 256KiB
		}
	}
}
`, addr, up.URL, up.URL, reaperAccountKey, reaperClientKey, strings.Repeat("5e", 32), reaper, y.audit)
	return y
}

// start runs the program until the test ends, or it is killed.
func (y *yard) start(t *testing.T) *exec.Cmd {
	t.Helper()
	path := filepath.Join(y.dir, "Caddyfile")
	require.NoError(t, os.WriteFile(path, []byte(y.caddyfile), 0o600))
	cmd := exec.Command(os.Args[0], "run", "--config", path, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), runMainEnv+"=1", "XDG_DATA_HOME="+y.dir, "XDG_CONFIG_HOME="+y.dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(y.base, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	return cmd
}

// send makes a call on a connection of its own.
func (y *yard) send(method, path string, header http.Header, body string) (int, []byte, error) {
	req, err := http.NewRequest(method, y.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header = header
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

func (y *yard) control(method, path, body string) (int, []byte, error) {
	return y.send(method, path, http.Header{"X-Api-Key": {reaperClientKey}}, body)
}

// made is a sandbox as its client knows it.
type yardSandbox struct{ SandboxID, EnvdAccessToken string }

func (y *yard) create() (sb yardSandbox, err error) {
	status, b, err := y.control(http.MethodPost, "/v2/sandboxes", `{"templateID":"base","timeout":3600}`)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("%d: %s", status, b)
	}
	if err == nil {
		err = json.Unmarshal(b, &sb)
	}
	return sb, err
}

func (y *yard) mustCreate(t *testing.T) yardSandbox {
	t.Helper()
	sb, err := y.create()
	require.NoError(t, err)
	return sb
}

func (sb yardSandbox) header() http.Header {
	return http.Header{
		"E2b-Sandbox-Id": {sb.SandboxID}, "E2b-Sandbox-Port": {"49983"}, "X-Access-Token": {sb.EnvdAccessToken},
		"Content-Type": {"application/connect+json"}, "Connect-Protocol-Version": {"1"},
	}
}

func (y *yard) run(sb yardSandbox, line string) error {
	start, err := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/sh", "args": []string{"-c", line}}, "stdin": false})
	if err != nil {
		return err
	}
	_, _, err = y.send(http.MethodPost, "/process.Process/Start", sb.header(), frame(0, string(start)))
	return err
}

// alive are the ids of the sandboxes that E2B runs.
func (y *yard) alive(t *testing.T) []string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/sandboxes", nil)
	r.Host = "127.0.0.1"
	r.Header.Set("X-Api-Key", reaperAccountKey)
	w := httptest.NewRecorder()
	y.emu.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	var list []yardSandbox
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
	ids := []string{}
	for _, sb := range list {
		ids = append(ids, sb.SandboxID)
	}
	slices.Sort(ids)
	return ids
}

// ended are the causes of the ends on record, by sandbox.
func (y *yard) ended(t *testing.T) map[string][]string {
	t.Helper()
	causes := map[string][]string{}
	for _, path := range audit.Files(y.audit) {
		f, err := os.Open(path)
		require.NoError(t, err)
		_, _, err = audit.Read(f, func(r audit.Record, _ []byte) bool {
			if r.Kind == audit.KindTeardown {
				causes[r.Sandbox] = append(causes[r.Sandbox], r.DestroyedBy)
			}
			return true
		})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return causes
}

// verified checks the audit log and returns whether it was closed in order.
func (y *yard) verified(t *testing.T) {
	t.Helper()
	reports, err := audit.Verify(audit.Files(y.audit), audit.VerifyOptions{})
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Empty(t, reports[0].Problems)
}

// e2b-dev/E2B#1005, vm0-ai/vm0#338: a client, or the gateway, dies before it kills
// a sandbox. Whenever that is, the next process finds what was left behind, ends
// it, and the record of it all is whole.
func TestNothingIsLeftAliveAfterCrashes(t *testing.T) {
	rounds := 10
	if n := os.Getenv(crashRoundsEnv); n != "" {
		var err error
		rounds, err = strconv.Atoi(n)
		require.NoError(t, err)
	}
	y := newYard(t, "interval 1s\n\t\t\tidle_grace 2s")
	left := 0
	for range rounds {
		child := y.start(t)
		var made atomic.Int32
		first := make(chan struct{})
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for i := 0; ; i++ {
					sb, err := y.create()
					if err != nil {
						return // killed
					}
					if made.Add(1) == 1 {
						close(first)
					}
					if y.run(sb, "echo hello") != nil {
						return
					}
					if i%3 == 0 { // the others forget it
						if _, _, err := y.control(http.MethodDelete, "/sandboxes/"+sb.SandboxID, ""); err != nil {
							return
						}
					}
				}
			})
		}
		<-first
		time.AfterFunc(rand.N(300*time.Millisecond), func() { _ = child.Process.Kill() })
		clients.Wait()
		_ = child.Wait() // it was killed
		left += len(y.alive(t))
	}
	require.Positive(t, left, "no round left a sandbox behind")

	orphans := y.alive(t)
	child := y.start(t)
	require.Eventually(t, func() bool { return len(y.alive(t)) == 0 }, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	require.NoError(t, child.Wait())
	y.verified(t)
	ended := y.ended(t)
	for _, id := range orphans {
		assert.Equal(t, []string{"idle"}, ended[id], id)
	}
}

// A process that is told to stop ends what it has made, if asked, streams or not,
// and has it on record before it is gone.
func TestStopEndsWhatTheProcessMade(t *testing.T) {
	for name, tt := range map[string]struct {
		option string
		kill   bool
	}{"keep": {"interval 1m", false}, "kill": {"on_exit kill", true}} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, tt.option)
			child := y.start(t)
			idle, busy, paused := y.mustCreate(t), y.mustCreate(t), y.mustCreate(t)
			status, body, err := y.control(http.MethodPost, "/sandboxes/"+paused.SandboxID+"/pause", "{}")
			require.NoError(t, err)
			require.Equal(t, http.StatusNoContent, status, string(body))
			req, err := http.NewRequest(http.MethodPost, y.base+"/process.Process/Start", strings.NewReader(frame(0, `{"process":{"cmd":"/bin/sleep","args":["600"]},"stdin":false}`)))
			require.NoError(t, err)
			req.Header = busy.header()
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			_, err = io.ReadFull(resp.Body, make([]byte, 5))
			require.NoError(t, err)

			require.NoError(t, child.Process.Signal(syscall.SIGTERM))
			require.NoError(t, child.Wait())
			y.verified(t)
			want := slices.Sorted(slices.Values([]string{idle.SandboxID, busy.SandboxID}))
			if !tt.kill {
				assert.Equal(t, want, y.alive(t))
				assert.Empty(t, y.ended(t))
				return
			}
			assert.Empty(t, y.alive(t))
			assert.Equal(t, map[string][]string{idle.SandboxID: {"shutdown"}, busy.SandboxID: {"shutdown"}}, y.ended(t))
		})
	}
}

// A reload is no stop, and what it replaces loses nothing that is known: neither of
// what was made nor of what is in use.
func TestReloadsEndNoSandbox(t *testing.T) {
	y := newYard(t, "interval 1s\n\t\t\tidle_grace 2s\n\t\t\ton_exit kill")
	serve(t, y.caddyfile)
	busy := y.mustCreate(t)
	reader, writer := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		req, err := http.NewRequest(http.MethodPost, y.base+"/process.Process/Start", strings.NewReader(frame(0, `{"process":{"cmd":"/bin/sh","args":["-c","sleep 4"]},"stdin":false}`)))
		if err == nil {
			req.Header = busy.header()
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				_, err = io.Copy(writer, resp.Body)
				_ = resp.Body.Close()
			}
		}
		_ = writer.CloseWithError(err)
		ran <- err
	}()
	_, err := io.ReadFull(reader, make([]byte, 5))
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends with its writer
	for i := range 5 {
		load(t, strings.Replace(y.caddyfile, "memory off", fmt.Sprintf("memory off\n\t\t\toutput %dMiB", i+1), 1))
		require.Equal(t, []string{busy.SandboxID}, y.alive(t))
	}
	require.NoError(t, <-ran)
	assert.Equal(t, []string{busy.SandboxID}, y.alive(t), "its stream lasted longer than the grace")
	made := y.mustCreate(t)
	require.NoError(t, caddy.Stop())
	require.Eventually(t, func() bool { return len(y.alive(t)) == 0 }, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { _, known := auditLogs.References(y.audit); return !known }, 10*time.Second, 10*time.Millisecond)
	ended := y.ended(t)
	assert.Equal(t, []string{"shutdown"}, ended[made.SandboxID])
	assert.Equal(t, []string{"shutdown"}, ended[busy.SandboxID])
	y.verified(t)
}

// What ended is counted over reloads, for all handlers of the process together.
func TestMetricsCountEndedSandboxes(t *testing.T) {
	y := newYard(t, "interval 1s\n\t\t\tidle_grace 1s")
	metricsAt := freeAddress(t)
	y.caddyfile += "http://" + metricsAt + " {\n\tmetrics\n}\n"
	serve(t, y.caddyfile)
	scrape := func() string {
		_, body := call(t, http.MethodGet, "http://"+metricsAt+"/", nil, "")
		return body
	}
	assert.Contains(t, scrape(), "caddy_e2b_guard_teardowns_pending 0")
	y.mustCreate(t)
	y.mustCreate(t)
	want := `caddy_e2b_guard_teardowns_total{cause="idle",confirmed="true"} 2`
	require.Eventually(t, func() bool { return strings.Contains(scrape(), want) }, 15*time.Second, 50*time.Millisecond)
	load(t, strings.Replace(y.caddyfile, "memory off", "memory off\n\t\t\toutput 1MiB", 1))
	assert.Contains(t, scrape(), want)
}
