package superagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
)

// parse reads the answer of every generation of the API:
//
//	{"choices":[{"message":{"content":C,"reasoning":R}}]}
//
// C is an object, or the same as a JSON string:
//
//	{"classification":"block","violation_types":[…],"cwe_codes":[…],"reasoning":R}
//
// "classification" was once "status", and R is found in C's "reasoning", the
// message's "reasoning" or its "reasoning_content". Whatever else there is, is not
// read. Every verdict in the answer must be the same, repeated keys and further
// choices included.
func parse(answer []byte) (guard.Verdict, error) {
	trimmed := bytes.TrimSpace(answer)
	switch {
	case len(trimmed) == 0:
		return guard.Verdict{}, badAnswer("the answer is empty")
	case trimmed[0] == '<':
		return guard.Verdict{}, badAnswer("the answer is HTML or XML, not JSON: is there a login page or a proxy between?")
	}
	root, err := decode(trimmed)
	if err != nil {
		return guard.Verdict{}, badAnswer("the answer is no complete JSON: %w", err)
	}
	if err := root.spelled("choices"); err != nil {
		return guard.Verdict{}, err
	}
	var r reading
	choices, _ := root.last("choices").([]any)
	if len(root.all("choices")) > 1 {
		return guard.Verdict{}, badAnswer("the answer holds choices twice")
	}
	if len(choices) == 0 {
		return guard.Verdict{}, badAnswer("the answer holds no choices")
	}
	for _, choice := range choices {
		object, _ := choice.(object)
		if err := object.spelled("message"); err != nil {
			return guard.Verdict{}, err
		}
		messages := object.all("message")
		if len(messages) == 0 {
			return guard.Verdict{}, badAnswer("a choice holds no message")
		}
		for _, message := range messages {
			if err := r.message(message); err != nil {
				return guard.Verdict{}, err
			}
		}
	}
	return r.verdict()
}

// reading gathers what an answer says.
type reading struct {
	decisions  []guard.Decision
	reasonings []string
	violations []guard.Violation
}

func (r *reading) message(v any) error {
	message, ok := v.(object)
	if !ok {
		return badAnswer("a message is no object")
	}
	if err := message.spelled("content"); err != nil {
		return err
	}
	contents := message.all("content")
	if len(contents) == 0 {
		return badAnswer("a message holds no content")
	}
	for _, content := range contents {
		if err := r.content(content); err != nil {
			return err
		}
	}
	for _, key := range []string{"reasoning", "reasoning_content"} {
		r.reason(message.last(key))
	}
	return nil
}

func (r *reading) content(v any) error {
	if text, ok := v.(string); ok {
		if strings.TrimSpace(text) == "" {
			return badAnswer("the message's content is empty")
		}
		parsed, err := decode([]byte(text))
		if err != nil {
			return badAnswer("the message's content is text, not JSON")
		}
		v = parsed
	}
	content, ok := v.(object)
	if !ok {
		return badAnswer("the message's content is no object")
	}
	if err := content.spelled("classification", "status"); err != nil {
		return err
	}
	words := append(content.all("classification"), content.all("status")...)
	if len(words) == 0 {
		return badAnswer("the message's content holds neither classification nor status")
	}
	for _, word := range words {
		switch word {
		case "pass":
			r.decisions = append(r.decisions, guard.Pass)
		case "block":
			r.decisions = append(r.decisions, guard.Block)
		default:
			return badAnswer("the classification is neither pass nor block")
		}
	}
	r.reason(content.last("reasoning"))
	types, cwes := texts(content.last("violation_types")), texts(content.last("cwe_codes"))
	for i := range max(len(types), len(cwes)) {
		// The two lists are not said to be pairs, but nothing else can be made of
		// them.
		var violation guard.Violation
		if i < len(types) {
			violation.Type = types[i]
		}
		if i < len(cwes) {
			violation.CWE = cwes[i]
		}
		r.violations = append(r.violations, violation)
	}
	return nil
}

func (r *reading) reason(v any) {
	if text, ok := v.(string); ok && strings.TrimSpace(text) != "" {
		r.reasonings = append(r.reasonings, strings.TrimSpace(text))
	}
}

func (r *reading) verdict() (guard.Verdict, error) {
	for _, d := range r.decisions[1:] {
		if d != r.decisions[0] {
			return guard.Verdict{}, &guard.Error{Fault: guard.Contradictory, Err: errors.New("the answer says both pass and block")}
		}
	}
	v := guard.Verdict{Decision: r.decisions[0], Violations: r.violations}
	if len(r.reasonings) > 0 {
		v.Reasoning = r.reasonings[0]
	}
	return v, nil
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if text, ok := item.(string); ok && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// object is a JSON object that keeps repeated keys: the standard decoder would
// let the last one win, and a reader that lets the first one win would see
// another verdict.
type object []member

type member struct {
	key   string
	value any
}

func (o object) all(key string) []any {
	var out []any
	for _, m := range o {
		if m.key == key {
			out = append(out, m.value)
		}
	}
	return out
}

func (o object) last(key string) any {
	if all := o.all(key); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// spelled refuses other spellings of the keys that lead to the verdict: readers
// that do not look at the case of letters would see another one.
func (o object) spelled(keys ...string) error {
	for _, m := range o {
		for _, key := range keys {
			if m.key != key && strings.EqualFold(m.key, key) {
				return badAnswer("a key like %q is spelled in another case", key)
			}
		}
	}
	return nil
}

// maxDepth bounds the nesting of an answer; a real one has five levels.
const maxDepth = 32

// decode reads exactly one JSON object.
func decode(data []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := value(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after its end")
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("it is no object")
	}
	return o, nil
}

func value(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		out := object{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(dec, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, member{key.(string), v}) //nolint:forcetypeassert // The decoder gives keys as strings.
		}
		_, err = dec.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for dec.More() {
			v, err := value(dec, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = dec.Token()
		return out, err
	default:
		return token, nil
	}
}
