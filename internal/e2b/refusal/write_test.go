package refusal_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const reason = "Blocked by policy: the command sends <secrets> to ünknown.test. Do not retry by another route."

func blocked() *refusal.Refusal {
	r := refusal.New(refusal.CodePolicy, reason)
	r.RequestID = "req-1"
	r.Err = errors.New("never shown: detail of the guard")
	return r
}

func overloaded() *refusal.Refusal {
	r := refusal.New(refusal.CodeOverload, "Too many calls at once. Try again in a moment.")
	r.RequestID = "req-2"
	r.RetryAfter = 1500 * time.Millisecond
	return r
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// forms are one request for each kind of client code that reads an error.
var forms = map[string]refusal.Form{
	"control":              refusal.FormFor("control", "/sandboxes", headers("Content-Type", "application/json")),
	"guard_api":            refusal.FormFor("gateway", "/api/guard", headers("Content-Type", "application/json")),
	"run":                  refusal.FormFor("gateway", "/run", headers("Content-Type", "application/json")),
	"run_events":           refusal.FormFor("gateway", "/run", headers("Accept", "text/html, Application/X-NDJSON;q=0.9")),
	"connect_unary":        refusal.FormFor("envd", "/filesystem.Filesystem/Stat", headers("Content-Type", "application/json")),
	"connect_stream_json":  refusal.FormFor("envd", "/process.Process/Start", headers("Content-Type", "application/connect+json; charset=utf-8")),
	"connect_stream_proto": refusal.FormFor("envd", "/process.Process/Start", headers("Content-Type", "Application/Connect+Proto")),
	"grpc":                 refusal.FormFor("envd", "/process.Process/Start", headers("Content-Type", "application/grpc+proto")),
	"grpc_web":             refusal.FormFor("envd", "/process.Process/Start", headers("Content-Type", "application/grpc-web+json")),
	"files":                refusal.FormFor("files", "/files", headers("Content-Type", "multipart/form-data; boundary=x")),
	"execute":              refusal.FormFor("interpreter", "/execute", headers("Content-Type", "application/json")),
	"contexts":             refusal.FormFor("interpreter", "/contexts", headers("Content-Type", "application/json")),
	"port_json":            refusal.FormFor("port", "/", headers("Accept", "application/json, text/event-stream")),
	"port_plain":           refusal.FormFor("port", "/", headers("Accept", "text/html")),
}

// TestRefusalsLookAsClientsReadThem pins every byte of every form: status,
// headers and body.
func TestRefusalsLookAsClientsReadThem(t *testing.T) {
	for name, form := range forms {
		for what, r := range map[string]*refusal.Refusal{"blocked": blocked(), "overloaded": overloaded()} {
			t.Run(name+"_"+what, func(t *testing.T) {
				w := httptest.NewRecorder()
				refusal.Write(w, form, r)
				got := dump(w)
				assert.NotContains(t, got, "never shown")
				file := filepath.Join("testdata", name+"_"+what+".golden")
				if *update {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Equal(t, string(want), got)
			})
		}
	}
}

func dump(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", w.Code)
	names := make([]string, 0, len(w.Header()))
	for name := range w.Header() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(w.Header()[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", strconv.Quote(w.Body.String()))
	return b.String()
}

// The real client of each protocol must show code and reason.
func TestConnectClientsReadTheReason(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal.Write(w, refusal.FormFor("envd", r.URL.Path, r.Header), blocked())
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, options := range map[string][]connect.ClientOption{
		"connect json":  {connect.WithProtoJSON()},
		"connect proto": nil,
		"grpc":          {connect.WithGRPC()},
		"grpc-web":      {connect.WithGRPCWeb()},
		"grpc json":     {connect.WithGRPC(), connect.WithProtoJSON()},
	} {
		client := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+"/process.Process/Start", options...)
		check := func(t *testing.T, err error) {
			t.Helper()
			require.Error(t, err)
			assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err))
			assert.Contains(t, err.Error(), reason+" [e2bguard request req-1]")
		}
		t.Run(name+" unary", func(t *testing.T) {
			_, err := client.CallUnary(context.Background(), connect.NewRequest(&emptypb.Empty{}))
			check(t, err)
		})
		t.Run(name+" stream", func(t *testing.T) {
			stream, err := client.CallServerStream(context.Background(), connect.NewRequest(&emptypb.Empty{}))
			if err == nil {
				require.False(t, stream.Receive())
				err = stream.Err()
			}
			check(t, err)
		})
	}
}

// Statuses and codes whose text a client replaces by its own are never sent: see
// e2b-dev/E2B#1325 for 429 and the SDKs' error maps for the rest.
func TestNoRefusalUsesAStatusThatHidesIt(t *testing.T) {
	hidden := map[string][]int{
		"control": {http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable},
		"files":   {http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable},
	}
	for _, code := range refusal.Codes() {
		for name, form := range forms {
			w := httptest.NewRecorder()
			refusal.Write(w, form, refusal.New(code, "why"))
			// These must read as E2B's own word for what is gone.
			if code != refusal.CodeNotFound && code != refusal.CodeNoProcess {
				assert.NotContains(t, hidden[name], w.Code, "%s %s", name, code)
			}
			switch name {
			case "connect_stream_json", "connect_stream_proto", "grpc", "grpc_web", "execute":
				assert.Equal(t, http.StatusOK, w.Code, "%s %s", name, code)
			case "contexts":
				assert.Equal(t, http.StatusNotFound, w.Code)
			default:
				assert.GreaterOrEqual(t, w.Code, 400, "%s %s", name, code)
			}
			assert.Contains(t, w.Header().Get("E2b-Guard"), "block; code="+string(code))
			if name == "connect_stream_json" {
				assert.NotContains(t, w.Body.String(), `"canceled"`)
				assert.Equal(t, code == refusal.CodeDeadline, strings.Contains(w.Body.String(), `"deadline_exceeded"`), code)
			}
		}
	}
}

// e2b-dev/E2B#1325: a rate limit must look like one on every plane.
func TestOverloadSaysWhenToRetry(t *testing.T) {
	for _, name := range []string{"control", "files", "connect_unary"} {
		w := httptest.NewRecorder()
		refusal.Write(w, forms[name], refusal.New(refusal.CodeOverload, "busy"))
		assert.Equal(t, http.StatusTooManyRequests, w.Code, name)
		assert.Equal(t, "1", w.Header().Get("Retry-After"), name)
		assert.Contains(t, w.Body.String(), `"retryable":true`)
	}
	assert.Equal(t, "resource_exhausted", refusal.ConnectCode(refusal.New(refusal.CodeOverload, "")))
}

func TestExecuteEventsAreWholeASCIILines(t *testing.T) {
	r := blocked()
	r.Reason = "ünïcode 🚫\nsecond line"
	events := refusal.ExecuteEvents(r)
	for _, c := range events {
		require.Less(t, c, byte(0x80))
	}
	lines := strings.Split(strings.TrimSuffix(string(events), "\n"), "\n")
	require.Len(t, lines, 2)
	var event struct{ Type, Name, Value, Traceback string }
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &event))
	assert.Equal(t, "error", event.Type)
	assert.Equal(t, "PolicyViolation", event.Name)
	assert.Equal(t, r.Message(), event.Value)
	assert.Equal(t, r.Message(), event.Traceback)
	assert.Equal(t, `{"type": "end_of_execution"}`, lines[1])
}

