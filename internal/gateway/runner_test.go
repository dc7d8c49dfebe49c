package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// runHouse is a gateway that runs programs before an emulated E2B, whose answers
// can be tampered with.
type runHouse struct {
	*vaultHouse
	mu     sync.Mutex
	tamper func(w http.ResponseWriter, r *http.Request, e2b http.Handler)
}

// runs opens the endpoint. Memory is not limited: the test's own process may have a
// lower limit.
func runs(cfg *Config) {
	cfg.Run = &Run{Timeout: 20 * time.Second, CPUSeconds: 5, OutputBytes: 1 << 20}
}

func newRunHouse(t *testing.T, edits ...func(*Config)) *runHouse {
	t.Helper()
	h := new(runHouse)
	e2b := newEmulator(t)
	v := &vaultHouse{e2b: e2b, guard: new(wordGuard), state: NewState()}
	h.vaultHouse = v
	v.house = newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		tamper := h.tamper
		h.mu.Unlock()
		if tamper != nil {
			tamper(w, r, e2b)
			return
		}
		e2b.ServeHTTP(w, r)
	}, func(cfg *Config) {
		vault(cfg)
		runs(cfg)
		cfg.Guard, cfg.State = v.guard, v.state
		for _, edit := range edits {
			edit(cfg)
		}
	})
	return h
}

func (h *runHouse) tampering(tamper func(w http.ResponseWriter, r *http.Request, e2b http.Handler)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tamper = tamper
}

// ran is an answer of POST /run.
type ran struct {
	Type, Status, Code, Reasoning, Stdout, Stderr string
	Text                                          string
	Truncated                                     bool
	ExitCode                                      *int   `json:"exit_code"`
	RequestID                                     string `json:"request_id"`
}

// run sends a program and reads the answer.
func (h *runHouse) run(t *testing.T, members map[string]any) (ran, answer) {
	t.Helper()
	b, err := json.Marshal(members)
	require.NoError(t, err)
	return h.runRaw(t, string(b))
}

func (h *runHouse) runRaw(t *testing.T, body string) (ran, answer) {
	t.Helper()
	got := h.do(t, "POST", "/run", headers("X-Api-Key", keyA, "Content-Type", "application/json"), strings.NewReader(body))
	var r ran
	require.NoError(t, json.Unmarshal([]byte(got.Body), &r), got.Body)
	require.NotEmpty(t, r.RequestID)
	return r, got
}

// left are the sandboxes that E2B has.
func (h *runHouse) left(t *testing.T) []string {
	t.Helper()
	got := h.direct(t, "GET", "/v2/sandboxes", nil, nil)
	require.Equal(t, 200, got.Status, got.Body)
	var list []struct{ SandboxID string }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &list))
	var ids []string
	for _, s := range list {
		ids = append(ids, s.SandboxID)
	}
	return ids
}

func (h *runHouse) nothingLeft(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(h.left(t)) == 0 }, 10*time.Second, 5*time.Millisecond, "a sandbox was left alive")
}

// calls are the method and path of what reached E2B.
func (h *runHouse) calls() []string {
	var list []string
	for _, r := range h.reached() {
		path := r.Path
		if strings.HasPrefix(path, "/sandboxes/") {
			path = "/sandboxes/{id}"
		}
		list = append(list, r.Method+" "+path)
	}
	return list
}

func TestRunGivesBackWhatTheProgramDid(t *testing.T) {
	h := newRunHouse(t)
	for name, c := range map[string]struct {
		request        map[string]any
		stdout, stderr string
		exit           int
	}{
		"python":             {map[string]any{"language": "python", "code": "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)"}, "out\n", "err\n", 3},
		"node":               {map[string]any{"language": "node", "code": "console.log(process.argv.length); console.error('err')"}, "2\n", "err\n", 0},
		"javascript is node": {map[string]any{"language": "JavaScript", "code": "console.log(typeof require)"}, "function\n", "", 0},
		"bash":               {map[string]any{"language": "bash", "code": "echo $0; exit 7"}, "main.sh\n", "", 7},
		"no standard input":  {map[string]any{"language": "python", "code": "import sys; print(repr(sys.stdin.read()))"}, "''\n", "", 0},
		"files":              {map[string]any{"language": "python", "code": "import helper; print(helper.f(), open('data/in.csv').read())", "files": map[string]string{"helper.py": "def f(): return 'help'", "data/in.csv": "1,2"}}, "help 1,2\n", "", 0},
		"bytes":              {map[string]any{"language": "python", "code": "print(open('b.bin','rb').read())", "files": map[string]any{"b.bin": map[string]string{"base64": "AP8="}}}, "b'\\x00\\xff'\n", "", 0},
		"what is no UTF-8":   {map[string]any{"language": "python", "code": "import os; os.write(1, b'a\\xffb')"}, "a\uFFFDb", "", 0},
		"an angle bracket":   {map[string]any{"language": "bash", "code": "echo '<é>'"}, "<é>\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, raw := h.run(t, c.request)
			require.Equal(t, 200, raw.Status, raw.Body)
			assert.Equal(t, "application/json", raw.Header.Get("Content-Type"))
			assert.Equal(t, "pass", got.Status, raw.Body)
			assert.Equal(t, c.stdout, got.Stdout)
			assert.Equal(t, c.stderr, got.Stderr)
			require.NotNil(t, got.ExitCode, raw.Body)
			assert.Equal(t, c.exit, *got.ExitCode)
			assert.False(t, got.Truncated)
			assert.Contains(t, raw.Header.Get("E2b-Guard"), "pass; id="+got.RequestID)
			h.nothingLeft(t)
		})
	}
}

