package emulator

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// frame is one enveloped message.
func frame(flags byte, payload string) string {
	head := make([]byte, 5)
	head[0] = flags
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload))) // Small in tests.
	return string(head) + payload
}

func zipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(s))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// plain appends to an enveloped body what its compressed frames hold.
func plain(t *testing.T, body string) string {
	t.Helper()
	out := body
	const head = 5
	for rest := body; len(rest) > head; {
		size := int(binary.BigEndian.Uint32([]byte(rest[1:head])))
		if rest[0] > 3 || head+size > len(rest) {
			break // Not an envelope.
		}
		if rest[0]&1 == 1 {
			r, err := gzip.NewReader(strings.NewReader(rest[head : head+size]))
			require.NoError(t, err)
			b, err := io.ReadAll(r)
			require.NoError(t, err)
			out += string(b)
		}
		rest = rest[head+size:]
	}
	return out
}

// What the real daemon accepts and refuses was measured with these requests;
// here it shows as the marker in the output, or not.
func TestEncodingsOfStart(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	const (
		msg    = `{"process":{"cmd":"/bin/echo","args":["ENC-OK"]},"stdin":false}`
		base64 = "RU5DLU9LCg==" // of the marker and a newline
	)
	binaryMsg, err := proto.Marshal(&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "/bin/echo", Args: []string{"ENC-OK"}}})
	require.NoError(t, err)
	merged, err := proto.Marshal(&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "/bin/false", Args: []string{"-n"}}})
	require.NoError(t, err)
	const connectJSON = "application/connect+json"
	for _, tt := range []struct {
		name, path, kind, body string
		headers                []string
		status                 int
		want                   string
	}{
		{"connect+json", "", connectJSON, frame(0, msg), nil, 200, base64},
		{"upper case and a parameter", "", "Application/CONNECT+json; charset=utf-8", frame(0, msg), nil, 200, base64},
		{"connect+proto", "", "application/connect+proto", frame(0, string(binaryMsg)), nil, 200, "ENC-OK"},
		{"merged proto messages", "", "application/connect+proto", frame(0, string(merged)+string(binaryMsg)), nil, 200, "ENC-OK"},
		{"grpc", "", "application/grpc", frame(0, string(binaryMsg)), nil, 200, "ENC-OK"},
		{"grpc+json", "", "application/grpc+json", frame(0, msg), nil, 200, base64},
		{"grpc-web+json", "", "application/grpc-web+json", frame(0, msg), nil, 200, base64},
		{"gzip per message", "", connectJSON, frame(1, zipped(t, msg)), []string{"Connect-Content-Encoding", "gzip", "Connect-Accept-Encoding", "identity"}, 200, base64},
		{"two gzip members", "", connectJSON, frame(1, zipped(t, msg[:9])+zipped(t, msg[9:])), []string{"Connect-Content-Encoding", "gzip", "Connect-Accept-Encoding", "identity"}, 200, base64},
		{"an end frame after the message", "", connectJSON, frame(0, msg) + frame(2, "{}"), nil, 200, base64},
		{"escaped keys", "", connectJSON, frame(0, `{"pro\u0063ess":{"cmd":"/bin/echo","args":["ENC-OK"]}}`), nil, 200, base64},
		{"unknown fields", "", connectJSON, frame(0, `{"x":1,"process":{"cmd":"/bin/echo","Cmd":"/bin/false","args":["ENC-OK"]}}`), nil, 200, base64},
		{"an encoded method", "/process.Process/%53tart", connectJSON, frame(0, msg), nil, 200, base64},
		{"a query", "/process.Process/Start?x=1", connectJSON, frame(0, msg), nil, 200, base64},

		{"unary JSON", "", "application/json", msg, nil, 415, ""},
		{"no content type", "", "", frame(0, msg), nil, 415, ""},
		{"grpc-web-text", "", "application/grpc-web-text", frame(0, msg), nil, 415, ""},
		{"gzip without the header", "", connectJSON, frame(1, zipped(t, msg)), nil, 200, `"code":"internal"`},
		{"deflate", "", connectJSON, frame(1, msg), []string{"Connect-Content-Encoding", "deflate"}, 200, `"code":"unimplemented"`},
		{"two messages", "", connectJSON, frame(0, msg) + frame(0, msg), nil, 200, `"code":"unimplemented"`},
		{"trailing bytes", "", connectJSON, frame(0, msg) + "xxxxx", nil, 200, `"error"`},
		{"a byte order mark", "", connectJSON, frame(0, "\xef\xbb\xbf"+msg), nil, 200, `"code":"invalid_argument"`},
		{"a duplicate key", "", connectJSON, frame(0, `{"process":{"cmd":"/bin/true","cmd":"/bin/echo","args":["ENC-OK"]}}`), nil, 200, "duplicate field"},
		{"a duplicate map key", "", connectJSON, frame(0, `{"process":{"cmd":"/bin/echo","envs":{"A":"1","A":"2"}}}`), nil, 200, "duplicate map key"},
		{"invalid UTF-8", "", connectJSON, frame(0, "{\"process\":{\"cmd\":\"\xff\"}}"), nil, 200, "invalid UTF-8"},
		{"an encoded service", "/%70rocess.Process/Start", connectJSON, frame(0, msg), nil, 404, "404 page not found"},
		{"a double slash", "//process.Process/Start", connectJSON, frame(0, msg), nil, 404, "404 page not found"},
		{"a trailing slash", "/process.Process/Start/", connectJSON, frame(0, msg), nil, 404, "404 page not found"},
		{"another case", "/process.Process/start", connectJSON, frame(0, msg), nil, 404, "404 page not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path
			if path == "" {
				path = "/process.Process/Start"
			}
			headers := tt.headers
			if tt.kind != "" {
				headers = append([]string{"Content-Type", tt.kind}, headers...)
			}
			a := b.envd(http.MethodPost, path, tt.body, headers...)
			require.Equal(t, tt.status, a.status, a.body)
			require.Contains(t, plain(t, a.body), tt.want)
			if tt.want == "" {
				require.Empty(t, a.body)
			}
		})
	}
}

func TestUnaryCallsAreCompressedOnRequest(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	a := b.envd(http.MethodPost, "/process.Process/List", zipped(t, "{}"), "Content-Type", "application/json", "Content-Encoding", "gzip", "Accept-Encoding", "gzip, deflate")
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
	require.Equal(t, http.StatusMethodNotAllowed, b.envd(http.MethodGet, "/process.Process/List?connect=v1&encoding=json&message=%7B%7D", "").status)
}
