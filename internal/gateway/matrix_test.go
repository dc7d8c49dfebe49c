package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// carrier is an operation that carries code, or a path that decides what code
// runs, into a sandbox.
type carrier struct {
	name string
	kind wireKind
	path string
	// port of the sandbox; "" for the control plane.
	port string
	// json is the message with the text in it, message the same for protobuf.
	json    func(text string) string
	message func(text string) proto.Message
	// arrived is the text in what the emulator recorded.
	arrived func(t *testing.T, r emulator.Record) string
	// input goes to a shell that waits for it.
	input bool
	// closed operations are refused whatever their encoding.
	closed bool
}

// wireKind is how a carrier's body is written.
type wireKind int

const (
	stream wireKind = iota // one framed Connect message
	unary                  // one bare Connect message
	rest                   // JSON over HTTP
)

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func member(name string) func(*testing.T, emulator.Record) string {
	return func(t *testing.T, r emulator.Record) string {
		var body map[string]any
		require.NoError(t, json.Unmarshal(r.Body, &body), string(r.Body))
		s, _ := body[name].(string)
		return s
	}
}

func stdin(text string) *processpb.ProcessInput {
	return &processpb.ProcessInput{Input: &processpb.ProcessInput_Stdin{Stdin: []byte(text)}}
}

func quotedBytes(text string) string {
	return `"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`
}

func carriers(l *lab) []carrier {
	return []carrier{
		{
			name: "process.start", kind: stream, path: "/process.Process/Start", port: "49983",
			json: func(text string) string {
				return `{"process":{"cmd":"/bin/bash","args":["-l","-c",` + quoted(text) + `]},"stdin":false}`
			},
			message: func(text string) proto.Message {
				return &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", text}}, Stdin: new(bool)}
			},
			arrived: func(t *testing.T, r emulator.Record) string {
				p := started(t, r)
				if len(p.GetArgs()) == 3 {
					return p.GetArgs()[2]
				}
				return p.GetCmd() + " " + strings.Join(p.GetArgs(), " ") // plain words only
			},
		},
		{
			name: "process.send_input", kind: unary, path: "/process.Process/SendInput", port: "49983", input: true,
			json: func(text string) string {
				return fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":%s}}`, l.pid, quotedBytes(text))
			},
			message: func(text string) proto.Message {
				return &processpb.SendInputRequest{Process: byPID(l.pid), Input: stdin(text)}
			},
			arrived: func(t *testing.T, r emulator.Record) string {
				var in processpb.SendInputRequest
				require.NoError(t, protojson.Unmarshal(r.Body, &in))
				require.Equal(t, l.pid, in.GetProcess().GetPid())
				return string(in.GetInput().GetStdin())
			},
		},
		{
			name: "process.stream_input", kind: stream, path: "/process.Process/StreamInput", port: "49983", input: true,
			json: func(text string) string { return `{"data":{"input":{"stdin":` + quotedBytes(text) + `}}}` },
			message: func(text string) proto.Message {
				return &processpb.StreamInputRequest{Event: &processpb.StreamInputRequest_Data{Data: &processpb.StreamInputRequest_DataEvent{Input: stdin(text)}}}
			},
			arrived: func(t *testing.T, r emulator.Record) string {
				var in processpb.StreamInputRequest
				require.NoError(t, protojson.Unmarshal(r.Body, &in))
				return string(in.GetData().GetInput().GetStdin())
			},
		},
		{
			name: "filesystem.remove", kind: unary, path: "/filesystem.Filesystem/Remove", port: "49983",
			json:    func(text string) string { return `{"path":` + quoted("/home/user/"+text) + `}` },
			message: func(text string) proto.Message { return &filesystempb.RemoveRequest{Path: "/home/user/" + text} },
			arrived: member("path"),
		},
		{
			name: "filesystem.move", kind: unary, path: "/filesystem.Filesystem/Move", port: "49983",
			json: func(text string) string {
				return `{"source":"/home/user/a","destination":` + quoted("/home/user/"+text) + `}`
			},
			message: func(text string) proto.Message {
				return &filesystempb.MoveRequest{Source: "/home/user/a", Destination: "/home/user/" + text}
			},
			arrived: member("destination"),
		},
		{
			name: "filesystem.make_dir", kind: unary, path: "/filesystem.Filesystem/MakeDir", port: "49983",
			json:    func(text string) string { return `{"path":` + quoted("/home/user/"+text) + `}` },
			message: func(text string) proto.Message { return &filesystempb.MakeDirRequest{Path: "/home/user/" + text} },
			arrived: member("path"),
		},
		{
			name: "code.run", kind: rest, path: "/execute", port: "49999",
			json:    func(text string) string { return `{"code":` + quoted("# "+text) + `,"context_id":"none"}` },
			arrived: func(t *testing.T, r emulator.Record) string { return member("code")(t, r) },
		},
		{
			name: "context.create", kind: rest, path: "/contexts", port: "49999",
			// The emulator has no such kernel, so that none is started.
			json:    func(text string) string { return `{"cwd":` + quoted("/home/"+text) + `,"language":"none"}` },
			arrived: member("cwd"),
		},
		{
			name: "sandbox.create", kind: rest, path: "/v2/sandboxes",
			json: func(text string) string { return `{"templateID":"base","envVars":{"BASH_ENV":` + quoted(text) + `}}` },
			arrived: func(t *testing.T, r emulator.Record) string {
				var body struct{ EnvVars map[string]string }
				require.NoError(t, json.Unmarshal(r.Body, &body))
				return body.EnvVars["BASH_ENV"]
			},
		},
		{
			name: "template.build", kind: rest, path: l.template,
			json: func(text string) string {
				return `{"fromImage":"python:3.12","steps":[{"type":"RUN","args":[` + quoted(text) + `]}]}`
			},
			arrived: func(t *testing.T, r emulator.Record) string {
				var body struct{ Steps []struct{ Args []string } }
				require.NoError(t, json.Unmarshal(r.Body, &body))
				return strings.Join(body.Steps[0].Args, " ")
			},
		},
		{
			name: "files.compose", kind: rest, path: "/files/compose", port: "49983",
			json: func(text string) string {
				return `{"source_paths":["/home/user/a"],"destination":"/home/user/` + text + `"}`
			},
			arrived: member("destination"),
		},
	}
}

