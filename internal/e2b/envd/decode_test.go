package envd

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

const (
	startPath = "/process.Process/Start"
	statPath  = "/filesystem.Filesystem/Stat"
	maxTest   = 1 << 20
)

func methodOf(t testing.TB, path string) Method {
	t.Helper()
	m, ok := MethodFor(path)
	require.True(t, ok, path)
	return m
}

// server reads requests with connect-go, the library envd is built on, and keeps
// what the procedures would have been given.
type server struct {
	start, stat http.Handler
	got         proto.Message
}

func newServer() *server {
	s := &server{}
	s.start = connect.NewServerStreamHandler(startPath,
		func(_ context.Context, req *connect.Request[processpb.StartRequest], _ *connect.ServerStream[processpb.StartResponse]) error {
			s.got = req.Msg
			return nil
		})
	s.stat = connect.NewUnaryHandler(statPath,
		func(_ context.Context, req *connect.Request[filesystempb.StatRequest]) (*connect.Response[filesystempb.StatResponse], error) {
			s.got = req.Msg
			return connect.NewResponse(&filesystempb.StatResponse{}), nil
		})
	return s
}

// serve returns what the procedure was given, nil if it was not called.
func (s *server) serve(path string, h http.Header, body []byte) proto.Message {
	s.got = nil
	req := httptest.NewRequest(http.MethodPost, "http://sandbox.test"+path, bytes.NewReader(body))
	req.Header = h.Clone()
	handler := s.start
	if path == statPath {
		handler = s.stat
	}
	handler.ServeHTTP(httptest.NewRecorder(), req)
	return s.got
}

func decodeRequest(t testing.TB, path string, h http.Header, body []byte) (*Message, *refusal.Refusal) {
	t.Helper()
	m := methodOf(t, path)
	enc, r := Classify(m, h)
	if r != nil {
		return nil, r
	}
	return Decode(m, enc, bytes.NewReader(body), maxTest)
}

func frameOf(flags byte, payload string) string {
	return string(appendFrame(nil, flags, []byte(payload)))
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func start(cmd string, args ...string) *processpb.StartRequest {
	return &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: cmd, Args: args}}
}

func protoOf(t testing.TB, m proto.Message) string {
	t.Helper()
	b, err := proto.Marshal(m)
	require.NoError(t, err)
	return string(b)
}

const (
	echoJSON  = `{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"]},"stdin":false}`
	jsonType  = "application/connect+json"
	protoType = "application/connect+proto"
)

