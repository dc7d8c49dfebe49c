package refusal

import "net/http"

// Kind is a way of writing a refusal, one per kind of client code that reads it.
type Kind uint8

// The kinds.
const (
	// REST is JSON {"code":<status>,"message":…}: control plane, volumes and
	// envd's plain HTTP routes.
	REST Kind = iota + 1
	// ConnectUnary is a status and JSON {"code":"<word>","message":…}.
	ConnectUnary
	// ConnectStream is status 200 and one end-of-stream frame.
	ConnectStream
	// GRPC is status 200 and trailers.
	GRPC
	// GRPCWeb is status 200 and one frame of trailers.
	GRPCWeb
	// Files is REST with statuses that the file client does not rewrite.
	Files
	// Execute is status 200 and NDJSON: an error event and the end.
	Execute
	// Contexts is a plain text body under the only status whose body is shown.
	Contexts
	// Port is JSON or plain text, as the request accepts.
	Port
)

// Form is how a refusal must be written for one request.
type Form struct {
	Kind Kind
	// ContentType is the response's content type.
	ContentType string
}

// FormFor chooses the form from the plane ("" where the request could not be
// routed: then the headers decide), the decoded path and the request's headers.
// It needs no body.
func FormFor(plane, path string, h http.Header) Form { return formFor(plane, path, h) }

// Write answers a request with a refusal. Nothing may have been written before.
func Write(w http.ResponseWriter, f Form, r *Refusal) { write(w, f, r) }

// EndStreamFrame is the end-of-stream frame of a Connect stream that carries the
// refusal; it is JSON whatever the stream's codec.
func EndStreamFrame(r *Refusal) []byte { return endStreamFrame(r) }

// ExecuteEvents is the refusal as the code interpreter's last NDJSON lines: an
// error event and end_of_execution.
func ExecuteEvents(r *Refusal) []byte { return executeEvents(r) }

// ConnectCode is the Connect code word the refusal is sent with.
func ConnectCode(r *Refusal) string { return connectCode(r) }

func formFor(string, string, http.Header) Form        { return Form{} }
func write(w http.ResponseWriter, _ Form, r *Refusal) { http.Error(w, r.Reason, r.Status) }
func endStreamFrame(*Refusal) []byte                  { return nil }
func executeEvents(*Refusal) []byte                   { return nil }
func connectCode(*Refusal) string                     { return "permission_denied" }
