package superagent

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// Whatever the answer, it is a verdict or a *guard.Error; and where another reader
// of JSON, for whom the last of repeated keys wins and case does not count, sees a
// block, it is no pass.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"content":{"classification":"pass"}}}]}`,
		`{"choices":[{"message":{"content":"{\"status\":\"block\"}","reasoning_content":"r"}}]}`,
		`{"choices":[{"message":{"content":{"status":"pass","status":"block"}}}]}`,
		`<html>`, ``, `[`, `{"choices":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		v, err := parse(answer)
		if err != nil {
			var e *guard.Error
			assert.True(t, errors.As(err, &e))
			assert.Equal(t, guard.Verdict{}, v)
			return
		}
		assert.Contains(t, []guard.Decision{guard.Pass, guard.Block}, v.Decision)
		var other struct {
			Choices []struct {
				Message struct {
					Content struct {
						Classification, Status string
					} `json:"content"`
				} `json:"message"`
			} `json:"choices"`
		}
		if json.Unmarshal(answer, &other) != nil || v.Decision != guard.Pass {
			return
		}
		for _, c := range other.Choices {
			if c.Message.Content.Classification == "block" || c.Message.Content.Status == "block" {
				t.Errorf("read as pass: %s", answer)
			}
		}
	})
}
