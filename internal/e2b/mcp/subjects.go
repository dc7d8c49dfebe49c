package mcp

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

const methodToolCall = "tools/call"

// plain are the methods that carry nothing that a server acts on: they open a
// session, list, cancel, or report. What else there is, now or later, is shown to
// the guard.
var plain = []string{
	"initialize", "ping", "logging/setLevel",
	"tools/list", "resources/list", "resources/templates/list", "prompts/list",
	"tasks/list", "tasks/get", "tasks/result", "tasks/cancel",
	"notifications/initialized", "notifications/cancelled", "notifications/progress",
	"notifications/roots/list_changed", "notifications/tasks/status",
}

// maxURLs bounds the addresses of one call that are judged by themselves.
const maxURLs = 64

// Subjects is what the guard must see: a tool's arguments as they are, each
// address in them as the fetch that it asks for, a resource as what is read, and
// everything else that is not plain as it stands.
func (b *Body) Subjects() ([]guard.Subject, *refusal.Refusal) {
	var all []guard.Subject
	for _, m := range b.messages {
		subjects, err := m.subjects()
		if err != nil {
			return nil, invalid(err)
		}
		all = append(all, subjects...)
	}
	return all, nil
}

func (m message) subjects() ([]guard.Subject, error) {
	switch {
	case m.method == "":
		return m.responseSubjects(), nil
	case m.method == methodToolCall:
		return m.toolSubjects()
	case strings.HasPrefix(m.method, "resources/") && !slices.Contains(plain, m.method):
		return m.resourceSubjects()
	case slices.Contains(plain, m.method):
		return nil, nil
	default: // prompts/get, completion/complete, and what is not known
		target := m.method
		if name, _ := m.param("name").(string); name != "" {
			target += " " + name
		}
		return InputSubjects(target, m.params, m.params)
	}
}

func (m message) param(name string) any {
	if m.params == nil {
		return nil
	}
	value, _ := m.params.Get(name)
	return value
}

func (m message) toolSubjects() ([]guard.Subject, error) {
	name, ok := m.param("name").(string)
	if !ok || name == "" {
		return nil, fmt.Errorf("%s names no tool; send its name as a string", methodToolCall)
	}
	arguments := m.param("arguments")
	switch arguments.(type) {
	case nil:
		arguments = strictjson.NewObject()
	case *strictjson.Object:
	default:
		return nil, fmt.Errorf("the arguments of the tool %q are %s; send an object", name, strictjson.TypeName(arguments))
	}
	return InputSubjects(name, arguments, arguments)
}

// InputSubjects are the input of a tool as a whole, and the addresses in it.
func InputSubjects(target string, whole, input any) ([]guard.Subject, error) {
	if o, ok := whole.(*strictjson.Object); ok && o == nil {
		whole, input = strictjson.NewObject(), nil
	}
	subjects := []guard.Subject{{Kind: guard.KindTool, Target: target, Text: string(strictjson.Encode(whole))}}
	for _, address := range addresses(input) {
		if len(subjects) > maxURLs {
			return nil, fmt.Errorf("the input of %s holds more than %d addresses; send fewer at once", target, maxURLs)
		}
		subjects = append(subjects, guard.Subject{Kind: guard.KindTool, Target: target, Text: "FETCH " + address})
	}
	return subjects, nil
}

func (m message) resourceSubjects() ([]guard.Subject, error) {
	uri, ok := m.param("uri").(string)
	if !ok {
		return nil, fmt.Errorf("%s names no resource; send its uri as a string", m.method)
	}
	subjects := []guard.Subject{{Kind: guard.KindTool, Target: m.method, Text: "FETCH " + uri}}
	if u, err := url.Parse(strings.TrimSpace(uri)); err == nil && u.Scheme == "file" {
		subjects = append(subjects, guard.Subject{Kind: guard.KindTool, Target: m.method, Text: "READ " + u.Path})
	}
	return subjects, nil
}

// responseSubjects are the client's answer to a server that asked for a model's
// words or the user's: they become the server's input.
func (m message) responseSubjects() []guard.Subject {
	result, ok := m.object.Get("result")
	if o, isObject := result.(*strictjson.Object); !ok || isObject && o.Len() == 0 {
		return nil
	}
	return []guard.Subject{{Kind: guard.KindTool, Target: "response", Text: string(strictjson.Encode(result))}}
}

// addresses lists the addresses among the strings of an input, once each.
func addresses(input any) []string {
	var found []string
	var walk func(key string, value any)
	walk = func(key string, value any) {
		switch v := value.(type) {
		case *strictjson.Object:
			if v == nil {
				return
			}
			for _, k := range v.Keys() {
				e, _ := v.Get(k)
				walk(k, e)
			}
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case string:
			if a := address(key, v); a != "" && !slices.Contains(found, a) && len(found) <= maxURLs {
				found = append(found, a)
			}
		}
	}
	walk("", input)
	return found
}

// address is the address that a string is, by itself or by the name that it
// stands under; "" for any other text.
func address(key, text string) string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 4096 || strings.ContainsAny(text, " \n") {
		return ""
	}
	if scheme, rest, ok := strings.Cut(text, ":"); ok && rest != "" && isScheme(scheme) && (strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, `\\`)) {
		return text
	}
	key = strings.ToLower(key)
	for _, word := range []string{"url", "uri", "href", "link", "endpoint", "website", "host"} {
		if strings.HasSuffix(key, word) || strings.HasSuffix(key, word+"s") {
			if strings.HasPrefix(text, "//") {
				return "http:" + text
			}
			if strings.ContainsAny(text[:1], "/.#") {
				return ""
			}
			return "http://" + text
		}
	}
	return ""
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || (s[i] < '0' || s[i] > '9') && s[i] != '+' && s[i] != '-' && s[i] != '.') {
			return false
		}
	}
	return s != ""
}
