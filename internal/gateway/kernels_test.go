package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
)

const kernelOne, kernelTwo = "33333333-aaaa-4bbb-8ccc-000000000001", "33333333-aaaa-4bbb-8ccc-000000000002"

// kernelHouse is an interpreter with two contexts whose processes answer to the
// gateway's own scripts with printed.
func kernelHouse(t *testing.T, limits policy.Limits, code http.HandlerFunc, printed func(args []string) (stdout string, exit int)) *house {
	t.Helper()
	return newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/contexts":
			_, _ = io.WriteString(w, `[{"id":"`+kernelOne+`","language":"python"},{"id":"`+kernelTwo+`","language":"r"}]`)
		case "/process.Process/Start":
			b, _ := io.ReadAll(r.Body)
			var start struct{ Process struct{ Args []string } }
			if err := json.Unmarshal(b[5:], &start); err != nil {
				t.Error(err)
			}
			stdout, exit := printed(start.Process.Args[3:])
			data, _ := json.Marshal([]byte(stdout))
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`),
				frame(`{"event":{"data":{"stdout":`+string(data)+`}}}`),
				frame(fmt.Sprintf(`{"event":{"end":{"exitCode":%d,"exited":true,"status":"exit status %d"}}}`, exit, exit)), endFrame(`{}`))
		default:
			code(w, r)
		}
	}, func(cfg *Config) { cfg.Policy.Limits = limits })
}

func execute(t *testing.T, h *house, body string) answer {
	t.Helper()
	return h.do(t, "POST", "/execute", toSandbox("49999", "Content-Type", "application/json", "X-Access-Token", "tok"), strings.NewReader(body))
}

func done(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "{\"type\": \"end_of_execution\"}\n")
}

func TestKernelsGetTheirMemoryLimitOnce(t *testing.T) {
	var asked atomic.Int32
	h := kernelHouse(t, policy.Limits{MemoryBytes: 512 << 20}, done, func(args []string) (string, int) {
		asked.Add(1)
		require.Equal(t, "536870912", args[0])
		require.ElementsMatch(t, []string{kernelOne, kernelTwo}, args[1:])
		return kernelOne + "\n", 0 // the other has not started yet
	})
	for _, step := range []struct {
		body string
		want int32
	}{
		{`{"code":"1"}`, 1},
		{`{"code":"1"}`, 1},
		{`{"code":"1","language":"python"}`, 1},
		{`{"code":"1","context_id":"` + kernelOne + `"}`, 1},
		{`{"code":"1","context_id":"` + kernelTwo + `"}`, 2},
		{`{"code":"1","language":"r"}`, 3},
	} {
		require.Equal(t, 200, execute(t, h, step.body).Status)
		require.Equal(t, step.want, asked.Load(), step.body)
	}
	for _, r := range h.reached() {
		if r.Path == "/process.Process/Start" {
			require.Equal(t, "49983", r.Header.Get("E2b-Sandbox-Port"))
			require.Equal(t, asRoot, r.Header.Get("Authorization"))
			require.Equal(t, "tok", r.Header.Get("X-Access-Token"))
		}
	}
	h.do(t, "POST", "/contexts/"+kernelOne+"/restart", toSandbox("49999"), nil)
	execute(t, h, `{"code":"1","context_id":"`+kernelOne+`"}`)
	require.Equal(t, int32(4), asked.Load(), "the new kernel needs it again")
}

func TestCodeDoesNotRunInAKernelThatCannotBeLimited(t *testing.T) {
	h := kernelHouse(t, policy.Limits{MemoryBytes: 512 << 20}, done, func([]string) (string, int) { return "", 3 })
	require.Contains(t, execute(t, h, `{"code":"1"}`).Body, "could not limit the memory of the interpreter's kernels")
	for _, r := range h.reached() {
		require.NotEqual(t, "/execute", r.Path)
	}
}

// An image without an interpreter says so itself.
func TestWithoutAnInterpreterNothingIsLimited(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "port is not open", http.StatusBadGateway) },
		func(cfg *Config) { cfg.Policy.Limits = policy.Limits{MemoryBytes: 512 << 20} })
	got := execute(t, h, `{"code":"1"}`)
	require.Equal(t, http.StatusBadGateway, got.Status)
	require.Contains(t, got.Body, "port is not open")
}

func TestCodeEndsWhenItsCPUTimeIsUsedUp(t *testing.T) {
	running := func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"code":""`) {
			done(w, r) // the gateway asks whether the code has ended
			return
		}
		_, _ = io.WriteString(w, "{\"type\": \"number_of_executions\", \"execution_count\": 1}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	const before = 500 // ticks that other code had used: 5 s
	var looks atomic.Int64
	h := kernelHouse(t, policy.Limits{CPUSeconds: 1}, running, func(args []string) (string, int) {
		require.Equal(t, []string{kernelOne}, args)
		return fmt.Sprintf("%s %d\n", kernelOne, before+25*looks.Add(1)), 0
	})
	got := execute(t, h, `{"code":"while True: pass"}`)
	require.Contains(t, got.Body, "used 1s of CPU time, the most it may here")
	require.Contains(t, got.Body, `"name":"TimeLimitExceeded"`)
	require.Equal(t, int64(5), looks.Load(), "a tenth was used before the first look")
	require.Equal(t, 1, h.log.FilterField(zapString("code", "cpu_seconds")).Len())
}

func TestShortCodeIsNotAskedForItsCPUTime(t *testing.T) {
	h := kernelHouse(t, policy.Limits{CPUSeconds: 300}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{\"type\": \"number_of_executions\", \"execution_count\": 1}\n")
		done(w, r)
	}, nil)
	require.Equal(t, 200, execute(t, h, `{"code":"1"}`).Status)
	require.Len(t, h.reached(), 1)
}