// request is the carrier's plain request.
func (c carrier) request(l *lab, text string) wire {
	w := wire{target: c.path, headers: []string{"X-API-KEY", labKey, "Content-Type", "application/json"}, body: c.json(text)}
	if c.port != "" {
		w.headers = l.to(c.port, "Content-Type", "application/json")
	}
	if c.kind == stream {
		w = w.set("Content-Type", "application/connect+json")
		w.body = string(frame(w.body))
	}
	return w
}

// framed writes the message again with other flags or payloads, in the frame the
// kind wants.
func (c carrier) framed(flags byte, payload string) string {
	if c.kind != stream {
		return payload
	}
	return string(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(payload)))) + payload
}

// encoding is one way to write a request. It changes the plain request for a
// text; false if the carrier has no such form.
type encoding struct {
	name  string
	apply func(c carrier, l *lab, text string, w wire) (wire, bool)
	// served says for which carriers the call must go through: an encoding that
	// E2B's clients use must not be refused.
	served func(c carrier) bool
}

func always(carrier) bool   { return true }
func never(carrier) bool    { return false }
func isRPC(c carrier) bool  { return c.kind != rest }
func isREST(c carrier) bool { return c.kind == rest }
func ofKind(k wireKind) func(carrier) bool {
	return func(c carrier) bool { return c.kind == k }
}

// protoType makes a request's content type the protobuf one of its kind.
func (c carrier) protoType(w wire) wire {
	if c.kind == stream {
		return w.set("Content-Type", "application/connect+proto")
	}
	return w.set("Content-Type", "application/proto")
}

