package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	oldKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	newKey = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
)

var example = Token{Kind: Envd, Sandbox: "isbx1", Client: "team-a", Inner: "ea_0123456789abcdef"}

func sealer(t testing.TB, texts ...string) *Sealer {
	t.Helper()
	keys, err := ParseKeys(strings.Join(texts, "\n"))
	require.NoError(t, err)
	s, err := New(keys...)
	require.NoError(t, err)
	return s
}

func TestOpenUndoesSeal(t *testing.T) {
	s := sealer(t, newKey)
	for name, token := range map[string]Token{
		"envd":               example,
		"traffic":            {Kind: Traffic, Sandbox: "isbx1", Client: "team-a", Inner: "ta_1"},
		"volume":             {Kind: Volume, Sandbox: "vol1", Client: "team-a", Inner: "eyJ.x.y"},
		"no token of E2B's":  {Kind: Envd, Sandbox: "isbx1", Client: "team-a"},
		"a long inner token": {Kind: Envd, Sandbox: "isbx1", Client: "team-a", Inner: strings.Repeat("x", 1500)},
		"nothing":            {},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Open(s.Seal(token))
			require.NoError(t, err)
			require.Equal(t, token, got)
		})
	}
}

// Two replicas that share nothing but the key give the same text: an SDK signs
// file URLs with it, and another replica must come to the same signature.
func TestTheSameTextOnEveryReplica(t *testing.T) {
	want := "e2bg_aJXesRynrxbrlWOakurYiQnihuxjA-rONgWa3-6zliZjR6ExUL1LfZh6D2zSRwXlRKx1h1e8" // of every release
	a, b := sealer(t, newKey), sealer(t, newKey, oldKey)
	require.Equal(t, a.Seal(example), b.Seal(example))
	require.Equal(t, want, a.Seal(example))
}

func TestEveryFieldChangesTheText(t *testing.T) {
	s := sealer(t, newKey)
	seen := map[string]string{}
	for name, token := range map[string]Token{
		"as it is":        example,
		"another kind":    {Traffic, example.Sandbox, example.Client, example.Inner},
		"another sandbox": {example.Kind, "isbx2", example.Client, example.Inner},
		"another client":  {example.Kind, example.Sandbox, "team-b", example.Inner},
		"another inner":   {example.Kind, example.Sandbox, example.Client, "ea_x"},
		"fields shifted":  {example.Kind, example.Sandbox + "t", "eam-a", example.Inner},
	} {
		text := s.Seal(token)
		assert.Empty(t, seen[text], "%s and %s have the same text", name, seen[text])
		seen[text] = name
	}
	other := sealer(t, oldKey).Seal(example)
	assert.Empty(t, seen[other], "another key gives the same text")
}

func TestTextIsSafeInHeadersAndURLs(t *testing.T) {
	text := sealer(t, newKey).Seal(example)
	require.Regexp(t, `^e2bg_[A-Za-z0-9_-]+$`, text)
	require.Equal(t, text, url.QueryEscape(text))
	require.True(t, IsSealed(text))
	require.False(t, IsSealed(example.Inner))
}

func TestInnerTokenDoesNotShow(t *testing.T) {
	text := sealer(t, newKey).Seal(example)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, Prefix))
	require.NoError(t, err)
	for _, secret := range []string{example.Inner, example.Sandbox, example.Client} {
		require.NotContains(t, text, secret)
		require.False(t, bytes.Contains(raw, []byte(secret)))
	}
	_, err = sealer(t, oldKey).Open(text)
	require.ErrorIs(t, err, ErrInvalid, "a gateway with another key opens it")
}

func TestRotation(t *testing.T) {
	before, during, after := sealer(t, oldKey), sealer(t, newKey, oldKey), sealer(t, newKey)
	old := before.Seal(example)
	got, err := during.Open(old)
	require.NoError(t, err)
	require.Equal(t, example, got)
	require.Equal(t, []string{after.Seal(example), old}, during.SealAll(example))
	_, err = after.Open(old)
	require.ErrorIs(t, err, ErrInvalid)
}

