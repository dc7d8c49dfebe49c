package emulator

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var stampPattern = regexp.MustCompile(`"timestamp": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"`)

// exec runs code and gives the answer's lines with their times blanked.
func (b box) exec(body string) string {
	b.t.Helper()
	a := b.interp(http.MethodPost, "/execute", body)
	require.Equal(b.t, http.StatusOK, a.status, a.body)
	require.Empty(b.t, a.header.Get("Content-Type"))
	return stampPattern.ReplaceAllString(a.body, `"timestamp": "T"`)
}

// The spelling of the lines is the real server's.
func TestExecutionsAreSpelledAsTheServerSpellsThem(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for _, tt := range []struct{ name, body, want string }{
		{
			"both streams and a value", `{"code":"import sys\nprint(\"hello\")\nprint(\"oops\", file=sys.stderr)\n40+2"}`,
			`{"type": "number_of_executions", "execution_count": 1}
{"type": "stdout", "text": "hello\n", "timestamp": "T"}
{"type": "stderr", "text": "oops\n", "timestamp": "T"}
{"type": "result", "text": "42", "extra": {}, "is_main_result": true}
{"type": "end_of_execution"}
`,
		},
		{
			"text beyond ASCII", `{"code":"print(\"h\u00e9llo \u2713 \ud83d\ude00\")"}`,
			`{"type": "number_of_executions", "execution_count": 2}
{"type": "stdout", "text": "h\u00e9llo \u2713 \ud83d\ude00\n", "timestamp": "T"}
{"type": "end_of_execution"}
`,
		},
		{
			"rich results", `{"code":"class P:\n    def _repr_html_(self): return '<b>&</b>'\n    def _repr_png_(self): return b'\\x89PNG'\n    def __repr__(self): return 'p'\ndisplay(P())\nP()"}`,
			`{"type": "number_of_executions", "execution_count": 3}
{"type": "result", "text": "p", "html": "<b>&</b>", "png": "iVBORw==\n", "extra": {}, "is_main_result": false}
{"type": "result", "text": "p", "html": "<b>&</b>", "png": "iVBORw==\n", "extra": {}, "is_main_result": true}
{"type": "end_of_execution"}
`,
		},
		{
			"nothing", `{"code":""}`,
			"{\"type\": \"number_of_executions\", \"execution_count\": 4}\n{\"type\": \"end_of_execution\"}\n",
		},
		{
			"half a surrogate pair", `{"code":"print(1)#\ud800"}`,
			`{"type": "error", "name": "WebSocketError", "value": "The connections was lost, rerun the code to get the results", "traceback": ""}
{"type": "error", "name": "UnexpectedEndOfExecution", "value": "Connection to the execution was closed before the execution was finished", "traceback": ""}
{"type": "end_of_execution"}
`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, b.exec(tt.body)) })
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	events := lines(t, b.exec(`{"code":"x = 1\n1/0"}`))
	require.Equal(t, "ZeroDivisionError", events[1]["name"])
	require.Equal(t, "division by zero", events[1]["value"])
	require.Contains(t, events[1]["traceback"], "----> 2 1/0")
	syntax := lines(t, b.exec(`{"code":"def"}`))
	require.Equal(t, "SyntaxError", syntax[1]["name"])
	js := lines(t, b.exec(`{"code":"throw new TypeError('bad')","language":"js"}`))
	require.Equal(t, "TypeError", js[1]["name"])
	require.Equal(t, "bad", js[1]["value"])
}

func TestLanguagesKeepState(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for _, tt := range []struct{ language, first, second, want string }{
		{"python", "x = 41", "x + 1", `"text": "42"`},
		{"Python ", "import asyncio\nawait asyncio.sleep(0)\ny = 1", "y", `"text": "1"`},
		{"js", "const x = await Promise.resolve(41)", "x + 1", `"text": "42"`},
		{"typescript", "const z: number = 41", "z + 1 as number", `"text": "42"`},
		{"bash", "x=41; cd /", "echo $((x + 1)) $PWD", `"text": "42 `},
	} {
		t.Run(tt.language, func(t *testing.T) {
			b.exec(jsonBody(map[string]any{"code": tt.first, "language": tt.language}))
			require.Contains(t, b.exec(jsonBody(map[string]any{"code": tt.second, "language": tt.language})), tt.want)
		})
	}
	unknown := b.interp(http.MethodPost, "/execute", `{"code":"1","language":"r"}`)
	require.Equal(t, http.StatusInternalServerError, unknown.status)
	require.Equal(t, `Failed to create context: {"message": "The 'r' kernel is not available. Please pick another suitable kernel instead, or install that kernel.", "short_message": "r not found"}`, unknown.body)
}

func TestCodeThatIsOnlyAlmostAScript(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for _, tt := range []struct{ name, language, code, want string }{
		{"indented Python", "python", "\n    x = 1\n    if x:\n        print('in')\n    x", `"text": "1"`},
		{"a string value has no quotes", "python", "'plain'", `"text": "plain"`},
		{"a string value of JavaScript", "js", "'plain'", `"text": "plain"`},
		{"static imports", "js", "import { readFileSync as r } from 'fs'\nimport p, { sep } from \"node:path\"\nimport * as os from 'os'; console.log(typeof r, typeof p.join, sep, typeof os.cpus)", "function function / function"},
	} {
		require.Contains(t, b.exec(jsonBody(map[string]any{"code": tt.code, "language": tt.language})), tt.want, tt.name)
	}
}

