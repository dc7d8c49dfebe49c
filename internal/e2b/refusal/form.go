package refusal

import (
	"net/http"
	"strings"
)

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
	// RPC is a JSON-RPC error for each call of an MCP client, under status 200; for
	// what holds no call, or is answered elsewhere, one under the refusal's own.
	RPC
	// GuardAPI is JSON {"error":…} under the refusal's own status: the Superagent
	// Guard API.
	GuardAPI
	// Later is status 202 and REST's JSON: what was sent was taken, and whatever
	// needs it will be refused. E2B's clients show nothing of the answer to the
	// upload of a build's files but its status, in which no reason can be.
	Later
	// Run is an answer of POST /run that says "error", under the refusal's own
	// status: JSON, or the last event of NDJSON.
	Run
)

// Form is how a refusal must be written for one request.
type Form struct {
	Kind Kind
	// ContentType is the response's content type.
	ContentType string
	// IDs are those of the calls that an RPC refusal answers, as JSON; Batch says
	// that they came in one.
	IDs   []string
	Batch bool
}

// Content types of the forms that do not echo the request's.
const (
	typeJSON  = "application/json"
	typePlain = "text/plain; charset=utf-8"

	// TypeEvents is that of a stream of JSON values, one a line.
	TypeEvents = "application/x-ndjson"
)

// FormFor chooses the form from the plane's name ("" where the request could
// not be routed: then path and headers decide), the decoded path and the
// request's headers. It needs no body.
func FormFor(plane, path string, h http.Header) Form {
	switch plane {
	case "control", "volume":
		return Form{Kind: REST, ContentType: typeJSON}
	case "envd":
		return envdForm(path, h)
	case "gateway":
		if path == "/run" {
			return runForm(h)
		}
		return Form{Kind: GuardAPI, ContentType: typeJSON}
	case "files":
		return Form{Kind: Files, ContentType: typeJSON}
	case "interpreter":
		return interpreterForm(path)
	case "mcp":
		return Form{Kind: RPC, ContentType: typeJSON}
	case "":
		return guess(path, h)
	default: // user ports
		return portForm(h)
	}
}

// envdForm reads the protocol from the content type, as envd does.
func envdForm(path string, h http.Header) Form {
	if path == "/files" || strings.HasPrefix(path, "/files/") {
		return Form{Kind: Files, ContentType: typeJSON}
	}
	ct := mediaType(h)
	switch {
	case strings.HasPrefix(ct, "application/connect+"):
		return Form{Kind: ConnectStream, ContentType: echo(ct, "application/connect")}
	case strings.HasPrefix(ct, "application/grpc-web"):
		return Form{Kind: GRPCWeb, ContentType: echo(ct, "application/grpc-web")}
	case strings.HasPrefix(ct, "application/grpc"):
		return Form{Kind: GRPC, ContentType: echo(ct, "application/grpc")}
	case isRPC(path):
		return Form{Kind: ConnectUnary, ContentType: typeJSON}
	default:
		return Form{Kind: REST, ContentType: typeJSON}
	}
}

func interpreterForm(path string) Form {
	switch {
	case path == "/execute":
		return Form{Kind: Execute, ContentType: TypeEvents}
	case path == "/contexts" || strings.HasPrefix(path, "/contexts/"):
		return Form{Kind: Contexts, ContentType: typePlain}
	default:
		return Form{Kind: REST, ContentType: typeJSON}
	}
}

// WantsEvents reports whether a client of POST /run asks for a stream of events.
func WantsEvents(h http.Header) bool {
	for _, value := range h.Values("Accept") {
		for accepted := range strings.SplitSeq(value, ",") {
			accepted, _, _ = strings.Cut(accepted, ";")
			if strings.EqualFold(strings.TrimSpace(accepted), TypeEvents) {
				return true
			}
		}
	}
	return false
}

func runForm(h http.Header) Form {
	if WantsEvents(h) {
		return Form{Kind: Run, ContentType: TypeEvents}
	}
	return Form{Kind: Run, ContentType: typeJSON}
}

// portForm serves whatever speaks to a user's port: a browser, fetch.
func portForm(h http.Header) Form {
	if strings.Contains(strings.ToLower(h.Get("Accept")), "json") || strings.Contains(mediaType(h), "json") {
		return Form{Kind: Port, ContentType: typeJSON}
	}
	return Form{Kind: Port, ContentType: typePlain}
}

// guess serves a request whose host and headers named no sandbox: its client is
// still one of the SDKs, told by what it sends.
func guess(path string, h http.Header) Form {
	f := envdForm(path, h)
	if f.Kind != REST {
		return f
	}
	return interpreterForm(path)
}

func isRPC(path string) bool {
	return strings.HasPrefix(path, "/process.Process/") || strings.HasPrefix(path, "/filesystem.Filesystem/")
}

// mediaType is the request's content type in lower case, without parameters:
// Python's client compares the response's with it exactly.
func mediaType(h http.Header) string {
	ct, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(ct))
}

// echo is the request's content type where it is one of the protocol's own;
// nothing else of the client's is put in a response header.
func echo(ct, protocol string) string {
	switch ct {
	case protocol + "+json", protocol + "+proto":
		return ct
	}
	if protocol == "application/connect" {
		return protocol + "+json"
	}
	return protocol
}