func asProto(change func(plain, other string) string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(c carrier, _ *lab, text string, w wire) (wire, bool) {
		if c.message == nil {
			return w, false
		}
		plain, err1 := proto.Marshal(c.message(text))
		other, err2 := proto.Marshal(c.message("harmless"))
		if err1 != nil || err2 != nil {
			panic(fmt.Sprint(err1, err2))
		}
		w = c.protoType(w)
		w.body = c.framed(0, change(string(plain), string(other)))
		return w, true
	}
}

func header(name, value string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(_ carrier, _ *lab, _ string, w wire) (wire, bool) { return w.set(name, value), true }
}

func contentType(rpcStream, rpcUnary, restful string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
		value := map[wireKind]string{stream: rpcStream, unary: rpcUnary, rest: restful}[c.kind]
		return w.set("Content-Type", value), value != ""
	}
}

func jsonBody(change func(body string) string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(c carrier, _ *lab, text string, w wire) (wire, bool) {
		plain := c.json(text)
		changed := change(plain)
		w.body = c.framed(0, changed)
		return w, changed != plain
	}
}

func target(change func(string) string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
		w.target = change(w.target)
		return w, true
	}
}

func over(proto string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
		w.proto = proto
		return w, true
	}
}

// rpcOnly narrows an encoding to Connect's operations.
func rpcOnly(apply func(carrier, *lab, string, wire) (wire, bool)) func(carrier, *lab, string, wire) (wire, bool) {
	return func(c carrier, l *lab, text string, w wire) (wire, bool) {
		if c.kind == rest {
			return w, false
		}
		return apply(c, l, text, w)
	}
}

// zip compresses in two members.
func zip(s string) string { return gzipMember(s[:len(s)/2]) + gzipMember(s[len(s)/2:]) }

func compressed(zipped func(string) string, name string) func(carrier, *lab, string, wire) (wire, bool) {
	return func(c carrier, _ *lab, text string, w wire) (wire, bool) {
		w.body = c.framed(1, zipped(c.json(text)))
		if c.kind == stream {
			return w.set("Connect-Content-Encoding", name), true
		}
		return w.set("Content-Encoding", name), true
	}
}

