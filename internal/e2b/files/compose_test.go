package files_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

func TestDecodeCompose(t *testing.T) {
	c, ref := files.DecodeCompose(nil, []byte(`{"source_paths":["a","/x/../b"],"destination":"/y/../c","username":"root","later":1}`))
	require.Nil(t, ref)
	assert.Equal(t, []string{"a", "/b"}, c.Sources)
	assert.Equal(t, "/c", c.Destination)
	assert.Equal(t, "root", c.Username)
	b, err := c.Encode()
	require.NoError(t, err)
	assert.JSONEq(t, `{"source_paths":["a","/b"],"destination":"/c","username":"root","later":1}`, string(b))

	_, ref = files.DecodeCompose(http.Header{"Content-Encoding": {"gzip"}}, []byte(`{"source_paths":["a"],"destination":"b"}`))
	require.NotNil(t, ref)
	assert.Equal(t, refusal.CodeUnsupported, ref.Code)
}

// What envd's lenient reader makes of the body that is forwarded is what was
// judged.
func FuzzComposeIsReadAlike(f *testing.F) {
	for _, seed := range []string{
		`{"source_paths":["a","b"],"destination":"c"}`, `{"source_paths":["a"],"destination":"b","Destination":"c"}`, `{"source_paths":["a"],"destination":"b"} {"destination":"c"}`,
		`{"\u0073ource_paths":["a"],"destination":"b"}`, `{"source_pathſ":["a"],"source_paths":["b"],"destination":"c"}`, `{"source_paths":["a"],"destination":"b","username":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, ref := files.DecodeCompose(nil, body)
		if ref != nil {
			return
		}
		b, err := c.Encode()
		require.NoError(t, err)
		var envd struct {
			SourcePaths []string `json:"source_paths"`
			Destination string   `json:"destination"`
			Username    *string  `json:"username"`
		}
		require.NoError(t, json.Unmarshal(b, &envd))
		assert.Equal(t, c.Sources, envd.SourcePaths)
		assert.Equal(t, c.Destination, envd.Destination)
		if envd.Username != nil {
			assert.Equal(t, c.Username, *envd.Username)
		}
	})
}
