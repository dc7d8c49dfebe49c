package refusal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Header tells clients and proxies, outside of any body, what the gateway did.
const Header = "E2b-Guard"

// Message is the text a person or an agent reads: the reason, and the id by
// which the operator finds the call.
func (r *Refusal) Message() string {
	if r.RequestID == "" {
		return r.Reason
	}
	return r.Reason + " [e2bguard request " + r.RequestID + "]"
}

// Write answers a request with a refusal. Nothing may have been written before.
func Write(w http.ResponseWriter, f Form, r *Refusal) {
	if f.ContentType == "" {
		f = Form{Kind: REST, ContentType: typeJSON}
	}
	h := w.Header()
	h.Set(Header, headerValue(r))
	h.Set("Content-Type", f.ContentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Del("Content-Length")
	h.Del("Content-Encoding")

	switch f.Kind {
	case ConnectUnary:
		setRetryAfter(h, r)
		send(w, codes[r.code()].http, marshal(connectBody(r)))
	case ConnectStream:
		send(w, http.StatusOK, EndStreamFrame(r))
	case GRPC:
		writeGRPC(w, r)
	case GRPCWeb:
		send(w, http.StatusOK, grpcWebFrame(r))
	case Files:
		status := filesStatus(r)
		setRetryAfter(h, r)
		send(w, status, marshal(restBody(r, status)))
	case Execute:
		send(w, http.StatusOK, ExecuteEvents(r))
	case Contexts:
		// The JavaScript client shows the body of no other status.
		send(w, http.StatusNotFound, []byte(r.Message()+"\n"))
	case Port:
		writePort(w, f, r)
	case RPC:
		writeRPC(w, f, r)
	case GuardAPI:
		setRetryAfter(h, r)
		send(w, status(r), marshal(guardError{r.Message(), r.machine()}))
	case Later:
		send(w, http.StatusAccepted, marshal(restBody(r, restStatus(r))))
	case Run:
		setRetryAfter(h, r)
		send(w, status(r), append(marshal(runBody(r, f)), '\n'))
	default:
		status := restStatus(r)
		setRetryAfter(h, r)
		send(w, status, marshal(restBody(r, status)))
	}
}

// EndStreamFrame is the end-of-stream frame of a Connect stream that carries the
// refusal; it is JSON whatever the stream's codec.
func EndStreamFrame(r *Refusal) []byte {
	return frame(2, marshal(struct {
		Error connectError `json:"error"`
	}{connectBody(r)}))
}

// ExecuteEvents is the refusal as the code interpreter's last NDJSON lines: an
// error event and end_of_execution.
func ExecuteEvents(r *Refusal) []byte {
	msg := r.Message()
	event := struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Value     string `json:"value"`
		Traceback string `json:"traceback"`
		machine
	}{"error", r.name(), msg, msg, r.machine()}
	// The JavaScript reader decodes chunk by chunk: only ASCII is safe.
	return append(asciiJSON(marshal(event)), "\n{\"type\": \"end_of_execution\"}\n"...)
}

// machine is what a program may act on, where a body has room for fields of our
// own.
type machine struct {
	Reason    Code   `json:"reason"`
	RequestID string `json:"request_id,omitempty"`
	Retryable bool   `json:"retryable"`
}

func (r *Refusal) machine() machine {
	return machine{Reason: r.code(), RequestID: r.RequestID, Retryable: r.Retryable}
}

type restError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	machine
}

func restBody(r *Refusal, status int) restError {
	return restError{Code: status, Message: r.Message(), machine: r.machine()}
}

type runError struct {
	Type      string `json:"type,omitempty"`
	Status    string `json:"status"`
	Code      Code   `json:"code"`
	Reasoning string `json:"reasoning"`
	// Stdout and Stderr are empty, and missing in a stream of events.
	Stdout    *string `json:"stdout,omitempty"`
	Stderr    *string `json:"stderr,omitempty"`
	RequestID string  `json:"request_id"`
}

