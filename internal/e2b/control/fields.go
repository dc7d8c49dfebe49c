package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// kind is the JSON type that E2B's API gives a field.
type kind int

const (
	text kind = iota
	integer
	boolean
	list     // array of anything
	texts    // array of strings
	integers // array of whole numbers
	textMap  // object whose values are strings
	object   // object; its fields are in nested
)

// field is a known field of a body.
type field struct {
	name string
	kind kind
}

// nested are the known fields of fields that are objects.
var nested = map[string][]field{
	"autoResume": {{"enabled", boolean}},
	"network":    networkFields,
}

// check refuses fields of another type than E2B's, and names that E2B would take
// for a known field though they are written differently. null is E2B's "not set".
func check(o *strictjson.Object, fields []field, path string) error {
	for _, key := range o.Keys() {
		i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, key) })
		if i < 0 {
			continue
		}
		if fields[i].name != key {
			return fmt.Errorf("the field %q is not spelled as E2B spells it; write %q", path+key, path+fields[i].name)
		}
		value, _ := o.Get(key)
		if value == nil {
			continue
		}
		if err := checkKind(value, fields[i].kind, path+key); err != nil {
			return err
		}
	}
	return nil
}

// checkKnown refuses fields that are not among the known ones.
func checkKnown(o *strictjson.Object, fields []field, path string) error {
	for _, key := range o.Keys() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == key }) {
			return fmt.Errorf("the field %q is none that e2bguard knows here, so it cannot tell what it does; leave it out", path+shorten(key))
		}
	}
	return nil
}

func checkKind(value any, k kind, path string) error {
	wrong := func(want string) error {
		return fmt.Errorf("the field %q is %s; send %s", path, strictjson.TypeName(value), want)
	}
	switch k {
	case text:
		if _, ok := value.(string); !ok {
			return wrong("a string")
		}
	case integer:
		if _, ok := value.(strictjson.Number); !ok {
			return wrong("a whole number")
		}
		if _, err := wholeNumber(value); err != nil {
			return fmt.Errorf("the field %q %w", path, err)
		}
	case boolean:
		if _, ok := value.(bool); !ok {
			return wrong("true or false")
		}
	case list, texts, integers:
		elements, ok := value.([]any)
		if !ok {
			return wrong("an array")
		}
		if k == list {
			return nil
		}
		element := text
		if k == integers {
			element = integer
		}
		for i, e := range elements {
			if err := checkKind(e, element, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case textMap:
		o, ok := value.(*strictjson.Object)
		if !ok {
			return wrong("an object of strings")
		}
		for _, key := range o.Keys() {
			e, _ := o.Get(key)
			if err := checkKind(e, text, path+"."+key); err != nil {
				return err
			}
		}
	case object:
		o, ok := value.(*strictjson.Object)
		if !ok {
			return wrong("an object")
		}
		return check(o, nested[path], path+".")
	}
	return nil
}

// wholeNumber reads a number as E2B's decoder does, which takes digits only:
// neither 300.0 nor 3e2.
func wholeNumber(value any) (int64, error) {
	digits := string(value.(strictjson.Number))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err == nil {
		return n, nil
	}
	if strings.ContainsAny(digits, ".eE") {
		return 0, fmt.Errorf("is %s; send a whole number without a point or exponent", shorten(digits))
	}
	return 0, fmt.Errorf("is %s, which is more than E2B can hold; send a smaller number", shorten(digits))
}

// isEmpty reports whether E2B takes a value for "not set".
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case *strictjson.Object:
		return v.Len() == 0
	default:
		return false
	}
}

// getInt, getBool, getText and getTexts read a field that check has passed; the
// last result is false if it is absent or null.

func getInt(o *strictjson.Object, name string) (int64, bool) {
	value, _ := o.Get(name)
	if value == nil {
		return 0, false
	}
	n, err := wholeNumber(value)
	return n, err == nil
}

func getBool(o *strictjson.Object, name string) (value, ok bool) {
	v, _ := o.Get(name)
	value, ok = v.(bool)
	return value, ok
}

func getText(o *strictjson.Object, name string) (string, bool) {
	v, _ := o.Get(name)
	s, ok := v.(string)
	return s, ok
}

func getTexts(o *strictjson.Object, name string) []string {
	v, _ := o.Get(name)
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		out = append(out, e.(string))
	}
	return out
}

func setTexts(o *strictjson.Object, name string, values []string) {
	if len(values) == 0 {
		o.Delete(name)
		return
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	o.Set(name, list)
}

func setInt(o *strictjson.Object, name string, n int64) {
	o.Set(name, strictjson.Number(strconv.FormatInt(n, 10)))
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