// TestDecodeAgreesWithServer sends each request to connect-go and to Decode: what
// the server refuses is refused here, what is read here is what the server reads,
// and the canonical body is read by the server as the very same message.
func TestDecodeAgreesWithServer(t *testing.T) {
	bash := protoOf(t, start("/bin/bash", "-c", "id"))
	half := protoOf(t, &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/true", Args: []string{"-c"}}})
	other := protoOf(t, &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"id"}}})

	tests := map[string]struct {
		path    string
		headers string // "Name: value" lines
		body    string
		refused bool
		// stricter is set where the server takes what is refused here on purpose.
		stricter bool
		cmd      string // of the message read; "" for not a start
	}{
		"stream json":                {body: frameOf(0, echoJSON), cmd: "/bin/bash"},
		"pretty json":                {body: frameOf(0, "{\n \"process\": {\n \"cmd\": \"/bin/bash\"}\n}"), cmd: "/bin/bash"},
		"charset parameter":          {headers: "Content-Type: application/connect+json; charset=UTF-8", body: frameOf(0, echoJSON), cmd: "/bin/bash"},
		"other parameter":            {headers: "Content-Type: application/connect+json; v=1", body: frameOf(0, echoJSON), refused: true},
		"upper case content type":    {headers: "Content-Type: APPLICATION/Connect+JSON", body: frameOf(0, echoJSON), cmd: "/bin/bash"},
		"stream proto":               {headers: "Content-Type: " + protoType, body: frameOf(0, bash), cmd: "/bin/bash"},
		"proto with charset":         {headers: "Content-Type: application/connect+proto; charset=utf-8", body: frameOf(0, bash), refused: true},
		"no content type":            {headers: "X-None: 1", body: frameOf(0, echoJSON), refused: true},
		"text":                       {headers: "Content-Type: text/plain", body: frameOf(0, echoJSON), refused: true},
		"unary type on stream":       {headers: "Content-Type: application/json", body: echoJSON, refused: true},
		"grpc":                       {headers: "Content-Type: application/grpc", body: frameOf(0, bash), refused: true, stricter: true},
		"grpc-web json":              {headers: "Content-Type: application/grpc-web+json", body: frameOf(0, echoJSON), refused: true, stricter: true},
		"two content types":          {headers: "Content-Type: application/connect+json\nContent-Type: application/connect+proto", body: frameOf(0, echoJSON), refused: true, stricter: true},
		"message gzip":               {headers: gz, body: frameOf(1, gzipped(echoJSON)), cmd: "/bin/bash"},
		"message gzip, two members":  {headers: gz, body: frameOf(1, gzipped(echoJSON[:9])+gzipped(echoJSON[9:])), cmd: "/bin/bash"},
		"gzip announced, not used":   {headers: gz, body: frameOf(0, echoJSON), cmd: "/bin/bash"},
		"gzip flag, not announced":   {body: frameOf(1, gzipped(echoJSON)), refused: true},
		"gzip flag on plain":         {headers: gz, body: frameOf(1, echoJSON), refused: true},
		"gzip cut short":             {headers: gz, body: frameOf(1, gzipped(echoJSON)[:40]), refused: true},
		"gzip with junk behind":      {headers: gz, body: frameOf(1, gzipped(echoJSON)+"junk"), refused: true},
		"deflate":                    {headers: "Connect-Content-Encoding: deflate", body: frameOf(1, echoJSON), refused: true},
		"upper case gzip":            {headers: "Connect-Content-Encoding: GZIP", body: frameOf(1, gzipped(echoJSON)), refused: true},
		"identity":                   {headers: "Connect-Content-Encoding: identity\nContent-Encoding: identity", body: frameOf(0, echoJSON), cmd: "/bin/bash"},
		"whole body gzip on stream":  {headers: "Content-Encoding: gzip", body: gzipped(frameOf(0, echoJSON)), refused: true},
		"end of stream behind":       {body: frameOf(0, echoJSON) + frameOf(2, "{}"), cmd: "/bin/bash"},
		"end of stream only":         {body: frameOf(2, "{}"), refused: true},
		"bytes behind end of stream": {body: frameOf(0, echoJSON) + frameOf(2, "{}") + "x", refused: true},
		"error in end of stream":     {body: frameOf(0, echoJSON) + frameOf(2, `{"error":{"code":"internal"}}`), refused: true, stricter: true},
		"two messages":               {body: frameOf(0, `{"process":{"cmd":"/bin/true"}}`) + frameOf(0, echoJSON), refused: true},
		"empty message first":        {body: frameOf(0, "") + frameOf(0, echoJSON), refused: true},
		"empty message":              {body: frameOf(0, "")},
		"empty compressed message":   {headers: gz, body: frameOf(1, "")},
		"trailing bytes":             {body: frameOf(0, echoJSON) + "abc", refused: true},
		"short frame":                {body: frameOf(0, echoJSON)[:20], refused: true},
		"short header":               {body: "\x00\x00", refused: true},
		"empty body":                 {refused: true},
		"flag 4":                     {body: frameOf(4, echoJSON), refused: true},
		"flag 0x80":                  {body: frameOf(0x80, echoJSON), refused: true},
		"flag 0xff":                  {body: frameOf(0xFF, echoJSON), refused: true},
		"flag 3":                     {headers: gz, body: frameOf(3, gzipped(echoJSON)), refused: true},
		"length of 4 GiB":            {body: "\x00\xff\xff\xff\xff" + echoJSON, refused: true},
		"protocol version 2":         {headers: "Connect-Protocol-Version: 2", body: frameOf(0, echoJSON), refused: true},

		"snake case keys":        {body: frameOf(0, `{"process":{"cmd":"a"},"pty":{"size":{"cols":1,"rows":2}}}`), cmd: "a"},
		"escaped key":            {body: frameOf(0, `{"process":{"\u0063md":"a"}}`), cmd: "a"},
		"wrong case is unknown":  {body: frameOf(0, `{"process":{"cmd":"a","Cmd":"b"}}`), cmd: "a"},
		"duplicate key":          {body: frameOf(0, `{"process":{"cmd":"a","cmd":"b"}}`), refused: true},
		"duplicate escaped key":  {body: frameOf(0, `{"process":{"cmd":"a","\u0063md":"b"}}`), refused: true},
		"duplicate unknown key":  {body: frameOf(0, `{"process":{"cmd":"a"},"x":{"y":1,"y":2}}`), refused: true, stricter: true},
		"byte order mark":        {body: frameOf(0, "\xef\xbb\xbf"+echoJSON), refused: true},
		"utf-16":                 {body: frameOf(0, "\xff\xfe{\x00}\x00"), refused: true},
		"invalid utf-8":          {body: frameOf(0, "{\"process\":{\"cmd\":\"\xff\"}}"), refused: true},
		"lone surrogate":         {body: frameOf(0, `{"process":{"cmd":"\ud800"}}`), refused: true},
		"trailing json":          {body: frameOf(0, echoJSON+echoJSON), refused: true},
		"comment":                {body: frameOf(0, "/* */"+echoJSON), refused: true},
		"string for bool":        {body: frameOf(0, `{"process":{"cmd":"a"},"stdin":"false"}`), refused: true},
		"null fields":            {body: frameOf(0, `{"process":{"cmd":"a","args":null,"cwd":null},"pty":null}`), cmd: "a"},
		"proto fields merge":     {headers: "Content-Type: " + protoType, body: frameOf(0, half+other), cmd: "/bin/bash"},
		"proto unknown field":    {headers: "Content-Type: " + protoType, body: frameOf(0, bash+string(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7))), cmd: "/bin/bash"},
		"proto invalid utf-8":    {headers: "Content-Type: " + protoType, body: frameOf(0, "\x0a\x03\x0a\x01\xff"), refused: true},
		"proto cut short":        {headers: "Content-Type: " + protoType, body: frameOf(0, bash[:5]), refused: true},
		"json in a proto stream": {headers: "Content-Type: " + protoType, body: frameOf(0, echoJSON), refused: true},

		"unary json":                     {path: statPath, headers: "Content-Type: application/json", body: `{"path":"/a"}`},
		"unary proto":                    {path: statPath, headers: "Content-Type: application/proto", body: "\x0a\x02/a"},
		"unary empty json":               {path: statPath, headers: "Content-Type: application/json", refused: true},
		"unary empty proto":              {path: statPath, headers: "Content-Type: application/proto"},
		"unary gzip":                     {path: statPath, headers: "Content-Type: application/json\nContent-Encoding: gzip", body: gzipped(`{"path":"/a"}`)},
		"unary br":                       {path: statPath, headers: "Content-Type: application/json\nContent-Encoding: br", body: `{"path":"/a"}`, refused: true},
		"unary, stream type":             {path: statPath, headers: "Content-Type: application/connect+json", body: frameOf(0, `{"path":"/a"}`), refused: true},
		"unary gzip, wrong header":       {path: statPath, headers: "Content-Type: application/json\nConnect-Content-Encoding: gzip", body: gzipped(`{"path":"/a"}`), refused: true},
		"unary double gzip":              {path: statPath, headers: "Content-Type: application/json\nContent-Encoding: gzip", body: gzipped(gzipped(`{"path":"/a"}`)), refused: true},
		"unary gzip, gzip":               {path: statPath, headers: "Content-Type: application/json\nContent-Encoding: gzip, gzip", body: gzipped(`{"path":"/a"}`), refused: true},
		"unary two values, one encoding": {path: statPath, headers: "Content-Type: application/json\nContent-Encoding: identity\nContent-Encoding: gzip", body: `{"path":"/a"}`, refused: true, stricter: true},
	}
	s := newServer()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := tt.path
			if path == "" {
				path = startPath
			}
			h := http.Header{"Content-Type": {jsonType}}
			for line := range strings.Lines(tt.headers) {
				k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if strings.HasPrefix(tt.headers, "Content-Type") || strings.HasPrefix(tt.headers, "X-None") {
					h.Del("Content-Type")
					tt.headers = ""
				}
				h.Add(k, v)
			}
			given := s.serve(path, h, []byte(tt.body))
			msg, r := decodeRequest(t, path, h, []byte(tt.body))
			if tt.refused {
				require.NotNil(t, r)
				assert.Contains(t, []refusal.Code{refusal.CodeInvalid, refusal.CodeUnsupported, refusal.CodeTooLarge}, r.Code)
				assert.Equal(t, tt.stricter, given != nil, "the server was asked: %v", given)
				return
			}
			require.Nil(t, r)
			require.NotNil(t, given, "the server refuses what is read here")
			assert.True(t, proto.Equal(given, msg.Proto), "server read %v, we read %v", given, msg.Proto)
			if tt.cmd != "" {
				assert.Equal(t, tt.cmd, msg.Proto.(*processpb.StartRequest).GetProcess().GetCmd())
			}
			requireRoundTrip(t, s, path, h, msg)
		})
	}
}

