package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

func plainHeaders() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func decode(t *testing.T, body string) *Body {
	t.Helper()
	b, ref := Decode(plainHeaders(), []byte(body))
	require.Nil(t, ref, "%s: %v", body, ref)
	return b
}

// What two servers could read differently is refused: duplicate members, other
// cases, other encodings, messages that are two things.
func TestMessagesWithTwoMeaningsAreRefused(t *testing.T) {
	call := func(members string) string { return `{"jsonrpc":"2.0","id":1,` + members + `}` }
	for name, body := range map[string]string{
		"no JSON":                       `hello`,
		"a second message":              call(`"method":"ping"`) + call(`"method":"ping"`),
		"a byte order mark":             "\xef\xbb\xbf" + call(`"method":"ping"`),
		"UTF-16":                        "{\x00}\x00",
		"invalid UTF-8":                 call("\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}"),
		"a lone surrogate":              call(`"method":"tools/call","params":{"name":"\ud800"}`),
		"a method twice":                call(`"method":"ping","method":"tools/call"`),
		"a method twice, once escaped":  call(`"method":"ping","m\u0065thod":"tools/call"`),
		"a method in another case":      call(`"Method":"tools/call","method":"ping"`),
		"a long s in params":            call(`"method":"tools/call","param\u017f":{"name":"x"}`),
		"a name twice":                  call(`"method":"tools/call","params":{"name":"a","name":"b"}`),
		"a name in another case":        call(`"method":"tools/call","params":{"name":"a","Name":"b"}`),
		"arguments in another case":     call(`"method":"tools/call","params":{"name":"a","Arguments":{"x":1},"arguments":{}}`),
		"arguments twice, deep":         call(`"method":"tools/call","params":{"name":"a","arguments":{"x":{"y":1,"\u0079":2}}}`),
		"arguments that are a list":     call(`"method":"tools/call","params":{"name":"a","arguments":["x"]}`),
		"arguments that are a string":   call(`"method":"tools/call","params":{"name":"a","arguments":"{}"}`),
		"params that are a list":        call(`"method":"tools/call","params":["a",{}]`),
		"no tool":                       call(`"method":"tools/call"`),
		"a tool that is a number":       call(`"method":"tools/call","params":{"name":1}`),
		"an empty tool":                 call(`"method":"tools/call","params":{"name":""}`),
		"no version":                    `{"id":1,"method":"tools/call","params":{"name":"a"}}`,
		"version 1":                     `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		"a number for the version":      `{"jsonrpc":2.0,"id":1,"method":"ping"}`,
		"a method that is a list":       call(`"method":["tools/call"]`),
		"an id that is an object":       `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		"a request and a response":      call(`"method":"ping","result":{}`),
		"a result and an error":         call(`"result":{},"error":{}`),
		"nothing":                       call(`"x":1`),
		"a string":                      `"ping"`,
		"null":                          `null`,
		"an empty batch":                `[]`,
		"a batch in a batch":            `[[` + call(`"method":"ping"`) + `]]`,
		"a batch with a broken message": `[` + call(`"method":"ping"`) + `,{}]`,
		"a batch without end":           `[` + strings.Repeat(call(`"method":"ping"`)+",", maxBatch) + call(`"method":"ping"`) + `]`,
		"a resource without a uri":      call(`"method":"resources/read","params":{"uri":["file:///etc/shadow"]}`),
		"a uri in another case":         call(`"method":"resources/read","params":{"URI":"file:///etc/shadow","uri":"x:y"}`),
	} {
		b, ref := Decode(plainHeaders(), []byte(body))
		if ref == nil {
			_, ref = b.Subjects()
		}
		require.NotNil(t, ref, name)
		assert.Equal(t, refusal.CodeInvalid, ref.Code, name)
		assert.NotEmpty(t, ref.Reason)
	}
}

