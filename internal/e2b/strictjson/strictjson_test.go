package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeRefusesWhatHasTwoMeanings(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty":                       {"", "the text is empty"},
		"only spaces":                 {" \n", "the text is empty"},
		"truncated object":            {`{"a":1`, "ends before the value does"},
		"truncated string":            {`"abc`, "ends before the value does"},
		"key twice":                   {`{"code":"evil","code":"ok"}`, `the key "code" appears twice`},
		"key twice, one escaped":      {`{"code":"evil","\u0063ode":"ok"}`, `the key "code" appears twice`},
		"key twice, deep":             {`{"a":[{"b":1,"b":2}]}`, `the key "b" appears twice`},
		"trailing value":              {`{} {}`, "more data follows"},
		"trailing garbage":            {`{}x`, "byte 2"},
		"byte order mark":             {"\xef\xbb\xbf{}", "byte order mark"},
		"UTF-16":                      {"{\x00}\x00", "send valid UTF-8 JSON"},
		"UTF-16 with mark":            {"\xff\xfe{\x00}\x00", "send valid UTF-8 JSON"},
		"invalid UTF-8 in a string":   {"\"\xff\"", "send valid UTF-8 JSON"},
		"overlong UTF-8":              {"\"\xc0\xaf\"", "send valid UTF-8 JSON"},
		"surrogate encoded as UTF-8":  {"\"\xed\xa0\x80\"", "send valid UTF-8 JSON"},
		"lone surrogate escape":       {`"\ud800"`, "send valid UTF-8 JSON"},
		"lone surrogate in a key":     {`{"\udc00":1}`, "send valid UTF-8 JSON"},
		"reversed surrogates":         {`"\udc00\ud800"`, "send valid UTF-8 JSON"},
		"not a number":                {`NaN`, "byte 0"},
		"infinity":                    {`[Infinity]`, "byte 1"},
		"leading zero":                {`01`, "more data follows"},
		"plus sign":                   {`+1`, "byte 0"},
		"comment":                     {`{/* */}`, "byte 1"},
		"single quotes":               {`{'a':1}`, "byte 1"},
		"trailing comma":              {`{"a":1,}`, "send valid UTF-8 JSON"},
		"raw newline in a string":     {"\"a\nb\"", "send valid UTF-8 JSON"},
		"NUL between tokens":          {"{\x00}", "send valid UTF-8 JSON"},
		"too deep in arrays":          {strings.Repeat("[", 65) + strings.Repeat("]", 65), "more than 64 levels"},
		"too deep in objects":         {strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "more than 64 levels"},
		"too many values in an array": {"[" + strings.Repeat("1,", MaxValues) + "1]", "more than 100000 values"},
		"too many empty objects":      {`{"x":[` + strings.Repeat("{},", MaxValues) + "{}]}", "more than 100000 values"},
		"a hundred thousand brackets": {strings.Repeat("[", 100_000), "more than 64 levels"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tt.text))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

func TestDecodeObjectNamesTheTypeItGot(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "an array", `null`: "null", `"x"`: "a string", `1`: "a number", `true`: "a boolean",
	} {
		_, err := DecodeObject([]byte(text))
		require.ErrorContains(t, err, "the value is "+want+"; send an object")
	}
}

func TestEditingKeepsOrderNumbersAndUnknownMembers(t *testing.T) {
	const text = ` { "b" : 1e999, "a" : [ -0, 12345678901234567890123, 1.50 ], "<x>" : "é\u2028&\u0000\"", "z" : { } } `
	o, err := DecodeObject([]byte(text))
	require.NoError(t, err)

	c := o.Clone()
	o.Set("b", Number("5"))
	o.Set("new", []any{true, nil})
	o.Delete("z")
	o.Delete("never there")
	list, ok := o.Get("a")
	require.True(t, ok)
	list.([]any)[0] = "changed"

	assert.Equal(t, `{"b":5,"a":["changed",12345678901234567890123,1.50],"<x>":"é`+"\u2028"+`&\u0000\"","new":[true,null]}`, string(Encode(o)))
	assert.Equal(t, []string{"b", "a", "<x>", "new"}, o.Keys())
	assert.Equal(t, 4, o.Len())
	assert.Equal(t, `{"b":1e999,"a":[-0,12345678901234567890123,1.50],"<x>":"é`+"\u2028"+`&\u0000\"","z":{}}`, string(Encode(c)), "the clone must not follow edits")
}

func TestEncodeWritesValidJSONForAnyGoString(t *testing.T) {
	assert.Equal(t, `"a`+"\uFFFD"+`b"`, string(Encode("a\xffb")))
	assert.Panics(t, func() { Encode(1) })
}

func TestDecodeAcceptsTheMostAllowedValues(t *testing.T) {
	_, err := Decode([]byte("[" + strings.Repeat("1,", MaxValues-2) + "1]"))
	require.NoError(t, err)
}

func TestDecodeAcceptsTheDeepestAllowedValue(t *testing.T) {
	_, err := Decode([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)))
	require.NoError(t, err)
}

// plain turns our values into what encoding/json decodes to.
func plain(v any) any {
	switch v := v.(type) {
	case *Object:
		m := map[string]any{}
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			m[k] = plain(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = plain(e)
		}
		return l
	default:
		return v
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, `[1,"a",null,true,{"b":-0.0e+1}]`, `{"a":1,"A":2}`, `{"a":1,"\u0061":2}`, `"\ud83d\ude00"`, `"\ud83d"`, "\xef\xbb\xbf1",
		`{"templateID":"base","timeout":300,"metadata":{"k":"v"}}`, `[[[[1]]]]`, ` 1 `, `1 2`, "\"\xff\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data)
		if err != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var std any
		require.NoError(t, dec.Decode(&std), "encoding/json refuses what we accept")
		require.True(t, reflect.DeepEqual(std, plain(v)), "encoding/json reads another value")

		out := Encode(v)
		again, err := Decode(out)
		require.NoError(t, err, "our own encoding must decode")
		require.Equal(t, out, Encode(again), "encoding must be stable")
		require.True(t, reflect.DeepEqual(plain(v), plain(again)))
	})
}
