package caddymodule

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/redact"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// The key is made once, whoever starts first, and nobody else can read it.
func TestSealKeyIsMadeOnceAndKept(t *testing.T) {
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	keys := make([]string, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			key, err := keptSealKey(t.Context(), storage)
			assert.NoError(t, err)
			keys[i] = strings.TrimSpace(key)
		})
	}
	wg.Wait()
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
	_, err := newSealer(keys[0])
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(storage.Path, sealKeyFile))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

// Without a key nothing can be sealed, so nothing starts.
func TestSealKeyThatCannotBeKept(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	_, err := keptSealKey(t.Context(), &certmagic.FileStorage{Path: blocked})
	require.Error(t, err)
}

// A key of the configuration is the same key wherever it is written.
func TestSealKeyOfTheConfiguration(t *testing.T) {
	token := seal.Token{Kind: seal.Envd, Sandbox: "isbx1", Client: "team-a", Inner: "ea_1"}
	old, current := strings.Repeat("01", 32), strings.Repeat("02", 32)
	file := filepath.Join(t.TempDir(), "seal")
	require.NoError(t, os.WriteFile(file, []byte(current+"\n"+old+"\n"), 0o600))
	t.Setenv("SEAL_KEY", current)
	want, err := newSealer(current)
	require.NoError(t, err)
	before, err := newSealer(old)
	require.NoError(t, err)
	for name, given := range map[string][]string{
		"written out": {current, old}, "from a file": {"{file." + file + "}"}, "from the environment": {"{env.SEAL_KEY}", old},
	} {
		t.Run(name, func(t *testing.T) {
			h := Handler{Clients: []Client{{Name: "team-a", Key: "k"}}, SealKey: given}
			got, err := h.sealer(caddy.Context{}, caddy.NewReplacer(), true)
			require.NoError(t, err)
			require.Equal(t, want.Seal(token), got.Seal(token))
			opened, err := got.Open(before.Seal(token))
			require.NoError(t, err)
			require.Equal(t, token, opened)
		})
	}
}

func TestKeyCommand(t *testing.T) {
	out, _, err := subcommand(t, "", "key", "new")
	require.NoError(t, err)
	require.Regexp(t, `^e2b_[0-9a-f]{40}\n$`, out)
	again, _, err := subcommand(t, "", "key", "new")
	require.NoError(t, err)
	require.NotEqual(t, out, again)

	hash, _, err := subcommand(t, out, "key", "hash")
	require.NoError(t, err)
	plain := gateway.Client{Name: "a", Key: redact.NewSecret(strings.TrimSpace(out))}
	hashed := gateway.Client{Name: "a", Key: redact.NewSecret(strings.TrimSpace(hash))}
	want, err := plain.Digest()
	require.NoError(t, err)
	got, err := hashed.Digest()
	require.NoError(t, err)
	require.Equal(t, want, got)

	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"nothing to do":   {"", nil, "key new, or key hash"},
		"something else":  {"", []string{"old"}, "key new, or key hash"},
		"too much":        {"", []string{"new", "hash"}, "key new, or key hash"},
		"no key":          {"\n", []string{"hash"}, "holds no key"},
		"two lines":       {"a\nb\n", []string{"hash"}, "white space"},
		"more than a key": {strings.Repeat("a", 5000), []string{"hash"}, "holds no key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := subcommand(t, tc.stdin, "key", tc.args...)
			require.Error(t, err)
			assert.Contains(t, stderr, tc.want)
		})
	}
}
