package gateway

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

// Whatever is read of a request stays in its folder, each path once, is all put
// before the guard, and runs for no longer than it may.
func FuzzDecodeProgram(f *testing.F) {
	for _, seed := range []string{
		`{"language":"python","code":"print(1)"}`,
		`{"language":"node","code":"1","timeout":0.5,"files":{"a/b.js":"x","c.bin":{"base64":"AA=="}}}`,
		`{"language":"bash","code":"1","files":{"main.sh/../x":"","..":"","./a":"","a/../b":"","~/x":"","A":"","a":""}}`,
		`{"language":"bash","code":"\u0000","timeout":1e400}`,
	} {
		f.Add([]byte(seed))
	}
	cfg := &Run{Timeout: 20 * time.Second, OutputBytes: 1 << 20}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, ref := decodeProgram(body, cfg)
		if ref != nil {
			require.NotEmpty(t, ref.Reason)
			return
		}
		require.Positive(t, p.timeout)
		require.LessOrEqual(t, p.timeout, cfg.Timeout)
		seen := map[string]bool{}
		for _, file := range p.upload() {
			require.True(t, strings.HasPrefix(file.Path, runFolder+"/"), file.Path)
			require.Equal(t, path.Clean(file.Path), file.Path)
			require.False(t, seen[file.Path], "%s is written twice", file.Path)
			seen[file.Path] = true
		}
		subjects := p.subjects()
		require.Len(t, subjects, len(p.files)+1)
		require.Equal(t, guard.KindCode, subjects[0].Kind)
		require.Equal(t, p.code, subjects[0].Text)
	})
}