func encodings() []encoding {
	bom := "\xef\xbb\xbf"
	return []encoding{
		{"plain", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) { return w, true }, always},

		// Codecs and content types.
		{"protobuf", asProto(func(m, _ string) string { return m }), isRPC},
		{"upper-case content type", contentType("Application/CONNECT+JSON", "APPLICATION/JSON", "APPLICATION/JSON"), always},
		{"charset utf-8", contentType("application/connect+json; charset=utf-8", "application/json; charset=utf-8", "application/json; charset=utf-8"), always},
		{"charset utf-16", contentType("application/connect+json; charset=utf-16", "application/json; charset=utf-16", ""), never},
		{"unknown parameter", contentType("application/connect+json; x=y", "application/json; x=y", ""), never},
		{"no content type", contentType("", "", ""), never},
		{"text content type", contentType("text/plain", "text/plain", "text/plain"), func(c carrier) bool { return c.port == "" || c.name == "files.compose" }},
		{"framing of the other kind", contentType("application/json", "application/connect+json", ""), never},
		{"gRPC", contentType("application/grpc", "application/grpc", ""), never},
		{"gRPC with JSON", contentType("application/grpc+json", "application/grpc+json", ""), never},
		{"gRPC-Web", contentType("application/grpc-web", "application/grpc-web", ""), never},
		{"gRPC-Web with JSON", contentType("application/grpc-web+json", "application/grpc-web+json", ""), never},
		{"gRPC-Web text", contentType("application/grpc-web-text", "application/grpc-web-text", ""), never},
		{"two content types", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			return w.add("Content-Type", "application/grpc"), c.port != ""
		}, never},
		{"the same content type twice", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			return w.add("Content-Type", w.get("Content-Type")), true
		}, always},

		// Compression.
		{"gzip", compressed(gzipMember, "gzip"), isRPC},
		{"two gzip members", compressed(zip, "gzip"), isRPC},
		{"gzip without its header", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			w.body = c.framed(1, gzipMember(c.json(text)))
			return w, true
		}, never},
		{"gzip announced, sent plain", func(c carrier, l *lab, text string, w wire) (wire, bool) {
			return compressed(func(s string) string { return s }, "gzip")(c, l, text, w)
		}, func(c carrier) bool { return c.port == "" }},
		{"deflate", compressed(func(s string) string { return s }, "deflate"), func(c carrier) bool { return c.port == "" }},
		{"gzip named twice", compressed(gzipMember, "gzip, gzip"), never},
		{"whole-body gzip on a stream", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.body = gzipMember(w.body)
			return w.set("Content-Encoding", "gzip"), c.kind == stream
		}, never},
		{"garbage after gzip", compressed(func(s string) string { return gzipMember(s) + "xx" }, "gzip"), never},

		// Framing.
		{"an end frame after the message", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.body += string(endFrame("{}"))
			return w, c.kind == stream
		}, always},
		{"a message after the end frame", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			w.body = string(endFrame("{}")) + w.body
			return w, c.kind == stream
		}, never},
		{"two messages", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.body = c.framed(0, c.json("harmless")) + w.body
			return w, c.kind == stream
		}, never},
		{"an empty frame first", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.body = string(frame("")) + w.body
			return w, c.kind == stream
		}, never},
		{"trailing bytes", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.body += "xxxxx"
			return w, true
		}, never},
		{"a wrong flag", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			w.body = c.framed(4, c.json(text))
			return w, c.kind == stream
		}, never},
		{"a frame longer than its bytes", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			w.body = "\x00\x7f\xff\xff\xff" + c.json(text)
			return w, c.kind == stream
		}, never},
		{"a frame shorter than its bytes", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			w.body = "\x00\x00\x00\x00\x05" + c.json(text)
			return w, c.kind == stream
		}, never},

		// JSON.
		{"an escaped key", jsonBody(func(s string) string { return `{"\u00` + fmt.Sprintf("%02x", s[2]) + s[3:] }), always},
		{"snake-case keys", jsonBody(func(s string) string { return strings.ReplaceAll(s, "templateID", "template_id") }), never},
		{"a key in another case", jsonBody(func(s string) string { return `{"` + strings.ToUpper(s[2:3]) + s[3:] }), func(c carrier) bool {
			return c.name == "filesystem.make_dir" || c.name == "context.create" // without a path they mean the home
		}},
		{"a duplicate key", jsonBody(func(s string) string { return s[:len(s)-1] + "," + s[1:] }), never},
		{"a duplicate key, escaped", jsonBody(func(s string) string {
			return s[:len(s)-1] + `,"\u00` + fmt.Sprintf("%02x", s[2]) + s[3:]
		}), never},
		{"unknown keys", jsonBody(func(s string) string { return `{"x-unknown":{"a":[1,{}]},` + s[1:] }), func(c carrier) bool {
			return c.name != "template.build" // where one might be a step of a kind that is not known
		}},
		{"a shadowing key in another case", jsonBody(func(s string) string {
			key, _, _ := strings.Cut(s[2:], `"`)
			return `{"` + strings.ToUpper(key) + `":"harmless",` + s[1:]
		}), func(c carrier) bool { return c.port != "" && c.name != "files.compose" }},
		{"white space", jsonBody(func(s string) string { return " \n\t" + strings.Replace(s, ":", " :\r\n", 1) + "\n" }), always},
		{"a byte order mark", jsonBody(func(s string) string { return bom + s }), never},
		{"UTF-16", jsonBody(func(s string) string { return widen(s, 2) }), never},
		{"UTF-32", jsonBody(func(s string) string { return widen(s, 4) }), never},
		{"invalid UTF-8", jsonBody(func(s string) string { return s[:len(s)-1] + ",\"x\":\"\xff\"}" }), never},
		{"half a surrogate pair", jsonBody(func(s string) string { return s[:len(s)-1] + `,"x":"\ud800"}` }), never},
		{"NaN", jsonBody(func(s string) string { return s[:len(s)-1] + `,"x":NaN}` }), never},
		{"a comment", jsonBody(func(s string) string { return "/**/" + s }), never},
		{"an array around it", jsonBody(func(s string) string { return "[" + s + "]" }), never},

		// Protobuf.
		{"sub-messages to be merged", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			if c.name != "process.start" {
				return w, false
			}
			w.body = ""
			for _, part := range []*processpb.ProcessConfig{{Cmd: "/bin/true", Args: []string{"-l", "-c"}}, {Cmd: "/bin/bash", Args: []string{text}}} {
				b, err := proto.Marshal(&processpb.StartRequest{Process: part})
				if err != nil {
					panic(err)
				}
				w.body += string(b)
			}
			w.body = c.framed(0, w.body)
			return c.protoType(w), true
		}, always},
		{"fields given twice", asProto(func(m, other string) string { return other + m }), isRPC},
		{"an unknown field", asProto(func(m, _ string) string {
			return string(protowire.AppendString(protowire.AppendTag(nil, 999, protowire.BytesType), "x")) + m
		}), isRPC},
		{"a truncated field", asProto(func(m, _ string) string { return m[:len(m)-1] }), never},
		{"an overlong varint", asProto(func(m, _ string) string {
			return m + string(protowire.AppendTag(nil, 15, protowire.VarintType)) + strings.Repeat("\xff", 10) + "\x01"
		}), never},
		{"invalid UTF-8 in protobuf", asProto(func(m, _ string) string {
			return m + string(protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "\xff"))
		}), func(c carrier) bool { return c.kind == unary }}, // an unknown field there
		{"JSON sent as protobuf", func(c carrier, _ *lab, _ string, w wire) (wire, bool) { return c.protoType(w), isRPC(c) }, never},

		// HTTP.
		{"one-byte chunks", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.pieces = true
			return w, true
		}, always},
		{"HTTP/1.0", over("HTTP/1.0"), always},
		{"h2c", over("h2c"), always},
		{"HTTP/2 over TLS", over("h2"), always},
		{"Expect: 100-continue", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.expect = true
			return w, true
		}, always},
		{"trailers", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.trailer = []string{"Content-Type", "application/grpc"}
			return w, true
		}, always},
		{"trailers over h2c", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.proto, w.trailer = "h2c", []string{"X-Extra", "1"}
			return w, true
		}, always},
		{"a length beside chunks", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.pieces = true
			return w.set("Content-Length", "3"), true
		}, always}, // net/http goes by the chunks, and one length goes upstream
		{"two lengths", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) { return w.add("Content-Length", "3"), true }, never},
		{"an unknown transfer encoding", header("Transfer-Encoding", "gzip, chunked"), never},
		{"a content type dropped on the way", header("Connection", "Content-Type"), func(c carrier) bool { return c.kind == rest }},
		{"method override", header("X-HTTP-Method-Override", "GET"), always},
		{"PUT", func(_ carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.method = "PUT"
			return w, true
		}, never},
		{"GET with a body", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			w.method = "GET"
			return w, c.name != "context.create" && c.name != "sandbox.create" // those are other operations
		}, never},
		{"Connect's GET", func(c carrier, _ *lab, text string, w wire) (wire, bool) {
			w.method, w.body = "GET", ""
			w.target += "?connect=v1&encoding=json&message=" + url.QueryEscape(c.json(text))
			return w, isRPC(c)
		}, never},

		// Paths.
		{"an absolute-form target", target(func(s string) string { return "http://gw.example" + s }), always},
		{"another host in the target", target(func(s string) string { return "http://api.elsewhere.example" + s }), func(c carrier) bool { return c.port == "" }},
		{"an encoded method", func(c carrier, _ *lab, _ string, w wire) (wire, bool) {
			at := strings.LastIndexByte(w.target, '/') + 1
			w.target = w.target[:at] + fmt.Sprintf("%%%02x", w.target[at]) + w.target[at+1:]
			return w, true
		}, func(c carrier) bool { return c.name != "files.compose" }}, // envd serves it as written only
		{"an encoded service", rpcOnly(target(func(s string) string { return fmt.Sprintf("/%%%02x", s[1]) + s[2:] })), never},
		{"an encoded slash", rpcOnly(target(func(s string) string { return "/" + strings.Replace(s[1:], "/", "%2f", 1) })), never},
		{"a double slash", target(func(s string) string { return "/" + s }), never},
		{"a dot segment", target(func(s string) string { return "/." + s }), never},
		{"a parent segment", target(func(s string) string { return "/x/.." + s }), never},
		{"an encoded parent segment", target(func(s string) string { return "/x/%2e%2e" + s }), never},
		{"a trailing slash", target(func(s string) string { return s + "/" }), never},
		{"a path parameter", target(func(s string) string { return s + ";x=1" }), func(c carrier) bool {
			return c.name == "template.build" // it is part of the build's id
		}},
		{"a path in another case", target(strings.ToUpper), never},
		{"a NUL in the path", target(func(s string) string { return s + "%00" }), never},
		{"a query", target(func(s string) string { return s + "?x=1" }), always},
	}
}