const gz = "Connect-Content-Encoding: gzip"

// requireRoundTrip checks that the server reads from the canonical body, under
// the canonical headers, what was read here.
func requireRoundTrip(t testing.TB, s *server, path string, h http.Header, msg *Message) {
	t.Helper()
	body, err := msg.Encode()
	require.NoError(t, err)
	h = h.Clone()
	_, r := SanitiseHeaders(msg, h, Deadlines{})
	require.Nil(t, r)
	again := s.serve(path, h, body)
	require.NotNil(t, again, "the server refuses the canonical body %q", body)
	require.True(t, proto.Equal(again, msg.Proto), "server reads %v from the canonical body, we judged %v", again, msg.Proto)
}

// Request compression must be undone within a cap, never passed unread:
// openappsec/openappsec#353, chaitin/SafeLine#1222, corazawaf/coraza#976.
// What cannot be decoded may hold secrets, and be long: its answer says where it
// is wrong and quotes none of it.
func TestUndecodableBodiesAreNotQuoted(t *testing.T) {
	secret := strings.Repeat("sk-secret", 100)
	for name, body := range map[string]string{
		"a string where an object belongs": `{"process":{"cmd":"x","envs":"` + secret + `"}}`,
		"a string where a list belongs":    `{"process":{"cmd":"x","args":"` + secret + `"}}`,
		"a number where a string belongs":  `{"process":{"cmd":123456789123456789}}`,
		"an unquoted value":                `{"process":{"cmd":` + secret + `}}`,
		"a key twice":                      `{"` + secret + `":1,"` + secret + `":2}`,
		"an unfinished string":             `{"process":{"cmd":"` + secret,
		"an invalid escape":                `{"process":{"cmd":"` + secret + `\q"}}`,
		"an unknown signal":                `{"process":{"cmd":"x"},"stdin":"` + secret + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Content-Type": {jsonType}}
			_, r := decodeRequest(t, startPath, h, []byte(frameOf(0, body)))
			require.NotNil(t, r)
			assert.Less(t, len(r.Reason), 400)
			assert.Less(t, len(r.Err.Error()), 400)
			assert.NotContains(t, r.Reason+r.Err.Error(), "123456789")
			if name != "a key twice" { // keys are names, and told, shortened
				assert.NotContains(t, r.Reason+r.Err.Error(), "sk-secret")
			}
		})
	}
}

