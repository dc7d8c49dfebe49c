// Package mcp reads what clients of the Model Context Protocol send to the MCP
// gateway in a sandbox: JSON-RPC 2.0 messages, one at a time or in a batch, over
// streamable HTTP or the older transport with a separate event stream. What a
// server in Go, Python or JavaScript could read differently is refused.
//
// Source: the protocol's specification, versions 2024-11-05 to 2025-11-25.
package mcp

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Path is where calls are answered in the answer to their POST. Elsewhere, in the
// older transport, the answers come on the event stream.
const Path = "/mcp"

// Body is what one POST carries.
type Body struct {
	messages []message
	batch    bool
	value    any
}

// message is a request, a notification (without an id) or a response (without a
// method).
type message struct {
	object *strictjson.Object
	method string
	params *strictjson.Object // nil if there are none
	id     any                // nil if there is none
}

// maxBatch bounds a batch: each of its messages may be a tool call to judge.
const maxBatch = 64

// Decode reads a body. The headers are the request's.
func Decode(h http.Header, body []byte) (*Body, *refusal.Refusal) {
	if ref := checkHeaders(h); ref != nil {
		return nil, ref
	}
	value, err := strictjson.Decode(body)
	if err != nil {
		return nil, invalid(err)
	}
	b := &Body{value: value}
	list := []any{value}
	if elements, ok := value.([]any); ok {
		b.batch, list = true, elements
		if len(list) == 0 || len(list) > maxBatch {
			return nil, invalid(fmt.Errorf("the batch has %d messages; send 1 to %d", len(list), maxBatch))
		}
	}
	for _, e := range list {
		m, err := readMessage(e)
		if err != nil {
			return nil, invalid(err)
		}
		b.messages = append(b.messages, m)
	}
	return b, nil
}

// checkHeaders refuses bodies that say they are something else than the JSON
// that is judged.
func checkHeaders(h http.Header) *refusal.Refusal {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") || len(h["Content-Encoding"]) > 1 {
		return unsupported("the body has a Content-Encoding, which MCP does not use; send it plain")
	}
	if types := h["Content-Type"]; len(types) > 1 {
		return unsupported("the body has more than one Content-Type; send application/json")
	}
	mediaType, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return unsupported("the body is not application/json, which MCP uses; send Content-Type: application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return unsupported("the body is not in UTF-8, which JSON is written in; leave the charset out")
	}
	return nil
}

// The members that are read, here and below. A Go server takes them in any case.
var (
	messageKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramKeys   = []string{"name", "arguments", "uri", "ref", "argument"}
)

func readMessage(value any) (message, error) {
	o, ok := value.(*strictjson.Object)
	if !ok {
		return message{}, fmt.Errorf("a message is %s; send a JSON-RPC object", strictjson.TypeName(value))
	}
	if err := checkKeys(o, messageKeys); err != nil {
		return message{}, err
	}
	if version, _ := o.Get("jsonrpc"); version != "2.0" {
		return message{}, errors.New(`a message is not JSON-RPC 2.0; send "jsonrpc":"2.0"`)
	}
	m := message{object: o}
	m.id, _ = o.Get("id")
	switch m.id.(type) {
	case nil, string, strictjson.Number:
	default:
		return message{}, fmt.Errorf("the id of a message is %s; send a string or a number", strictjson.TypeName(m.id))
	}
	method, isCall := o.Get("method")
	_, isResult := o.Get("result")
	_, isError := o.Get("error")
	if isCall == (isResult || isError) || isResult && isError {
		return message{}, errors.New("a message is neither a request nor a response; send one method, one result or one error")
	}
	if !isCall {
		return m, nil
	}
	if m.method, ok = method.(string); !ok || m.method == "" {
		return message{}, fmt.Errorf("the method of a message is %s; send its name", strictjson.TypeName(method))
	}
	params, _ := o.Get("params")
	if params == nil {
		return m, nil
	}
	if m.params, ok = params.(*strictjson.Object); !ok {
		return message{}, fmt.Errorf("the params of %s are %s; send an object", m.method, strictjson.TypeName(params))
	}
	return m, checkKeys(m.params, paramKeys)
}

// checkKeys refuses a member that only a reader that ignores case would take for
// a known one.
func checkKeys(o *strictjson.Object, known []string) error {
	for _, key := range o.Keys() {
		for _, k := range known {
			if key != k && strings.EqualFold(key, k) {
				return fmt.Errorf("the member %q is not spelled as MCP spells it; write %q", key, k)
			}
		}
	}
	return nil
}

// Encode returns the JSON to forward, as it was read.
func (b *Body) Encode() ([]byte, error) { return strictjson.Encode(b.value), nil }

// Calls names the requests of the body that wait for an answer, as JSON text of
// their ids, and whether they came in a batch.
func (b *Body) Calls() (ids []string, batch bool) {
	for _, m := range b.messages {
		if m.method != "" && m.id != nil {
			ids = append(ids, string(strictjson.Encode(m.id)))
		}
	}
	return ids, b.batch
}

// Tools maps the ids of the body's tool calls, as JSON text, to the tools' names.
func (b *Body) Tools() map[string]string {
	tools := map[string]string{}
	for _, m := range b.messages {
		if m.method == methodToolCall && m.id != nil {
			name, _ := m.params.Get("name")
			tools[string(strictjson.Encode(m.id))], _ = name.(string)
		}
	}
	return tools
}

// Methods lists the methods of the body, once each; "response" stands for the
// client's answers.
func (b *Body) Methods() []string {
	var methods []string
	for _, m := range b.messages {
		name := m.method
		if name == "" {
			name = "response"
		}
		if !slices.Contains(methods, name) {
			methods = append(methods, name)
		}
	}
	return methods
}

func invalid(err error) *refusal.Refusal {
	ref := refusal.New(refusal.CodeInvalid, "e2bguard could not read this MCP message, so it was not forwarded: "+err.Error()+".")
	ref.Err = err
	return ref
}

func unsupported(what string) *refusal.Refusal {
	return refusal.New(refusal.CodeUnsupported, "e2bguard could not read this MCP message, so it was not forwarded: "+what+".")
}