func runBody(r *Refusal, f Form) runError {
	body := runError{Status: "error", Code: r.code(), Reasoning: r.Reason, RequestID: r.RequestID}
	if f.ContentType == TypeEvents {
		body.Type = "result"
	} else {
		body.Stdout, body.Stderr = new(string), new(string)
	}
	return body
}

type guardError struct {
	Error string `json:"error"`
	machine
}

type connectError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	machine
}

func connectBody(r *Refusal) connectError {
	return connectError{Code: ConnectCode(r), Message: r.Message(), machine: r.machine()}
}

// writePort answers a browser or fetch.
func writePort(w http.ResponseWriter, f Form, r *Refusal) {
	status := restStatus(r)
	setRetryAfter(w.Header(), r)
	if f.ContentType == typeJSON {
		send(w, status, marshal(restBody(r, status)))
		return
	}
	send(w, status, []byte(r.Message()+"\n"))
}

// rpcCode is the first code that JSON-RPC leaves to servers.
const rpcCode = -32000

// RPCError is the refusal as the answer to one JSON-RPC call; its id is JSON.
func RPCError(r *Refusal, id string) []byte {
	return marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int     `json:"code"`
			Message string  `json:"message"`
			Data    machine `json:"data"`
		} `json:"error"`
	}{"2.0", json.RawMessage(id), struct {
		Code    int     `json:"code"`
		Message string  `json:"message"`
		Data    machine `json:"data"`
	}{rpcCode, r.Message(), r.machine()}})
}

func writeRPC(w http.ResponseWriter, f Form, r *Refusal) {
	setRetryAfter(w.Header(), r)
	if len(f.IDs) == 0 {
		send(w, restStatus(r), RPCError(r, "null"))
		return
	}
	errors := make([][]byte, len(f.IDs))
	for i, id := range f.IDs {
		errors[i] = RPCError(r, id)
	}
	body := errors[0]
	if f.Batch {
		body = slices.Concat([]byte("["), bytes.Join(errors, []byte(",")), []byte("]"))
	}
	send(w, http.StatusOK, body)
}

// writeGRPC sends the trailers-only answer of gRPC. Over HTTP/1.1 too, clients
// take the status from the headers when there is no body.
func writeGRPC(w http.ResponseWriter, r *Refusal) {
	h := w.Header()
	h.Set("Grpc-Status", strconv.Itoa(codes[r.code()].grpc))
	h.Set("Grpc-Message", grpcMessage(r))
	w.WriteHeader(http.StatusOK)
}

func grpcWebFrame(r *Refusal) []byte {
	return frame(0x80, []byte("grpc-status: "+strconv.Itoa(codes[r.code()].grpc)+
		"\r\ngrpc-message: "+grpcMessage(r)+"\r\n"))
}

// grpcMessage is percent-encoded as gRPC wants it.
func grpcMessage(r *Refusal) string {
	return strings.ReplaceAll(url.QueryEscape(r.Message()), "+", "%20")
}

func headerValue(r *Refusal) string {
	v := "block"
	if r.RequestID != "" {
		v += "; id=" + r.RequestID
	}
	return v + "; code=" + string(r.code())
}

func setRetryAfter(h http.Header, r *Refusal) {
	after := r.RetryAfter
	if after == 0 {
		after = codes[r.code()].retryAfter
	}
	if after > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // The client is gone: nobody is left to tell.
}

func frame(flags byte, payload []byte) []byte {
	b := make([]byte, 5, 5+len(payload))
	b[0] = flags
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	return append(b, payload...)
}

// marshal cannot fail: the bodies are structs of strings, numbers and bools.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{}`)
	}
	return b
}

// asciiJSON escapes everything outside ASCII in JSON text.
func asciiJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range string(b) {
		switch {
		case c < 0x80:
			out = append(out, byte(c))
		case c > 0xFFFF:
			c -= 0x10000
			out = appendEscape(appendEscape(out, 0xD800+(c>>10)), 0xDC00+(c&0x3FF))
		default:
			out = appendEscape(out, c)
		}
	}
	return out
}

func appendEscape(out []byte, c rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15])
}