// The guard sees exactly the text that is run, once, in its language, and every
// file; nothing is asked about the calls that carry it.
func TestRunIsJudgedOnceInItsLanguage(t *testing.T) {
	h := newRunHouse(t)
	code := "import helper\nprint(1)\n"
	got, raw := h.run(t, map[string]any{"language": "py", "code": code, "files": map[string]string{"helper.py": "x = 1", "notes.csv": "evidence,1"}})
	require.Equal(t, "pass", got.Status, raw.Body)

	seen := map[string]guard.Subject{}
	for _, s := range h.guard.saw() {
		require.NotContains(t, seen, s.Target, "judged twice")
		seen[s.Target] = s
	}
	require.Len(t, seen, 3)
	program := seen["main.py"]
	assert.Equal(t, guard.KindCode, program.Kind)
	assert.Equal(t, "python", program.Language)
	assert.Equal(t, code, program.Text)
	assert.Equal(t, "team-a", program.Labels[guard.LabelClient])
	assert.Equal(t, "program.run", program.Labels[guard.LabelOperation])
	assert.Equal(t, []guard.File{{Path: "/home/user/run/helper.py", Text: "x = 1"}}, program.Files, "with what it loads")
	assert.Equal(t, "x = 1", seen["/home/user/run/helper.py"].Text)
	assert.Equal(t, guard.KindFile, seen["/home/user/run/notes.csv"].Kind)
	assert.Empty(t, seen["/home/user/run/notes.csv"].Text, "data")
	for _, r := range h.reached() {
		if r.Path == "/files" {
			assert.Contains(t, string(r.Body), code)
		}
	}
}

// A block destroys the sandbox before anything reached it.
func TestBlockedRunLeavesNothing(t *testing.T) {
	for name, request := range map[string]map[string]any{
		"program": {"language": "python", "code": "evil()"},
		"file":    {"language": "python", "code": "print(1)", "files": map[string]string{"x.py": "evil()"}},
		"path":    {"language": "python", "code": "print(1)", "files": map[string]string{"evil.csv": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, edit := audited(t, audit.Options{})
			h := newRunHouse(t, edit)
			got, raw := h.run(t, request)
			require.Equal(t, 200, raw.Status, raw.Body)
			assert.Equal(t, "block", got.Status)
			assert.Equal(t, "policy", got.Code)
			assert.Contains(t, got.Reasoning, "the text contains the word evil")
			assert.Nil(t, got.ExitCode)
			assert.Contains(t, raw.Header.Get("E2b-Guard"), "block; id="+got.RequestID)
			require.Eventually(t, func() bool { return len(b.teardowns(t)) == 1 }, 10*time.Second, 5*time.Millisecond)
			require.Empty(t, h.left(t))
			assert.Equal(t, []string{"POST /v2/sandboxes", "DELETE /sandboxes/{id}", "GET /sandboxes/{id}"}, h.calls())

			decisions, outcomes := b.records(t)
			decided := map[string]string{}
			for _, d := range decisions {
				decided[d.Operation] = d.Decision.Decision
				if d.Operation == "program.run" {
					assert.Equal(t, got.RequestID, d.ID)
				}
			}
			assert.Equal(t, map[string]string{"sandbox.create": "allow", "program.run": "block"}, decided)
			teardown := outcomes[len(outcomes)-1]
			assert.Equal(t, "run", teardown.DestroyedBy)
			assert.Equal(t, "team-a", teardown.Client)
		})
	}
}