func TestBodiesThatSayTheyAreSomethingElseAreRefused(t *testing.T) {
	for name, h := range map[string]http.Header{
		"no content type":      {},
		"text":                 {"Content-Type": {"text/plain"}},
		"a form":               {"Content-Type": {"multipart/form-data; boundary=x"}},
		"UTF-16":               {"Content-Type": {"application/json; charset=utf-16"}},
		"two types":            {"Content-Type": {"application/json", "text/plain"}},
		"a broken type":        {"Content-Type": {"application/json; charset"}},
		"gzip":                 {"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
		"identity and another": {"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "gzip"}},
	} {
		_, ref := Decode(h, []byte(`{"jsonrpc":"2.0","method":"ping","id":1}`))
		require.NotNil(t, ref, name)
		assert.Equal(t, refusal.CodeUnsupported, ref.Code, name)
	}
	for _, ct := range []string{"application/json", "Application/JSON; charset=UTF-8", "application/json;charset=utf-8"} {
		_, ref := Decode(http.Header{"Content-Type": {ct}, "Content-Encoding": {"identity"}}, []byte(`{"jsonrpc":"2.0","method":"ping","id":1}`))
		require.Nil(t, ref, ct)
	}
}

func TestWhatIsJudgedOfAMessage(t *testing.T) {
	tool := func(target string, texts ...string) []guard.Subject {
		var all []guard.Subject
		for _, text := range texts {
			all = append(all, guard.Subject{Kind: guard.KindTool, Target: target, Text: text})
		}
		return all
	}
	for name, tt := range map[string]struct {
		message string
		want    []guard.Subject
	}{
		"a tool call":                   {`"id":1,"method":"tools/call","params":{"name":"run","arguments":{"command":"ls","n":1.50}}`, tool("run", `{"command":"ls","n":1.50}`)},
		"a tool call without arguments": {`"id":1,"method":"tools/call","params":{"name":"run"}`, tool("run", `{}`)},
		"a tool call as a notification": {`"method":"tools/call","params":{"name":"run","arguments":{"a":1}}`, tool("run", `{"a":1}`)},
		"an escaped method":             {`"id":1,"m\u0065thod":"tools\/call","params":{"n\u0061me":"run","arguments":{"\u0061":"\u0062"}}`, tool("run", `{"a":"b"}`)},
		"an address":                    {`"id":1,"method":"tools/call","params":{"name":"fetch","arguments":{"x":"http://169.254.169.254/latest"}}`, tool("fetch", `{"x":"http://169.254.169.254/latest"}`, "FETCH http://169.254.169.254/latest")},
		"addresses, deep, once":         {`"id":1,"method":"tools/call","params":{"name":"f","arguments":{"a":[{"b":" HTTPS://x/y "},"ftp://z","ftp://z"]}}`, tool("f", `{"a":[{"b":" HTTPS://x/y "},"ftp://z","ftp://z"]}`, "FETCH HTTPS://x/y", "FETCH ftp://z")},
		"an address by its name":        {`"id":1,"method":"tools/call","params":{"name":"f","arguments":{"targetURL":"169.254.169.254/x","urls":["//a.b"],"uri":"./rel"}}`, tool("f", `{"targetURL":"169.254.169.254/x","urls":["//a.b"],"uri":"./rel"}`, "FETCH http://169.254.169.254/x", "FETCH http://a.b")},
		"prose with an address":         {`"id":1,"method":"tools/call","params":{"name":"f","arguments":{"text":"see http://a.b for more"}}`, tool("f", `{"text":"see http://a.b for more"}`)},
		"a resource":                    {`"id":1,"method":"resources/read","params":{"uri":"https://a.b/c"}`, tool("resources/read", "FETCH https://a.b/c")},
		"a file":                        {`"id":1,"method":"resources/subscribe","params":{"uri":"file:///etc/sha%64ow"}`, tool("resources/subscribe", "FETCH file:///etc/sha%64ow", "READ /etc/shadow")},
		"a prompt":                      {`"id":1,"method":"prompts/get","params":{"name":"p","arguments":{"a":"b"}}`, tool("prompts/get p", `{"name":"p","arguments":{"a":"b"}}`)},
		"a completion":                  {`"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`, tool("completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`)},
		"a method nobody knows":         {`"id":1,"method":"x/exec","params":{"command":"ls"}`, tool("x/exec", `{"command":"ls"}`)},
		"one without params":            {`"id":1,"method":"x/exec"`, tool("x/exec", `{}`)},
		"a model's words":               {`"id":1,"result":{"role":"assistant","content":{"type":"text","text":"ls"}}`, tool("response", `{"role":"assistant","content":{"type":"text","text":"ls"}}`)},
		"an empty answer":               {`"id":1,"result":{}`, nil},
		"an error":                      {`"id":1,"error":{"code":1,"message":"x"}`, nil},
		"the start":                     {`"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"x"}}`, nil},
		"a list":                        {`"id":1,"method":"tools/list"`, nil},
		"progress":                      {`"method":"notifications/progress","params":{"progressToken":1,"progress":0.5}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := decode(t, `{"jsonrpc":"2.0",`+tt.message+`}`)
			got, ref := b.Subjects()
			require.Nil(t, ref)
			require.Equal(t, tt.want, got)
			both := decode(t, `[{"jsonrpc":"2.0",`+tt.message+`},{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":"last"}}]`)
			got, ref = both.Subjects()
			require.Nil(t, ref)
			require.Equal(t, append(tt.want, tool("last", "{}")...), got, "in a batch")
		})
	}
	var many []string
	for i := range maxURLs + 1 {
		many = append(many, "http://h/"+strings.Repeat("x", i))
	}
	list, _ := json.Marshal(many)
	_, ref := decode(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","arguments":{"a":`+string(list)+`}}}`).Subjects()
	require.NotNil(t, ref, "no address goes unjudged")
}

func TestCallsAreNamedForTheirAnswers(t *testing.T) {
	b := decode(t, `[{"jsonrpc":"2.0","id":1e2,"method":"tools/call","params":{"name":"a"}},{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","id":"x\"y","method":"ping"},{"jsonrpc":"2.0","id":3,"result":{}}]`)
	ids, batch := b.Calls()
	require.True(t, batch)
	require.Equal(t, []string{"1e2", `"x\"y"`}, ids)
	require.Equal(t, map[string]string{"1e2": "a"}, b.Tools())
}

func TestStreamsFlowEventByEvent(t *testing.T) {
	events := []string{
		"event: endpoint\ndata: /message?sessionId=1\n\n", ": keepalive\n\n", "event: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n",
		"id: 7\rdata:{\"b\":2}\r\r", "\xef\xbb\xbfdata: x\nretry: 5\n\n", "data\n\n",
	}
	for name, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "late error": iotest.DataErrReader} {
		t.Run(name, func(t *testing.T) {
			var saw []string
			s := NewStream(io.NopCloser(reader(strings.NewReader(strings.Join(events, "")+"data: unfinished"))), func(event string, data []byte) []byte {
				saw = append(saw, event+"|"+string(data))
				if string(data) == `{"b":2}` {
					return []byte(`{"c":3}`)
				}
				return nil
			})
			got, err := io.ReadAll(s)
			require.NoError(t, err)
			require.Equal(t, strings.Join(events[:3], "")+"event: message\ndata: {\"c\":3}\n\n"+strings.Join(events[4:], ""), string(got))
			require.Equal(t, []string{"endpoint|/message?sessionId=1", "message|{\"a\":\n1}", `|{"b":2}`, "|x"}, saw)
		})
	}
	s := NewStream(io.NopCloser(strings.NewReader("data: "+strings.Repeat("x", MaxAnswer))), func(string, []byte) []byte { return nil })
	_, err := io.ReadAll(s)
	require.ErrorContains(t, err, "larger than 16 MiB")
}

func TestResults(t *testing.T) {
	got, err := Results([]byte(`[{"jsonrpc":"2.0","id":1,"result":{"content":[]}},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":"b","error":{}}]`))
	require.NoError(t, err)
	require.Equal(t, []Result{{ID: "1", Text: `{"content":[]}`}}, got)
	for _, bad := range []string{"", "x", "[1]", `{"id":1,"id":2}`} {
		_, err := Results([]byte(bad))
		require.Error(t, err, bad)
	}
}

// FuzzDecode checks that what a Go server reads of a body is what was judged:
// encoding/json takes members in any case and the last of several.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"command":"ls"}}}`,
		`{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":"a","NAME":"b"}}`,
		`[{"jsonrpc":"2.0","id":1,"result":{}}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, ref := Decode(plainHeaders(), body)
		if ref != nil || b.batch {
			return
		}
		var server struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		encoded, err := b.Encode()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &server))
		require.Equal(t, b.messages[0].method, server.Method)
		subjects, ref := b.Subjects()
		if ref != nil || server.Method != methodToolCall {
			return
		}
		var params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		require.NoError(t, json.Unmarshal(server.Params, &params))
		require.Equal(t, params.Name, subjects[0].Target)
		if len(params.Arguments) > 0 && string(params.Arguments) != "null" {
			require.Equal(t, string(params.Arguments), subjects[0].Text)
		}
	})
}