func TestFormOfUnroutableRequestFollowsItsHeaders(t *testing.T) {
	for _, tt := range []struct {
		path, contentType string
		want              refusal.Kind
	}{
		{"/process.Process/Start", "application/connect+json", refusal.ConnectStream},
		{"/filesystem.Filesystem/Stat", "application/json", refusal.ConnectUnary},
		{"/files", "", refusal.Files},
		{"/execute", "application/json", refusal.Execute},
		{"/contexts/a/restart", "", refusal.Contexts},
		{"/sandboxes", "application/json", refusal.REST},
		{"/health", "", refusal.REST},
	} {
		assert.Equal(t, tt.want, refusal.FormFor("", tt.path, headers("Content-Type", tt.contentType)).Kind, tt.path)
	}
}

// What the client sends is not put into a response header, except the protocols'
// own content types.
func TestContentTypeIsNotEchoedBlindly(t *testing.T) {
	for sent, want := range map[string]string{
		"application/connect+html":     "application/connect+json",
		"application/grpc-web+x":       "application/grpc-web",
		"application/grpcfoo":          "application/grpc",
		"application/connect+proto; a": "application/connect+proto",
	} {
		assert.Equal(t, want, refusal.FormFor("envd", "/process.Process/Start", headers("Content-Type", sent)).ContentType)
	}
}

func TestUnknownCodeIsAnInternalError(t *testing.T) {
	w := httptest.NewRecorder()
	refusal.Write(w, refusal.Form{}, &refusal.Refusal{Code: "nonsense", Status: 200, Reason: "x"})
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	assert.JSONEq(t, `{"code":500,"message":"x","reason":"internal_error","retryable":false}`, w.Body.String())
}