// The guard and the making of the sandbox start together: each waits here until the
// other has begun.
func TestRunJudgesWhileTheSandboxIsMade(t *testing.T) {
	judging, making := make(chan struct{}), make(chan struct{})
	h := newRunHouse(t, func(cfg *Config) {
		cfg.Guard = answering(func(context.Context) (guard.Verdict, error) {
			close(judging)
			<-making
			return guard.Verdict{Decision: guard.Pass, Reasoning: "harmless"}, nil
		})
	})
	h.tampering(func(w http.ResponseWriter, r *http.Request, e2b http.Handler) {
		if r.URL.Path == "/v2/sandboxes" {
			close(making)
			<-judging
		}
		e2b.ServeHTTP(w, r)
	})
	got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo 1"})
	require.Equal(t, "pass", got.Status, raw.Body)
	assert.Equal(t, "harmless", got.Reasoning)
}

// failingGuard has no verdict.
type failingGuard struct{ panics bool }

func (g failingGuard) Review(context.Context, guard.Subject) (guard.Verdict, error) {
	if g.panics {
		panic("of the guard")
	}
	return guard.Verdict{}, &guard.Error{Guard: "far", Fault: guard.Unreachable, Err: errors.New("no route to far.internal")}
}

// panickingOnce panics once, when it is told of a decision.
func panickingOnce() *zap.Logger {
	var once sync.Once
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zapcore.InfoLevel), zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "decision" {
			once.Do(func() { panic("of the log") })
		}
		return nil
	}))
}

