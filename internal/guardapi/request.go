// Package guardapi is the serving side of the Superagent Guard API, in the two
// generations that its clients speak: what they send, and what they read. Package
// guard/superagent is the asking side.
//
// The protocol is that of https://docs.superagent.sh/rest-api/guard and of the
// clients that superagent-ai publishes.
package guardapi

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Path is where the API is asked.
const Path = "/api/guard"

// Request is a question: may this be done?
type Request struct {
	Text string
	// Quoted says that the answer's content must be a string. Published clients of
	// the first generation, which send "prompt", read nothing else, and so do some of
	// the second, which send "text": what they cannot read they take for a pass. Later
	// clients read a string, too. All of them send their key in both headers; who
	// calls by the API's description, which has an object, sends one.
	Quoted bool
}

// refused are members that the API knows and that are not taken, and why.
var refused = map[string]string{
	"url":           `nothing is fetched here, so what the address holds cannot be judged. Clients send a text that starts with http as one: to have a fetch judged, send "FETCH " and the address as text; to have a document judged, send its text`,
	"file":          "files are not read here. Send the text that the file holds",
	"system_prompt": "what is blocked is the operator's choice, not the caller's. Leave it out",
}

// Decode reads a question strictly: a member that is not known here might have
// changed the verdict.
func Decode(h http.Header, body []byte) (Request, *refusal.Refusal) {
	if ref := checkHeader(h); ref != nil {
		return Request{}, ref
	}
	object, err := strictjson.DecodeObject(body)
	if err != nil {
		ref := invalid("the body cannot be read: %s", err)
		ref.Err = err
		return Request{}, ref
	}
	for _, key := range object.Keys() {
		if why, known := refused[key]; known {
			return Request{}, invalid("%q is not taken: %s", key, why)
		}
		if key != "text" && key != "prompt" {
			return Request{}, invalid("%.80q is not known here. Send the text to judge as \"text\", and nothing else", key)
		}
	}
	value, second := object.Get("text")
	prompt, first := object.Get("prompt")
	switch {
	case first && second:
		return Request{}, invalid(`there are "text" and "prompt", and one question has one of them`)
	case first:
		value = prompt
	}
	text, ok := value.(string)
	if !ok || strings.TrimSpace(text) == "" {
		return Request{}, invalid(`there is no text to judge. Send it as "text", a string that is not empty`)
	}
	return Request{Text: text, Quoted: first || h.Get("Authorization") != "" && h.Get("X-Superagent-Api-Key") != ""}, nil
}

func checkHeader(h http.Header) *refusal.Refusal {
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		for _, value := range h.Values(name) {
			if value != h.Get(name) {
				return invalid("the header %s is there more than once, with different values. Send it once", name)
			}
		}
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return unsupported("a compressed body is not taken. Send it plain")
	}
	mediaType, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	switch charset := params["charset"]; {
	case err == nil && strings.HasPrefix(mediaType, "multipart/"):
		return unsupported("files are not read here. Send the text that the file holds, as JSON: {\"text\": …}")
	case err != nil || mediaType != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8"):
		return unsupported("the Content-Type must be application/json, in UTF-8")
	}
	return nil
}

func invalid(format string, args ...any) *refusal.Refusal {
	return refusal.New(refusal.CodeInvalid, "Nothing was judged: "+fmt.Sprintf(format, args...)+".")
}

func unsupported(what string) *refusal.Refusal {
	return refusal.New(refusal.CodeUnsupported, "Nothing was judged: "+what+".")
}