func TestShellAndMagicLines(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for code, want := range map[string]string{
		"!echo R\"\"AN":                        "RAN",
		"%%bash\necho R\"\"AN":                 "RAN",
		"import os\nos.system('echo R\"\"AN')": "RAN",
		"for i in [1]:\n    !echo R\"\"AN":     "RAN",
		"%cd /tmp":                             "tmp",
	} {
		require.Contains(t, b.exec(jsonBody(map[string]any{"code": code})), want, code)
	}
}

func TestEnvironmentOfOneExecution(t *testing.T) {
	l := newLab(t, Options{})
	b := l.create("/v2/sandboxes", `{"templateID":"code-interpreter-v1","envVars":{"G":"global"}}`)
	for language, read := range map[string]string{
		"python": "import os; print(os.environ.get('G'), os.environ.get('V'))",
		"js":     "console.log(process.env.G, process.env.V)",
		"bash":   "echo $G $V",
	} {
		with := b.exec(jsonBody(map[string]any{"code": read, "language": language, "env_vars": map[string]string{"G": "own", "V": "'; import os; x='", "a=b": "c"}}))
		require.Contains(t, with, "own '; import os; x='", language)
		require.NotContains(t, with, `"error"`, language)
	}
	require.Contains(t, b.exec(`{"code":"import os; print(os.environ.get('G'), os.environ.get('V'))"}`), "global None")
	require.Contains(t, b.exec(`{"code":"echo $G [$V]","language":"bash"}`), "global []")
}

// The real server's parser is this lax; a gateway must not be.
func TestBodiesThatPythonReads(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	utf16le := func(s string) string {
		var out []byte
		for _, c := range []byte(s) {
			out = append(out, c, 0)
		}
		return string(out)
	}
	const ran = `"text": "RAN\n"`
	for _, tt := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"no content type", "", `{"code":"print('RAN')"}`, 200, ran},
		{"a charset is ignored", "application/json; charset=latin-1", `{"code":"print('RAN')"}`, 200, ran},
		{"a suffix", "application/x+json", `{"code":"print('RAN')"}`, 200, ran},
		{"UTF-16 without a mark", "application/json", utf16le(`{"code":"print('RAN')"}`), 200, ran},
		{"UTF-16 with a mark", "application/json", "\xff\xfe" + utf16le(`{"code":"print('RAN')"}`), 200, ran},
		{"UTF-8 with a mark", "application/json", "\xef\xbb\xbf" + `{"code":"print('RAN')"}`, 200, ran},
		{"the last duplicate", "application/json", `{"code":"1","code":"print('RAN')"}`, 200, ran},
		{"keys are case-sensitive", "application/json", `{"code":"print('RAN')","Code":"print('NOT')"}`, 200, ran},
		{"an escaped key", "application/json", `{"c\u006fde":"print('RAN')"}`, 200, ran},
		{"NaN", "application/json", `{"code":"print('RAN')","x":NaN}`, 200, ran},

		{"text", "text/plain", `{"code":"1"}`, 422, `{"detail":[{"loc":["body"],"msg":"value is not a valid dict","type":"type_error.dict"}]}`},
		{"a list", "application/json", `[1]`, 422, `{"detail":[{"loc":["body"],"msg":"value is not a valid dict","type":"type_error.dict"}]}`},
		{"no code", "application/json", `{}`, 422, `{"detail":[{"loc":["body","code"],"msg":"field required","type":"value_error.missing"}]}`},
		{"code of another type", "application/json", `{"code":["x"]}`, 422, `{"detail":[{"loc":["body","code"],"msg":"str type expected","type":"type_error.str"}]}`},
		{"trailing data", "application/json", `{"code":"1"}x`, 422, `{"detail":[{"loc":["body",12],"msg":"Extra data: line 1 column 13 (char 12)","type":"value_error.jsondecode","ctx":{"msg":"Extra data","doc":"{\"code\":\"1\"}x","pos":12,"lineno":1,"colno":13}}]}`},
		{"not text", "application/json", "\x1f\x8b\x08\x00\xff", 400, `{"detail":"There was an error parsing the body"}`},
		{"both selectors", "application/json", `{"code":"1","context_id":"c","language":"js"}`, 400, "Only one of context_id or language can be provided"},
		{"an unknown context", "application/json", `{"code":"1","context_id":"nope"}`, 404, "Context nope not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			headers := b.headers("49999")
			if tt.kind != "" {
				headers = append(headers, "Content-Type", tt.kind)
			}
			a := b.do(http.MethodPost, "/execute", tt.body, headers...)
			require.Equal(t, tt.status, a.status, a.body)
			require.Contains(t, a.body, tt.want)
		})
	}
}