// Whatever goes wrong, the answer says so in its own form and no sandbox is left.
func TestRunThatFailsLeavesNoSandbox(t *testing.T) {
	answering := func(path string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, e2b http.Handler) {
			if r.URL.Path == path {
				answer(w, r)
				return
			}
			e2b.ServeHTTP(w, r)
		}
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	const create, write, start = "/v2/sandboxes", "/files", "/process.Process/Start"
	for name, c := range map[string]struct {
		tamper func(http.ResponseWriter, *http.Request, http.Handler)
		edit   func(*Config)
		status int
		says   string
	}{
		"guard without a verdict": {nil, func(cfg *Config) { cfg.Guard = failingGuard{} }, 503, "No verdict could be had"},
		"guard that panics":       {nil, func(cfg *Config) { cfg.Guard = failingGuard{panics: true} }, 422, "No verdict could be had"},
		"a fault of ours":         {nil, func(cfg *Config) { cfg.Logger = panickingOnce() }, 500, "e2bguard failed"},
		"E2B makes none":          {answering(create, status(500, `{"code":500,"message":"no capacity"}`)), nil, 502, "E2B made no sandbox: no capacity (E2B answered 500)"},
		"E2B has too many":        {answering(create, status(429, `{"code":429,"message":"max sandboxes reached"}`)), nil, 429, "max sandboxes reached"},
		"create breaks off":       {answering(create, abort), nil, 502, "could not reach E2B"},
		"create answers nonsense": {answering(create, status(201, `{"sandboxID":7}`)), nil, 502, "was not understood"},
		"template not allowed":    {nil, func(cfg *Config) { cfg.Policy.Templates.Allow = []string{"other"} }, 403, `template "base" is not one of those allowed here`},
		"write fails":             {answering(write, status(507, `{"code":507,"message":"disk full"}`)), nil, 502, "could not be written to its sandbox: disk full"},
		"write breaks off":        {answering(write, abort), nil, 502, "could not reach E2B"},
		"start fails":             {answering(start, status(404, `{"code":"not_found","message":"gone"}`)), nil, 502, "could not be started: gone"},
		"start breaks off":        {answering(start, abort), nil, 502, "could not reach E2B"},
		"start says nothing": {answering(start, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/connect+json")
		}), nil, 502, "could not reach E2B"},
		"start breaks off midway": {answering(start, func(w http.ResponseWriter, _ *http.Request) {
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`), endFrame("")[:3])
		}), nil, 200, "broke the program's output off"},
		"start ends in an error": {answering(start, func(w http.ResponseWriter, _ *http.Request) {
			streamAnswer(w, endFrame(`{"error":{"code":"unavailable","message":"no memory"}}`))
		}), nil, 200, "no memory"},
		"start answers in no frame": {answering(start, func(w http.ResponseWriter, _ *http.Request) { streamAnswer(w, []byte{0, 0xff, 0xff, 0xff, 0xff, 1}) }), nil, 502, "could not reach E2B"},
	} {
		t.Run(name, func(t *testing.T) {
			edit := c.edit
			if edit == nil {
				edit = func(*Config) {}
			}
			h := newRunHouse(t, edit)
			h.tampering(c.tamper)
			got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo 1"})
			assert.Equal(t, c.status, raw.Status, raw.Body)
			assert.Equal(t, "error", got.Status)
			assert.NotEmpty(t, got.Code)
			assert.Contains(t, got.Reasoning, c.says)
			assert.Nil(t, got.ExitCode)
			h.nothingLeft(t)
		})
	}
}

// An operator's word lets programs run that were blocked or not judged, and the
// answer says so.
func TestRunSaysWhyWhatWasNotPassedRan(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*Config)
		says   string
		header string
	}{
		"shadow":         {func(cfg *Config) { cfg.Mode.Shadow = true }, "shadow mode. Blocked by policy: the text contains the word evil.", "would_block"},
		"on_error allow": {func(cfg *Config) { cfg.Mode.AllowOnError = true; cfg.Guard = failingGuard{} }, "Run unjudged, as on_error allow says.", "fail_open"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRunHouse(t, c.edit)
			got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo evil"})
			assert.Equal(t, "pass", got.Status, raw.Body)
			assert.Equal(t, "evil\n", got.Stdout)
			assert.Contains(t, got.Reasoning, c.says)
			assert.Contains(t, raw.Header.Get("E2b-Guard"), c.header)
			h.nothingLeft(t)
		})
	}
}

// Programs that run at once have nothing of one another's.
func TestRunsAtOnceShareNothing(t *testing.T) {
	h := newPoolHouse(t, 3)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			code := fmt.Sprintf("ls | tr '\\n' ' '; ls ..; cat own; echo %d", i)
			got, raw := h.run(t, map[string]any{"language": "bash", "code": code, "files": map[string]string{"own": fmt.Sprintf("file %d\n", i)}})
			assert.Equal(t, "pass", got.Status, raw.Body)
			assert.Equal(t, fmt.Sprintf("main.sh own run\nfile %d\n%d\n", i, i), got.Stdout)
		})
	}
	wg.Wait()
	h.ready(t, 3)
}

// A sandbox that E2B does not delete at once is asked for again.
func TestRunTriesAgainToDestroyItsSandbox(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newRunHouse(t, edit)
	var tries int
	h.tampering(func(w http.ResponseWriter, r *http.Request, e2b http.Handler) {
		if r.Method == http.MethodDelete {
			if tries++; tries == 1 {
				http.Error(w, `{"code":500,"message":"try later"}`, http.StatusInternalServerError)
				return
			}
		}
		e2b.ServeHTTP(w, r)
	})
	got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo 1"})
	require.Equal(t, "pass", got.Status, raw.Body)
	h.nothingLeft(t)
	require.Eventually(t, func() bool {
		_, outcomes := b.records(t)
		last := outcomes[len(outcomes)-1]
		return last.Kind == audit.KindTeardown && last.Ended == audit.EndedComplete
	}, 10*time.Second, 5*time.Millisecond)
}

// A client that leaves, at whatever moment, leaves no sandbox and no process.
func TestRunWhoseClientLeavesLeavesNoSandbox(t *testing.T) {
	for _, at := range []string{"guard", "/v2/sandboxes", "/files", "/process.Process/Start"} {
		t.Run(at, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			h := newRunHouse(t, func(cfg *Config) {
				if at == "guard" {
					cfg.Guard = answering(func(ctx context.Context) (guard.Verdict, error) {
						leave()
						<-ctx.Done()
						return guard.Verdict{}, ctx.Err()
					})
				}
			})
			ended := make(chan struct{})
			h.tampering(func(w http.ResponseWriter, r *http.Request, e2b http.Handler) {
				if r.URL.Path == at {
					leave()
				}
				e2b.ServeHTTP(w, r)
				if r.Method == http.MethodDelete {
					close(ended)
				}
			})
			r, err := http.NewRequestWithContext(ctx, "POST", h.url+"/run", strings.NewReader(`{"language":"bash","code":"sleep 30"}`))
			require.NoError(t, err)
			r.Header = headers("X-Api-Key", keyA)
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = resp.Body.Close()
			}
			require.Error(t, err)
			select {
			case <-ended:
			case <-time.After(15 * time.Second):
				t.Fatal("the sandbox was not ended")
			}
			h.nothingLeft(t)
		})
	}
}

func TestRunKeepsToItsLimits(t *testing.T) {
	h := newRunHouse(t, func(cfg *Config) {
		cfg.Run.Timeout, cfg.Run.CPUSeconds, cfg.Run.OutputBytes = 30*time.Second, 1, 10
		cfg.Policy.Limits.OutputBytes = 1 << 20
	})
	for name, c := range map[string]struct {
		request            map[string]any
		status, code, says string
		stdout             string
		truncated          bool
		changed            string
	}{
		"timeout of the client": {map[string]any{"language": "bash", "code": "echo first; sleep 20", "timeout": 0.5}, "error", "wall_clock", "ran for 500ms", "first\n", false, ""},
		"timeout is clamped":    {map[string]any{"language": "bash", "code": "echo 1", "timeout": 3600}, "pass", "", "", "1\n", false, "changed=timeout"},
		"CPU":                   {map[string]any{"language": "python", "code": "while True: pass"}, "error", "cpu_seconds", "1 seconds of CPU time", "", false, ""},
		"a signal":              {map[string]any{"language": "bash", "code": "kill -9 $$"}, "error", "signal", "killed", "", false, ""},
		"long output":           {map[string]any{"language": "bash", "code": "echo 0123456789abc"}, "pass", "", "", "0123456789", true, ""},
		"a character is cut":    {map[string]any{"language": "bash", "code": "echo 012345678é"}, "pass", "", "", "012345678", true, ""},
		"endless output":        {map[string]any{"language": "bash", "code": "yes"}, "error", "output_limit", "output limit", "y\ny\ny\ny\ny\n", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, raw := h.run(t, c.request)
			assert.Equal(t, 200, raw.Status, raw.Body)
			assert.Equal(t, c.status, got.Status, raw.Body)
			assert.Equal(t, c.code, got.Code)
			assert.Contains(t, got.Reasoning, c.says)
			assert.Equal(t, c.stdout, got.Stdout)
			assert.Equal(t, c.truncated, got.Truncated)
			assert.Contains(t, raw.Header.Get("E2b-Guard"), c.changed)
			assert.Equal(t, c.status == "pass", got.ExitCode != nil)
			h.nothingLeft(t)
		})
	}
	for _, r := range h.reached() {
		if r.Path == "/process.Process/Start" {
			assert.Contains(t, string(r.Body), "l t 1 6", "the CPU limit is around the program")
			assert.NotEmpty(t, r.Header.Get("Connect-Timeout-Ms"))
		}
	}
}

// The sandbox is made as a client's is: policy enforced, owner stamped, and with no
// longer life than its program needs.
func TestSandboxOfARunIsOneOfTheClients(t *testing.T) {
	h := newRunHouse(t, func(cfg *Config) { cfg.Run.Templates = map[string]string{"node": "my-node"} })
	got, raw := h.run(t, map[string]any{"language": "node", "code": "1"})
	require.Equal(t, "pass", got.Status, raw.Body)
	var body struct {
		TemplateID string
		Timeout    int
		Metadata   map[string]string
		Network    struct{ DenyOut []string }
	}
	require.NoError(t, json.Unmarshal(h.reached()[0].Body, &body))
	assert.Equal(t, "my-node", body.TemplateID)
	assert.Equal(t, 80, body.Timeout)
	assert.Equal(t, "team-a", body.Metadata["e2bguard-owner"])
	assert.Equal(t, []string{"0.0.0.0/0"}, body.Network.DenyOut)
}

func TestRunHidesSecretsInOutput(t *testing.T) {
	h := newRunHouse(t)
	got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo key " + keyA + " https://joe:hunter2hunter2@git.test; echo hunter2hunter2 >&2"})
	require.Equal(t, "pass", got.Status, raw.Body)
	assert.Contains(t, got.Stdout, "key ")
	assert.NotContains(t, raw.Body, keyA)
	assert.NotContains(t, raw.Body, "hunter2")
}

// What is not understood is not run, and costs neither a sandbox nor a verdict.
func TestRunRefusesWhatItDoesNotUnderstand(t *testing.T) {
	h := newRunHouse(t)
	for body, says := range map[string]string{
		``:                                   "the text is empty",
		`[]`:                                 "send an object",
		`{"language":"python"}`:              "code must be",
		`{"language":"python","code":" \n"}`: "code must be",
		`{"language":"python","code":["a"]}`: "code must be",
		`{"language":"python","code":"a\u0000b"}`: "NUL",
		`{"code":"1"}`:                                                                "language must be one of python, node, bash",
		`{"language":"cobol","code":"1"}`:                                             "language must be one of",
		`{"language":7,"code":"1"}`:                                                   "language must be one of",
		`{"language":"python","code":"1","code":"2"}`:                                 "twice",
		`{"language":"python","code":"1","Code":"2"}`:                                 `"Code"`,
		`{"language":"python","code":"1","network":"open"}`:                           `"network", which e2bguard does not know`,
		`{"language":"python","code":"1","timeout":"20"}`:                             "timeout must be",
		`{"language":"python","code":"1","timeout":0}`:                                "timeout must be",
		`{"language":"python","code":"1","timeout":-1}`:                               "timeout must be",
		`{"language":"python","code":"1","timeout":1e999}`:                            "timeout must be",
		`{"language":"python","code":"1","files":["a"]}`:                              "files must be",
		`{"language":"python","code":"1","files":{"a":1}}`:                            "must be a text",
		`{"language":"python","code":"1","files":{"a":{"base64":"%"}}}`:               "must be a text",
		`{"language":"python","code":"1","files":{"a":{"base64":"QQ==","mode":"x"}}}`: "must be a text",
		`{"language":"python","code":"1","files":{"main.py":"2"}}`:                    "name of the program",
		`{"language":"python","code":"1","files":{"MAIN.py":"2"}}`:                    "name of the program",
		`{"language":"python","code":"1","files":{"main.py/x":"2"}}`:                  "below the program",
		`{"language":"python","code":"1","files":{"./main.py":"2"}}`:                  "plain path",
		`{"language":"python","code":"1","files":{"":"2"}}`:                           "plain path",
		`{"language":"python","code":"1","files":{"/etc/x":"2"}}`:                     "plain path",
		`{"language":"python","code":"1","files":{"../.bashrc":"2"}}`:                 "plain path",
		`{"language":"python","code":"1","files":{"a/../../x":"2"}}`:                  "plain path",
		`{"language":"python","code":"1","files":{"a/":"2"}}`:                         "plain path",
		`{"language":"python","code":"1","files":{"a\\b":"2"}}`:                       "characters",
		`{"language":"python","code":"1","files":{"a\u0000":"2"}}`:                    "characters",
		`{"language":"python","code":"1","files":{"a\nb":"2"}}`:                       "characters",
		`{"language":"python","code":"1","files":{"a":"2","a/b":"3"}}`:                "folder of another",
		`{"language":"python","code":"1","files":{"a/b":"2","a":"3"}}`:                "folder of another",
	} {
		got, raw := h.runRaw(t, body)
		assert.Equal(t, 400, raw.Status, body)
		assert.Equal(t, "error", got.Status, body)
		assert.Equal(t, "invalid", got.Code, body)
		assert.Contains(t, got.Reasoning, says, body)
	}
	assert.Empty(t, h.guard.saw())
	assert.Empty(t, h.reached())

	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprint(i)] = ""
	}
	got, _ := h.run(t, map[string]any{"language": "python", "code": "1", "files": many})
	assert.Contains(t, got.Reasoning, "more than 100")
}

// What no guard can read is not run, in whatever way it calls itself data: Python
// takes a compiled module in place of the text beside it.
func TestRunTakesNoCompiledCode(t *testing.T) {
	h := newRunHouse(t)
	for name, content := range map[string]string{
		"helper.pyc": "x", "__pycache__/helper.cpython-312.pyc": "x", "a/__pycache__/y": "x", "addon.node": "x", "Tool.class": "x",
		"tool": "\x7fELF\x02\x01\x01\x00", "data.bin": "\x7fELF\x02\x01\x01\x00",
	} {
		for _, accept := range []string{"", "application/x-ndjson"} {
			body, err := json.Marshal(map[string]any{"language": "python", "code": "import helper", "files": map[string]any{name: map[string]any{"base64": []byte(content)}}})
			require.NoError(t, err)
			got := h.do(t, "POST", "/run", headers("X-Api-Key", keyA, "Accept", accept), strings.NewReader(string(body)))
			assert.Equal(t, 200, got.Status)
			assert.Contains(t, got.Body, `"status":"block"`, name)
			assert.Contains(t, got.Body, "compiled code", name)
		}
	}
	assert.Empty(t, h.reached())
}

func TestRunNeedsAClientsKey(t *testing.T) {
	h := newRunHouse(t)
	for _, header := range []http.Header{{}, headers("X-Api-Key", "e2b_dead"), headers("Authorization", "Bearer "+keyB+"x")} {
		got := h.do(t, "POST", "/run", header, strings.NewReader(`{"language":"bash","code":"echo 1"}`))
		assert.Equal(t, 401, got.Status)
		assert.Contains(t, got.Body, `"status":"error"`)
	}
	assert.Empty(t, h.reached())
	got := h.do(t, "GET", "/run", headers("X-Api-Key", keyA), nil)
	assert.Equal(t, 405, got.Status)
}

// of waits for the outcome of a call.
func (b *book) of(t *testing.T, id string) (decision, outcome audit.Record) {
	t.Helper()
	require.Eventually(t, func() bool {
		decisions, outcomes := b.records(t)
		is := func(r audit.Record) bool { return r.ID == id && r.Kind != audit.KindTeardown }
		d, o := slices.IndexFunc(decisions, is), slices.IndexFunc(outcomes, is)
		if d < 0 || o < 0 {
			return false
		}
		decision, outcome = decisions[d], outcomes[o]
		return true
	}, 10*time.Second, 5*time.Millisecond)
	return decision, outcome
}

func TestRunIsOnRecord(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	h := newRunHouse(t, edit)
	got, raw := h.run(t, map[string]any{"language": "bash", "code": "printf out; printf err >&2; exit 3"})
	require.Equal(t, "pass", got.Status, raw.Body)
	decision, outcome := b.of(t, got.RequestID)
	decisions, outcomes := b.records(t)
	var operations []string
	for _, d := range decisions {
		operations = append(operations, d.Operation)
	}
	assert.ElementsMatch(t, []string{"sandbox.create", "program.run"}, operations)
	assert.Equal(t, got.RequestID, decision.ID)
	assert.Equal(t, "pass", decision.Decision.Decision)
	require.Len(t, decision.Subjects, 1)
	assert.Equal(t, "printf out; printf err >&2; exit 3", decision.Subjects[0].Text)

	assert.Equal(t, got.RequestID, outcome.ID)
	assert.EqualValues(t, 3, *outcome.ExitCode)
	assert.Equal(t, "out", outcome.Stdout.Head)
	assert.Equal(t, "err", outcome.Stderr.Head)
	assert.Equal(t, "run", outcome.DestroyedBy)
	assert.Equal(t, audit.EndedComplete, outcome.Ended)
	assert.NotEmpty(t, outcome.Sandbox)
	var teardowns int
	for _, o := range outcomes {
		if o.Kind == audit.KindTeardown {
			teardowns++
			assert.Equal(t, outcome.Sandbox, o.Sandbox)
		}
	}
	assert.Equal(t, 1, teardowns)
}

// A run takes a place among its client's sandboxes for as long as it lasts.
func TestRunCountsAgainstItsClientsLimits(t *testing.T) {
	h := newRunHouse(t, func(cfg *Config) { cfg.ClientLimits = policy.ClientLimits{Sandboxes: 1} })
	for range 3 {
		got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo 1"})
		require.Equal(t, "pass", got.Status, raw.Body)
	}
	h.create(t, keyA, `{"templateID":"base"}`)
	got, raw := h.run(t, map[string]any{"language": "bash", "code": "echo 1"})
	assert.Equal(t, 429, raw.Status)
	assert.Equal(t, "error", got.Status)
	assert.Equal(t, "client_limit", got.Code)
}

func TestRunConfigurationThatCannotWorkIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Config)
		says string
	}{
		"no clients":            {func(cfg *Config) { cfg.Clients = nil }, "needs client keys"},
		"no time":               {func(cfg *Config) { cfg.Run.Timeout = 0 }, "too short"},
		"longer than sandboxes": {func(cfg *Config) { cfg.Run.Timeout = 2 * time.Hour }, "longer than a sandbox may live"},
		"language":              {func(cfg *Config) { cfg.Run.Templates = map[string]string{"cobol": "base"} }, "no such language"},
		"alias":                 {func(cfg *Config) { cfg.Run.Templates = map[string]string{"js": "base"} }, "no such language"},
		"template": {func(cfg *Config) {
			cfg.Run.Templates = map[string]string{"node": "x"}
			cfg.Policy.Templates.Allow = []string{"base"}
		}, "not one of those allowed here"},
		"output": {func(cfg *Config) { cfg.Run.OutputBytes = 0 }, "must not be negative"},
	} {
		cfg := Config{Guard: new(wordGuard), Policy: testPolicy()}
		vault(&cfg)
		runs(&cfg)
		c.edit(&cfg)
		require.ErrorContains(t, cfg.Run.fit(cfg), c.says, name)
	}
}

// events sends a program for a stream and gives each event to see, which may be nil.
func (h *runHouse) events(t *testing.T, ctx context.Context, body string, see func(ran)) (status int, all []ran, err error) { //nolint:revive // t first, as everywhere.
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", h.url+"/run", strings.NewReader(body))
	require.NoError(t, err)
	r.Header = headers("X-Api-Key", keyA, "Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	require.Equal(t, "application/x-ndjson", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var e ran
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e), lines.Text())
		all = append(all, e)
		if see != nil {
			see(e)
		}
	}
	return resp.StatusCode, all, lines.Err()
}

// Output comes while the program runs: here it waits for a word that is sent only
// when its first line has been read.
func TestRunStreamsOutputAsItComes(t *testing.T) {
	h := newRunHouse(t, func(cfg *Config) { cfg.Run.OutputBytes = 4 }) // which bounds other answers
	gate, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer gate.Close()
	code := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; echo first line; read -u 3 x; echo $x >&2; exit 4", gate.Addr().(*net.TCPAddr).Port)
	body, err := json.Marshal(map[string]string{"language": "bash", "code": code})
	require.NoError(t, err)
	status, events, err := h.events(t, t.Context(), string(body), func(e ran) {
		if e.Type == "stdout" {
			conn, err := gate.Accept()
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write([]byte("second\n"))
			require.NoError(t, err)
		}
	})
	require.NoError(t, err)
	require.Equal(t, 200, status)
	require.Len(t, events, 4)
	assert.Equal(t, "start", events[0].Type)
	assert.Equal(t, ran{Type: "stdout", Text: "first line\n"}, events[1])
	assert.Equal(t, ran{Type: "stderr", Text: "second\n"}, events[2])
	last := events[3]
	assert.Equal(t, "result", last.Type)
	assert.Equal(t, "pass", last.Status)
	assert.Equal(t, 4, *last.ExitCode)
	assert.Equal(t, events[0].RequestID, last.RequestID)
	assert.Empty(t, last.Stdout+last.Stderr)
	h.nothingLeft(t)
}

func TestRunThatStreamsEndsWithItsResult(t *testing.T) {
	h := newRunHouse(t)
	for body, want := range map[string]struct {
		status             int
		last, code, output string
	}{
		`{"language":"bash","code":"evil"}`:                                      {200, "block", "policy", ""},
		`{"language":"bash","code":""}`:                                          {400, "error", "invalid", ""},
		`{"language":"bash","code":"echo 1; sleep 9","timeout":0.3}`:             {200, "error", "wall_clock", "1\n"},
		`{"language":"bash","code":"kill -9 $$"}`:                                {200, "error", "signal", ""},
		`{"language":"bash","code":"printf '\\303'; sleep 0.1; printf '\\251'"}`: {200, "pass", "", "é"},
		`{"language":"bash","code":"printf 'a\\303'"}`:                           {200, "pass", "", "a\uFFFD"},
	} {
		status, events, err := h.events(t, t.Context(), body, nil)
		require.NoError(t, err)
		assert.Equal(t, want.status, status, body)
		output := ""
		for _, e := range events[:len(events)-1] {
			output += e.Text
		}
		last := events[len(events)-1]
		assert.Equal(t, []string{"result", want.last, want.code, want.output}, []string{last.Type, last.Status, last.Code, output}, body)
		h.nothingLeft(t)
	}
}

// A client that leaves while it reads, or that stays and reads nothing, does not
// keep the sandbox.
func TestRunWhoseReaderStopsLeavesNoSandbox(t *testing.T) {
	t.Run("leaves", func(t *testing.T) {
		h := newRunHouse(t)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		_, _, err := h.events(t, ctx, `{"language":"bash","code":"yes"}`, func(e ran) {
			if e.Type == "stdout" {
				leave()
			}
		})
		require.Error(t, err)
		h.nothingLeft(t)
	})
	t.Run("reads nothing", func(t *testing.T) {
		h := newRunHouse(t, func(cfg *Config) { cfg.Policy.Limits.OutputBytes = 0 })
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		body := `{"language":"bash","code":"yes","timeout":0.5}`
		_, err = fmt.Fprintf(conn, "POST /run HTTP/1.1\r\nHost: gw.example\r\nX-Api-Key: %s\r\nAccept: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", keyA, len(body), body)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(h.left(t)) == 1 }, 10*time.Second, 5*time.Millisecond)
		require.Eventually(t, func() bool { return len(h.left(t)) == 0 }, 30*time.Second, 20*time.Millisecond)
	})
}