func TestOpenRefuses(t *testing.T) {
	s := sealer(t, newKey, oldKey)
	good := s.Seal(example)
	flipped := []byte(good)
	flipped[len(flipped)-2] ^= 1
	for name, text := range map[string]string{
		"nothing":                  "",
		"a token of E2B's":         example.Inner,
		"the prefix":               Prefix,
		"the prefix and garbage":   Prefix + "AAAA",
		"an unknown key id":        Prefix + "AAAAAA" + good[len(Prefix)+6:],
		"the other key's id":       sealer(t, oldKey).Seal(example)[:len(Prefix)+5] + good[len(Prefix)+5:],
		"a changed character":      string(flipped),
		"the last one cut":         good[:len(good)-1],
		"one more":                 good + "A",
		"padded":                   good + "=",
		"a line break in it":       good[:20] + "\n" + good[20:],
		"a line break at the end":  good + "\n",
		"another prefix":           "E2BG_" + good[len(Prefix):],
		"the other base64":         Prefix + "+/" + good[len(Prefix)+2:],
		"two tokens":               good + "," + good,
		"too long to be looked at": good + strings.Repeat("A", maxText),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Open(text)
			require.ErrorIs(t, err, ErrInvalid)
			require.Zero(t, got)
		})
	}
}

func TestEveryBitCounts(t *testing.T) {
	s := sealer(t, newKey)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s.Seal(example), Prefix))
	require.NoError(t, err)
	for i := range len(raw) * 8 {
		forged := bytes.Clone(raw)
		forged[i/8] ^= 1 << (i % 8)
		_, err := s.Open(Prefix + base64.RawURLEncoding.EncodeToString(forged))
		require.ErrorIs(t, err, ErrInvalid, "bit %d", i)
	}
}

func TestParseKeys(t *testing.T) {
	raw, err := hex.DecodeString(newKey)
	require.NoError(t, err)
	want := sealer(t, newKey).Seal(example)
	for name, text := range map[string]string{
		"hexadecimal":        newKey,
		"upper case":         strings.ToUpper(newKey),
		"base64":             base64.StdEncoding.EncodeToString(raw),
		"base64 for URLs":    base64.RawURLEncoding.EncodeToString(raw),
		"with a line break":  newKey + "\r\n",
		"before another one": newKey + "\n" + oldKey,
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, want, sealer(t, text).Seal(example)) })
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":       {" \n", "openssl rand -hex 32"},
		"a password":    {"correct-horse-battery-staple!", "neither hexadecimal nor base64"},
		"16 bytes":      {newKey[:32], "16 bytes"},
		"one of two":    {newKey + " abc", "seal key 2"},
		"short base64":  {"aGVsbG8gd29ybGQ=", "11 bytes"},
		"a placeholder": {"{env.SEAL_KEY}", "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseKeys(tc.text)
			require.ErrorContains(t, err, tc.want)
			if secret := strings.TrimSpace(tc.text); secret != "" {
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
}

func TestNewRefusesWhatCannotSeal(t *testing.T) {
	_, err := New()
	require.Error(t, err)
	_, err = New(Key{})
	require.Error(t, err)
	keys, err := ParseKeys(newKey + " " + newKey)
	require.NoError(t, err)
	_, err = New(keys...)
	require.ErrorContains(t, err, "the same")
}

func TestGeneratedKeysAreKeys(t *testing.T) {
	a, b := GenerateKey(), GenerateKey()
	require.NotEqual(t, a, b)
	require.NotEqual(t, sealer(t, a).Seal(example), sealer(t, b).Seal(example))
}

// Whatever Open accepts, Seal would have made: there is one text for one token.
func FuzzOpen(f *testing.F) {
	s := sealer(f, newKey, oldKey)
	f.Add(s.Seal(example))
	f.Add(sealer(f, oldKey).Seal(Token{Kind: Traffic}))
	f.Add(Prefix)
	f.Add("ea_0123456789abcdef")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := s.Open(text)
		if err != nil {
			require.Equal(t, ErrInvalid, err)
			require.Zero(t, token)
			return
		}
		require.Contains(t, s.SealAll(token), text)
	})
}

// Whatever the fields hold, opening gives them back, and neither shows.
func FuzzSeal(f *testing.F) {
	s := sealer(f, newKey)
	f.Add(byte(Envd), "isbx1", "team-a", "ea_1")
	f.Add(byte(0), "", "", "")
	f.Fuzz(func(t *testing.T, kind byte, sandbox, client, inner string) {
		if len(sandbox)+len(client)+len(inner) > 2000 {
			return
		}
		token := Token{Kind(kind), sandbox, client, inner}
		got, err := s.Open(s.Seal(token))
		require.NoError(t, err)
		require.Equal(t, token, got)
	})
}

func BenchmarkOpen(b *testing.B) {
	s := sealer(b, newKey)
	text := s.Seal(example)
	for b.Loop() {
		if _, err := s.Open(text); err != nil {
			b.Fatal(err)
		}
	}
}