func TestDecodeBoundsInflation(t *testing.T) {
	bomb := gzipped(strings.Repeat("a", 64<<20))
	require.Less(t, len(bomb), maxTest)
	h := http.Header{"Content-Type": {jsonType}, "Connect-Content-Encoding": {"gzip"}}
	_, r := decodeRequest(t, startPath, h, []byte(frameOf(1, bomb)))
	require.NotNil(t, r)
	assert.Equal(t, refusal.CodeTooLarge, r.Code)

	h = http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
	_, r = decodeRequest(t, statPath, h, []byte(bomb))
	require.NotNil(t, r)
	assert.Equal(t, refusal.CodeTooLarge, r.Code)
}

// A gateway that re-encodes must not lose what it does not know: terminal sizes
// went missing that way in docker/sbx-releases#63.
func TestEncodeKeepsUnknownFields(t *testing.T) {
	t.Run("proto", func(t *testing.T) {
		req := &processpb.StartRequest{
			Process: &processpb.ProcessConfig{Cmd: "/bin/bash"},
			Pty:     &processpb.PTY{Size: &processpb.PTY_Size{Cols: 203, Rows: 51}},
		}
		unknown := string(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "later"))
		body := frameOf(0, protoOf(t, req)+unknown)
		msg, r := decodeRequest(t, startPath, http.Header{"Content-Type": {protoType}}, []byte(body))
		require.Nil(t, r)
		out, err := msg.Encode()
		require.NoError(t, err)
		assert.Equal(t, body, string(out))
	})
	t.Run("json", func(t *testing.T) {
		body := `{"process":{"cmd":"/bin/bash","args":["-i"],"later":{"deep":[1,2.50]}},"pty":{"size":{"cols":203,"rows":51,"depth":24}},"tag":"t","more":null}`
		msg, r := decodeRequest(t, startPath, http.Header{"Content-Type": {jsonType}}, []byte(frameOf(0, body)))
		require.Nil(t, r)
		require.True(t, Wrap(msg.Proto.(*processpb.StartRequest), WrapOptions{CPUSeconds: 1}))
		out, err := msg.Encode()
		require.NoError(t, err)
		var read processpb.StartRequest
		tree, err := unmarshal(JSON, out[frameHeader:], &read)
		require.NoError(t, err)
		assert.Equal(t, "/bin/sh", read.GetProcess().GetCmd())
		assert.EqualValues(t, 203, read.GetPty().GetSize().GetCols())
		require.NotNil(t, tree)
		for _, part := range []string{`"later":{"deep":[1,2.50]}`, `"depth":24`, `"more":null`} {
			assert.Contains(t, string(out), part)
		}
	})
}

func FuzzDecodeStart(f *testing.F) {
	f.Add(false, false, []byte(frameOf(0, echoJSON)))
	f.Add(false, false, []byte(frameOf(0, echoJSON)+frameOf(2, "{}")))
	f.Add(false, true, []byte(frameOf(1, gzipped(echoJSON))))
	f.Add(true, false, []byte(frameOf(0, protoOf(f, start("/bin/bash", "-c", "id")))))
	f.Add(true, false, []byte(frameOf(0, "\x0a\x00\x0a\x03\x0a\x01a\xf8\x06\x01")))
	s := newServer()
	f.Fuzz(func(t *testing.T, binary, compressed bool, body []byte) {
		h := http.Header{"Content-Type": {jsonType}}
		if binary {
			h.Set("Content-Type", protoType)
		}
		if compressed {
			h.Set("Connect-Content-Encoding", "gzip")
		}
		msg, r := decodeRequest(t, startPath, h, body)
		if r != nil {
			return
		}
		given := s.serve(startPath, h, body)
		if given == nil || !proto.Equal(given, msg.Proto) {
			t.Fatalf("the server reads %v, we read %v", given, msg.Proto)
		}
		requireRoundTrip(t, s, startPath, h, msg)
	})
}
