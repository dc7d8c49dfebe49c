// Package strictjson reads JSON with one meaning only, so that what we read is
// what every later reader reads: UTF-8 without a byte order mark, keys that are
// case-sensitive and unique after unescaping, no lone surrogates, bounded depth,
// nothing after the value. Objects keep their order and the members nobody asked
// about, so that an edited message loses nothing.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deeply arrays and objects may be nested. E2B's messages need
// less than ten levels.
const MaxDepth = 64

// MaxValues is how many values a text may hold. A text of a few megabytes could
// hold millions, each taking a hundred times its length in memory; E2B's messages
// have a few dozen.
const MaxValues = 100_000

// Number is a JSON number exactly as it was written.
type Number = json.Number

// Object is a JSON object that keeps the order of its members. It is not safe
// for concurrent use.
type Object struct {
	keys   []string
	values map[string]any
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{values: map[string]any{}} }

// Decode reads one JSON value: nil, bool, Number, string, []any or *Object. Its
// errors say where the text is wrong and what to send instead.
func Decode(data []byte) (any, error) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, errors.New("reading JSON: the text starts with a byte order mark; send UTF-8 without one")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	left := MaxValues
	v, err := readValue(dec, &left)
	if err != nil {
		return nil, explain(err)
	}
	switch _, err := dec.ReadToken(); {
	case err == nil:
		return nil, fmt.Errorf("reading JSON: more data follows the value at byte %d; send a single value", dec.InputOffset())
	case !errors.Is(err, io.EOF):
		return nil, explain(err)
	}
	return v, nil
}

// DecodeObject is Decode for a value that must be an object.
func DecodeObject(data []byte) (*Object, error) {
	v, err := Decode(data)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, fmt.Errorf("reading JSON: the value is %s; send an object", TypeName(v))
	}
	return o, nil
}

// readValue reads the next value. Recursion is bounded by MaxDepth; left is how
// many values may still come.
func readValue(dec *jsontext.Decoder, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, fmt.Errorf("more than %d values at byte %d; send less at once", MaxValues, dec.InputOffset())
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if dec.StackDepth() > MaxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep at byte %d; send a flatter value", MaxDepth, dec.InputOffset())
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return Number(tok.String()), nil
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := readValue(dec, left)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.ReadToken()
		return list, err
	default: // '{': the decoder returns no other kind in value position.
		o := NewObject()
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			v, err := readValue(dec, left)
			if err != nil {
				return nil, err
			}
			o.Set(key, v)
		}
		_, err = dec.ReadToken()
		return o, err
	}
}

// explain turns the decoder's errors into sentences for whoever sent the text.
func explain(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("reading JSON: the text is empty; send a value")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("reading JSON: the text ends before the value does; send the whole value")
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("reading JSON: %w", err)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("reading JSON: the key %.80q appears twice; send every key once", syntax.JSONPointer.LastToken())
	}
	return fmt.Errorf("reading JSON: %w at byte %d; send valid UTF-8 JSON", syntax.Err, syntax.ByteOffset)
}

// TypeName names a value's JSON type, with its article, for error texts.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	case *Object:
		return "an object"
	default:
		return fmt.Sprintf("a %T", v)
	}
}

// Encode writes a value compactly, escaping only what JSON demands. It panics on
// a Go type that Decode does not return: that is a fault of the caller's code,
// never of the data.
func Encode(v any) []byte { return appendValue(nil, v) }

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case Number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case *Object:
		b = append(b, '{')
		for i, k := range v.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, k), ':')
			b = appendValue(b, v.values[k])
		}
		return append(b, '}')
	default:
		panic(fmt.Sprintf("strictjson: encoding a %T", v))
	}
}

// appendString quotes s. Decoded strings are valid UTF-8; in others each
// invalid byte becomes U+FFFD, so that the result is always valid JSON.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // The error only reports the replacement.
	return b
}

// Get returns a member, and whether it is there.
func (o *Object) Get(key string) (any, bool) {
	v, ok := o.values[key]
	return v, ok
}

// Set replaces a member in its place, or appends it.
func (o *Object) Set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Delete removes a member, if it is there.
func (o *Object) Delete(key string) {
	if _, ok := o.values[key]; !ok {
		return
	}
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// Keys returns the members' names in order. The caller may change the slice.
func (o *Object) Keys() []string { return slices.Clone(o.keys) }

// Len returns the number of members.
func (o *Object) Len() int { return len(o.keys) }

// Clone returns a deep copy.
func (o *Object) Clone() *Object {
	c := &Object{keys: slices.Clone(o.keys), values: maps.Clone(o.values)}
	for k, v := range c.values {
		c.values[k] = cloneValue(v)
	}
	return c
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case *Object:
		return v.Clone()
	case []any:
		c := slices.Clone(v)
		for i, e := range c {
			c[i] = cloneValue(e)
		}
		return c
	default:
		return v
	}
}

// MapStrings changes the strings in a decoded value, keys apart, by what change
// makes of them, and reports whether any is another now. The key that a string
// stands under, or the list it is in, is given with it; "" at the top.
func MapStrings(v any, change func(key, s string) string) (mapped any, changed bool) {
	return mapStrings("", v, change)
}

func mapStrings(key string, v any, change func(key, s string) string) (mapped any, changed bool) {
	switch v := v.(type) {
	case string:
		s := change(key, v)
		return s, s != v
	case []any:
		for i := range v {
			e, other := mapStrings(key, v[i], change)
			v[i], changed = e, changed || other
		}
	case *Object:
		for _, k := range v.keys {
			e, other := mapStrings(k, v.values[k], change)
			v.values[k], changed = e, changed || other
		}
	}
	return v, changed
}