func TestInterpreterRoutes(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/health", 200, `"OK"`},
		{"GET", "/execute", 405, `{"detail":"Method Not Allowed"}`},
		{"POST", "/EXECUTE", 404, `{"detail":"Not Found"}`},
		{"POST", "//execute", 404, `{"detail":"Not Found"}`},
		{"POST", "/x/../execute", 404, `{"detail":"Not Found"}`},
		{"POST", "/execute;a", 404, `{"detail":"Not Found"}`},
		{"POST", "/contexts/..%2f..%2fx/restart", 404, `{"detail":"Not Found"}`},
		{"DELETE", "/contexts/none", 404, "Context none not found"},
		{"POST", "/contexts/none/restart", 404, "Context none not found"},
		{"GET", "/openapi.json", 200, `{"openapi":"3.0.2"}`},
	} {
		a := b.interp(tt.method, tt.path, `{"code":"1"}`)
		require.Equal(t, tt.status, a.status, tt.path)
		require.Equal(t, tt.body, a.body, tt.path)
		require.Equal(t, "uvicorn", a.header.Get("Server"))
	}
	encoded := b.interp(http.MethodPost, "/%65xecute", `{"code":"print('RAN')"}`)
	require.Contains(t, encoded.body, "RAN")
	slash := b.interp(http.MethodPost, "/execute/", `{"code":"1"}`)
	require.Equal(t, http.StatusTemporaryRedirect, slash.status)
	require.Equal(t, b.url+"/execute", slash.header.Get("Location"))
}

func TestContexts(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	made := b.interp(http.MethodPost, "/contexts", `{"language":"python","cwd":"/tmp"}`)
	require.Equal(t, http.StatusOK, made.status)
	id, _ := made.json(t)["id"].(string)
	require.Equal(t, `{"id":"`+id+`","language":"python","cwd":"/tmp"}`, made.body)
	in := func(code string) string { return b.exec(jsonBody(map[string]any{"code": code, "context_id": id})) }
	require.Contains(t, in("import os; x = 1; print(os.getcwd())"), `/tmp\n`)
	require.Len(t, jsonList(t, b.interp(http.MethodGet, "/contexts", "").body), 3)
	require.Equal(t, "null", b.interp(http.MethodPost, "/contexts/"+id+"/restart", "").body)
	require.Contains(t, in("x"), "NameError")
	require.Equal(t, "null", b.interp(http.MethodDelete, "/contexts/"+id, "").body)
	require.Equal(t, http.StatusNotFound, b.interp(http.MethodPost, "/execute", `{"code":"1","context_id":"`+id+`"}`).status)
	require.Equal(t, http.StatusUnprocessableEntity, b.interp(http.MethodPost, "/contexts", `{"cwd":1}`).status)
	require.Equal(t, http.StatusInternalServerError, b.interp(http.MethodPost, "/contexts", `{"language":"java"}`).status)
}

// A client that goes away interrupts the kernel, whose state stays
// (e2b-dev/code-interpreter#213).
func TestAbortInterruptsTheKernel(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for _, loop := range [][3]string{
		{"x = 7\nprint('go', flush=True)\nwhile True: pass", "x", "python"},
		{"globalThis.x = 7; console.log('go'); while (true) {}", "x", "js"},
		{"x += 64; setTimeout(() => console.log('go'), 100); await new Promise(() => {})", "x", "js"},
		{"x=7; echo go; sleep 1000", "echo $x", "bash"},
	} {
		language := loop[2]
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/execute", strings.NewReader(jsonBody(map[string]any{"code": loop[0], "language": language})))
		require.NoError(t, err)
		for i, h := 0, b.headers("49999", "Content-Type", "application/json"); i < len(h); i += 2 {
			req.Header.Set(h[i], h[i+1])
		}
		resp, err := b.client.Do(req)
		require.NoError(t, err)
		for answer := bufio.NewReader(resp.Body); ; {
			line, err := answer.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(line, `"text": "go`) {
				break
			}
		}
		cancel()
		_ = resp.Body.Close()
		require.Contains(t, b.exec(jsonBody(map[string]any{"code": loop[1], "language": language})), `"text": "7`, language)
	}
}

func TestADyingKernelIsReplaced(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	events := lines(t, b.exec(`{"code":"import os\nprint('last words', flush=True)\nos._exit(1)"}`))
	require.Equal(t, "last words\n", events[1]["text"])
	require.Equal(t, "ContextRestarting", events[2]["name"])
	require.Equal(t, "end_of_execution", events[3]["type"])
	require.Contains(t, b.exec(`{"code":"1+1"}`), `"text": "2"`)
}

func TestKeepaliveLines(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	events := lines(t, b.exec(`{"code":"import time; time.sleep(5.5); print('done')"}`))
	require.Equal(t, "keepalive", events[1]["type"])
	require.Equal(t, "done\n", events[2]["text"])
}

func TestRawOutputBelongsToItsExecution(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	require.Contains(t, b.exec(`{"code":"import os; [os.write(1, b'x' * 1000) for _ in range(300)] and None"}`), "xxx")
	second := b.exec(`{"code":"print('only this')"}`)
	require.NotContains(t, second, "xxx")
	require.Contains(t, second, "only this")
}