func widen(s string, size int) string {
	var b bytes.Buffer
	for _, r := range s {
		unit := make([]byte, size)
		unit[0] = byte(r)
		b.Write(unit)
	}
	return b.String()
}

// For every operation that carries code, in every encoding: either the guard saw
// exactly the text that arrived in the sandbox, or the call was refused and
// nothing arrived. What a guard blocks arrives in no encoding at all.
func TestMatrixOfOperationsAndEncodings(t *testing.T) {
	l := newLab(t, func(cfg *Config) { cfg.Policy.Builds = policy.Builds{Images: []string{"python:3.12"}} })
	l.template = l.newTemplate(t)
	table := newMatrixTable()
	for _, c := range carriers(l) {
		for _, e := range encodings() {
			if _, exists := e.apply(c, l, "", c.request(l, "")); !exists {
				continue
			}
			t.Run(c.name+"/"+e.name, func(t *testing.T) {
				for _, text := range []string{"ls-benign", "ls-evil"} {
					if c.input {
						l.pid = l.startShell(t)
					}
					w, _ := e.apply(c, l, text, c.request(l, text))
					if c.input && c.kind == stream {
						w.body = l.streamStart(w) + w.body
					}
					records, subjects := l.mark()
					got := l.send(t, w)
					arrived, saw := l.since(records, subjects)
					if c.input {
						l.closeStdin(t)
						arrived = slices.DeleteFunc(arrived, func(r emulator.Record) bool {
							// The gateway asks for the list; a stream's other messages carry nothing.
							return r.Path != c.path || c.kind == stream && !strings.Contains(string(r.Body), `"data"`)
						})
					}
					if text == "ls-benign" {
						table.note(e.name, c.name, len(arrived) > 0)
					}
					if len(arrived) == 0 {
						require.True(t, refused(got), "nothing arrived, and the answer does not say why: %d %s", got.Status, got.Body)
						require.False(t, text == "ls-benign" && !c.closed && e.served(c), "must be served: %d %s", got.Status, got.Body)
						continue
					}
					require.False(t, c.closed, "this operation is closed")
					if c.input && c.kind == stream { // each message is judged and sent for itself, until one is refused
						require.False(t, refused(got) && e.served(c), got.Body)
						for _, r := range arrived {
							require.NotContains(t, c.arrived(t, r), "evil")
						}
						require.True(t, sawText(saw, c.arrived(t, arrived[0])))
						continue
					}
					require.True(t, e.served(c), "expected to be refused: %d %s", got.Status, got.Body)
					require.Len(t, arrived, 1)
					require.False(t, arrived[0].Undecoded)
					ran := c.arrived(t, arrived[0])
					require.NotContains(t, ran, "evil", "what the guard blocks must not arrive")
					require.True(t, ran == "" || sawText(saw, ran), "%q arrived, and the guard saw %v", ran, saw)
				}
			})
		}
	}
	table.compare(t)
}

func sawText(subjects []guard.Subject, text string) bool {
	for _, s := range subjects {
		if s.Text == text || s.Text == "" && s.Target == text {
			return true
		}
	}
	return false
}
