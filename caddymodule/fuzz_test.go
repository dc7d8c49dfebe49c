package caddymodule

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// FuzzOptions: whatever stands in the block, parsing ends with options or with
// an error that has file and line, and what was read is read again the same.
func FuzzOptions(f *testing.F) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		text, _, _ := strings.Cut(readIfThere(file), goldenSeparator)
		if _, block, ok := strings.Cut(text, "e2b_guard "); ok {
			f.Add(strings.TrimSuffix(strings.TrimSpace(block), "}"))
		}
	}
	f.Fuzz(func(t *testing.T, block string) {
		parse := func() (*Handler, error) {
			tokens, err := caddyfile.Tokenize([]byte("e2b_guard "+block), "Caddyfile")
			if err != nil || len(tokens) == 0 {
				t.SkipNow() // a fuzzed input that is no Caddyfile says nothing about the directive
			}
			h := new(Handler)
			return h, h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens))
		}
		h, err := parse()
		if err != nil {
			if !strings.Contains(err.Error(), "Caddyfile:") {
				t.Errorf("no file and line in %q", err)
			}
			return
		}
		if _, err := h.limits(); err != nil {
			t.Errorf("read, but refused later: %v", err)
		}
		if _, err := h.policy(); err != nil {
			t.Errorf("read, but refused later: %v", err)
		}
	})
}
