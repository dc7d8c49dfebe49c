package guardapi

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who sends its key in both headers, or a prompt, is answered in a string.
func TestWhoReadsAString(t *testing.T) {
	for _, c := range []struct {
		body    string
		headers []string
		quoted  bool
	}{
		{`{"text":"a"}`, nil, false},
		{`{"text":"a"}`, []string{"Authorization"}, false},
		{`{"text":"a"}`, []string{"X-Superagent-Api-Key"}, false},
		{`{"text":"a"}`, []string{"Authorization", "X-Superagent-Api-Key"}, true},
		{`{"prompt":"a"}`, []string{"Authorization"}, true},
	} {
		h := http.Header{"Content-Type": {"application/json"}}
		for _, name := range c.headers {
			h.Set(name, "k")
		}
		got, ref := Decode(h, []byte(c.body))
		require.Nil(t, ref)
		require.Equal(t, Request{Text: "a", Quoted: c.quoted}, got)

		var answer struct {
			Choices []struct {
				Message struct{ Content json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal(Answer{ID: "1", Block: true}.Encode(got), &answer))
		require.Equal(t, c.quoted, answer.Choices[0].Message.Content[0] == '"')
	}
}

// What is judged is what every reader of the body sees.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"text":"ls"}`, `{"prompt":"ls"}`, `{"text":"a","text":"b"}`, `{"te\u0078t":"a"}`, `{"text":"\ud800"}`, `{"TEXT":"a"}`, `{"text":"a"} {}`, `{"text":1}`, `[]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ref := Decode(http.Header{"Content-Type": {"application/json"}}, body)
		if ref != nil {
			require.GreaterOrEqual(t, ref.Status, 400)
			return
		}
		var other map[string]string
		require.NoError(t, json.Unmarshal(body, &other))
		require.Len(t, other, 1)
		for _, text := range other {
			require.Equal(t, text, got.Text)
		}
	})
}
