// Package strictjson reads JSON with one meaning only: UTF-8, case-sensitive
// keys, no key twice, nothing after the value.
package strictjson

import (
	"encoding/json"
	"errors"
)

// Number is a JSON number as it was written.
type Number = json.Number

// Object is a JSON object that keeps the order of its members.
type Object struct {
	keys   []string
	values map[string]any
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{values: map[string]any{}} }

// Decode reads one JSON value: nil, bool, Number, string, []any or *Object.
func Decode(data []byte) (any, error) { return nil, errors.New("decoding JSON") }

// DecodeObject is Decode for a value that must be an object.
func DecodeObject(data []byte) (*Object, error) { return nil, errors.New("decoding JSON") }

// Encode writes a value compactly.
func Encode(v any) []byte { return nil }

// Get returns a member, and whether it is there.
func (o *Object) Get(key string) (any, bool) { v, ok := o.values[key]; return v, ok }

// Set replaces a member in its place, or appends it.
func (o *Object) Set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Delete removes a member.
func (o *Object) Delete(key string) { delete(o.values, key) }

// Keys returns the members' names in order.
func (o *Object) Keys() []string { return o.keys }

// Len returns the number of members.
func (o *Object) Len() int { return len(o.keys) }

// Clone returns a deep copy.
func (o *Object) Clone() *Object { return o }
