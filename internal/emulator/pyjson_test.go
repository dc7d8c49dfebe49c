package emulator

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func jsonBody(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // Test data always marshals.
	}
	return string(b)
}

func TestPyLoads(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     any
	}{
		{"nested", ` {"a": [1, -2.5e3, true, null, "x"], "b": {}} `, map[string]any{"a": []any{1.0, -2500.0, true, nil, "x"}, "b": map[string]any{}}},
		{"constants", `[NaN, Infinity, -Infinity]`, []any{"nan", "inf", "-inf"}},
		{"escapes", `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, "\"\\/\b\f\n\r\té😀"},
		{"lone surrogates", `"\ud800\u0041\udc00"`, loneSurrogate + "A" + loneSurrogate},
		{"UTF-32", "{\x00\x00\x00}\x00\x00\x00", map[string]any{}},
		{"UTF-32, big-endian with a mark", "\x00\x00\xfe\xff\x00\x00\x00[\x00\x00\x00]", []any{}},
		{"UTF-16, big-endian", "\x00[\x00]", []any{}},
		{"two bytes of UTF-16", "1\x00", 1.0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := pyLoads([]byte(tt.in))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	for in, message := range map[string]string{
		"":              "Expecting value: line 1 column 1 (char 0)",
		"{\n  'a'}":     "Expecting property name enclosed in double quotes: line 2 column 3 (char 4)",
		`{"a" 1}`:       "Expecting ':' delimiter: line 1 column 6 (char 5)",
		`{"a":1 "b":2}`: "Expecting ',' delimiter: line 1 column 8 (char 7)",
		`[1 2]`:         "Expecting ',' delimiter: line 1 column 4 (char 3)",
		`"a`:            "Unterminated string starting at: line 1 column 1 (char 0)",
		"\"\n\"":        "Invalid control character at: line 1 column 2 (char 1)",
		`"\x"`:          `Invalid \escape: line 1 column 2 (char 1)`,
		`é`:             "Expecting value: line 1 column 1 (char 0)",
		`"é" x`:         "Extra data: line 1 column 5 (char 4)",
	} {
		_, err := pyLoads([]byte(in))
		require.EqualError(t, err, message, in)
	}
	for _, in := range []string{"\xff", "{\x00\x00\x00\xff\xff\xff\x7f", strings.Repeat("[", 2000)} {
		_, err := pyLoads([]byte(in))
		require.ErrorIs(t, err, errEncoding)
	}
}

func TestPyStyle(t *testing.T) {
	require.Equal(t, `{"a": "x:y,\"z\\", "b": [1, 2], "c": "\u00e9\ud83d\ude00"}`,
		string(pyStyle([]byte(`{"a":"x:y,\"z\\","b":[1,2],"c":"é😀"}`))))
}

// What both readers accept they read alike, and a restyled value stays itself.
func FuzzPyLoads(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\u00e9\ud83d\ude00",null],"a":{}}`, `"\ud800"`, `[NaN]`, "{\x00}\x00", `{"code":"x"}y`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := pyLoads(b)
		var want any
		if json.Unmarshal(b, &want) != nil || strings.Contains(string(b), `\u`) {
			return
		}
		if text, textErr := pyText(b); textErr != nil || text != string(b) {
			return // Go saw other characters than Python would.
		}
		if err != nil {
			t.Fatalf("Go reads %q, and pyLoads does not: %v", b, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %#v to Go and %#v to pyLoads", b, want, got)
		}
		var compact, again any
		line, _ := json.Marshal(want)
		if json.Unmarshal(pyStyle(line), &again) != nil || json.Unmarshal(line, &compact) != nil || !reflect.DeepEqual(again, compact) {
			t.Fatalf("restyling %q changed it", line)
		}
	})
}
