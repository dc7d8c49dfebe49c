package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const knownSecret = "s3cr3t+Value/of=40~characters_in~total.!"

// feed gives the pieces to a stream and returns what came out of each, and at the
// end.
func feed(s *Stream, pieces ...string) (out []string) {
	for _, piece := range pieces {
		got, _ := s.Next([]byte(piece))
		out = append(out, string(got))
	}
	return append(out, string(s.End()))
}

func all(out []string) string { return strings.Join(out, "") }

// forms are the ways in which a program would print a secret.
func forms(value string) map[string]string {
	wrapped := func(s string) string { return s[:20] + "\n" + s[20:] }
	b64 := base64.StdEncoding.EncodeToString
	return map[string]string{
		"plain":             value,
		"reversed":          reversed(value),
		"hex":               hex.EncodeToString([]byte(value)),
		"upper hex":         strings.ToUpper(hex.EncodeToString([]byte(value))),
		"base64":            b64([]byte(value)),
		"base64, second":    b64([]byte("x" + value)),
		"base64, third":     b64([]byte("xy" + value + "z")),
		"base64 for URLs":   base64.URLEncoding.EncodeToString([]byte(value)),
		"base64 in lines":   wrapped(b64([]byte(value))),
		"hex in lines":      wrapped(hex.EncodeToString([]byte(value))),
		"URL query":         url.QueryEscape(value),
		"URL path":          url.PathEscape(value),
		"URL in lower case": strings.ToLower("%2F") + url.QueryEscape(value),
	}
}

func TestStreamHidesAKnownSecretInEveryForm(t *testing.T) {
	set := NewSet(false, NewSecret(knownSecret))
	for name, form := range forms(knownSecret) {
		t.Run(name, func(t *testing.T) {
			got := all(feed(NewStream(set), "before "+form+" after\n"))
			assert.Contains(t, got, mark("known"))
			assert.True(t, strings.HasPrefix(got, "before "), got)
			assert.True(t, strings.HasSuffix(got, " after\n"), got)
			assert.LessOrEqual(t, len(got), len("before  after\n")+len(mark("known"))+8, "at most what the neighbours of base64 have a part in is left: %q", got)
		})
	}
}

// OpenHands/agent-canvas#1049, mastra-ai/mastra#21049, NousResearch/hermes-agent#11016:
// secrets split over the pieces of a stream were not hidden, and a prefix that was
// sent cannot be taken back.
func TestStreamHidesASecretSplitAnywhere(t *testing.T) {
	set := NewSet(false, NewSecret(knownSecret))
	text := "key=" + knownSecret + "\n"
	for i := range len(text) + 1 {
		for j := i; j <= len(text); j++ {
			out := feed(NewStream(set), text[:i], text[i:j], text[j:])
			assert.LessOrEqual(t, len(exposed(all(out))), 3, "split at %d and %d: %q", i, j, out)
			require.True(t, strings.HasPrefix(all(out), "key="), "%q", out)
			require.True(t, strings.HasSuffix(all(out), "\n"), "%q", out)
		}
	}
	var bytewise []string
	for i := range len(text) {
		bytewise = append(bytewise, text[i:i+1])
	}
	assert.Equal(t, "key=s3c"+mark("known")+"\n", all(feed(NewStream(set), bytewise...)))
}

// exposed is the longest piece of the secret in a text, from 2 bytes on.
func exposed(text string) string {
	for n := len(knownSecret); n >= 2; n-- {
		for i := 0; i+n <= len(knownSecret); i++ {
			if strings.Contains(text, knownSecret[i:i+n]) {
				return knownSecret[i : i+n]
			}
		}
	}
	return ""
}

// pollinations/pollinations PR 11016: holding back 4 KiB made streaming look dead.
func TestStreamHoldsBackOnlyWhatMayBecomeASecret(t *testing.T) {
	s := NewStream(NewSet(true, NewSecret(knownSecret)))
	for _, piece := range []string{"hello\n", "s3c", "x", " half of it: s3cr", "et? no\n", "the sk", "-learn package\n"} {
		out, _ := s.Next([]byte(piece))
		held := s.Held()
		switch piece {
		case " half of it: s3cr":
			assert.Equal(t, " half of it: ", string(out))
			assert.Equal(t, 4, held)
		case "et? no\n":
			assert.Equal(t, "s3cret? no\n", string(out))
		default:
			assert.Equal(t, piece, string(out))
			assert.Zero(t, held)
		}
	}
	out, _ := s.Next([]byte("key s3cr3t+V"))
	assert.Equal(t, "key ", string(out))
	out, _ = s.Next([]byte("\n"))
	assert.Empty(t, out, "a line break does not end an open match: base64 is printed in lines")
	out, _ = s.Next([]byte("\n\n"))
	assert.Equal(t, "s3cr3t+V\n\n\n", string(out))
}

func TestStreamPassesHarmlessTextUnchangedAndUncopied(t *testing.T) {
	s := NewStream(NewSet(true, NewSecret(knownSecret)))
	for _, piece := range []string{"", "a", "plain text\n", "\x00\xff\xfe binary", "päß ✓ 漢字", strings.Repeat("x", 100_000)} {
		out, changed := s.Next([]byte(piece))
		assert.False(t, changed)
		assert.Equal(t, piece, string(out))
	}
	assert.Empty(t, s.End())
}

func TestStreamHidesOverlappingSecretsWhole(t *testing.T) {
	for _, c := range []struct {
		name    string
		secrets []string
		pieces  []string
		want    string
	}{
		{"one is the start of another", []string{"abcdef12", "abcdef123456"}, []string{"<abcdef12", "3456>"}, "<" + mark("known") + ">"},
		{"the longer one does not come", []string{"abcdef12", "abcdef123456"}, []string{"<abcdef12", "34zz>"}, "<" + mark("known") + "34zz>"},
		{"one begins inside another", []string{"abcdef12", "ef123456"}, []string{"<abcdef123456>"}, "<" + mark("known") + ">"},
		{"one begins inside another, in the next piece", []string{"abcdef12", "ef123456"}, []string{"<abcdef12", "3456>"}, "<" + mark("known") + mark("known") + ">"},
		{"one after the other", []string{"abcdef12", "34567890"}, []string{"<abcdef1234567890>"}, "<" + mark("known") + mark("known") + ">"},
		{"the same twice", []string{"abcdef12"}, []string{"abcdef12abcd", "ef12"}, mark("known") + mark("known")},
		{"three pieces of two", []string{"abcdef12", "ef123456"}, []string{"abcd", "ef12", "3", "4567"}, mark("known") + mark("known") + "7"},
		{"a false start before it", []string{"ababab12"}, []string{"abababab", "ab12"}, "abab" + mark("known")},
	} {
		t.Run(c.name, func(t *testing.T) {
			var known []Secret
			for _, v := range c.secrets {
				known = append(known, NewSecret(v))
			}
			assert.Equal(t, c.want, all(feed(NewStream(NewSet(false, known...)), c.pieces...)))
		})
	}
}

func TestStreamHidesFormatsWithAPrefix(t *testing.T) {
	set := NewSet(true)
	for i := range formats {
		f := &formats[i]
		for _, prefix := range f.prefixes {
			secret := prefix + sampleBody(f)
			for split := range len(secret) + 1 {
				got := all(feed(NewStream(set), "is "+secret[:split], secret[split:]+" ok"))
				given := strings.TrimSuffix(strings.TrimPrefix(got, "is "), mark(f.kind)+" ok")
				assert.LessOrEqual(t, len(given), 3, "%s split at %d: %q", prefix, split, got)
			}
			short := prefix + "a1"
			assert.Equal(t, "is "+short+" ok", all(feed(NewStream(set), "is "+short, " ok")))
		}
	}
	assert.Equal(t, "task-list-one-two-three-4 sk-learn-based-something", all(feed(NewStream(set), "task-list-one-two-three-4 sk-learn-based-something")))
}

func sampleBody(f *format) string {
	switch f.kind {
	case "jwt":
		return "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + digits[:43]
	case "sendgrid_key":
		return digits[:22] + "." + digits[:43]
	default:
		return digits[:max(f.min, 16)]
	}
}

func TestStreamDropsTheRestOfAVeryLongSecret(t *testing.T) {
	pieces := []string{"x sk-ant-"}
	for range 100 {
		pieces = append(pieces, strings.Repeat("a1", 50))
	}
	assert.Equal(t, "x "+mark("anthropic_key")+" end\n", all(feed(NewStream(NewSet(true)), append(pieces, " end\n")...)))
}

func TestPaddedStreamKeepsLengthsAndPlaces(t *testing.T) {
	set := NewSet(true, NewSecret(knownSecret), NewSecret("abcdef12"), NewSecret("ef123456"))
	for _, text := range []string{
		"", "plain", "a " + knownSecret + " z", "<abcdef123456>", "abcdef12abcdef12", "sk-ant-" + strings.Repeat("a1", maxFormat) + " z",
		base64.StdEncoding.EncodeToString([]byte(knownSecret))[:20] + "\n" + base64.StdEncoding.EncodeToString([]byte(knownSecret))[20:],
	} {
		for _, size := range []int{1, 2, 3, 5, 8, 13, 1000, 1 << 20} {
			s := NewPaddedStream(set)
			var out []byte
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				got, _ := s.Next([]byte(rest[:n]))
				out = append(out, got...)
				rest = rest[n:]
			}
			out = append(out, s.End()...)
			require.Len(t, out, len(text), "%.40q by %d: %.60q", text, size, out)
			require.Equal(t, strings.HasSuffix(text, " z"), strings.HasSuffix(string(out), " z"))
			require.NotContains(t, string(out), knownSecret[4:])
		}
	}
}

func TestStreamBoundsWhatItHolds(t *testing.T) {
	s := NewStream(NewSet(true, NewSecret(knownSecret)))
	for range 10_000 {
		s.Next([]byte("s3cr\n"))
		s.Next([]byte("\n"))
		s.Next([]byte("AKIAAAAAAAAAA"))
	}
	assert.LessOrEqual(t, cap(s.buf), 4*maxFormat)
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("key="+knownSecret+" and sk-ant-0123456789abcdef\n"), uint16(7))
	f.Add([]byte("s3cr3ts3cr3t+Value"), uint16(3))
	f.Add([]byte("ghp_ghp_0123456789abcdef0123456789abcdef eyJeyJ"), uint16(1))
	set := NewSet(true, NewSecret(knownSecret), NewSecret("abcabcabd"))
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		whole := all(feed(NewStream(set), string(text)))
		s := NewStream(set)
		var out bytes.Buffer
		for rest, n := text, int(cut%61)+1; len(rest) > 0; {
			n = min(n, len(rest))
			got, _ := s.Next(rest[:n])
			out.Write(got)
			rest = rest[n:]
		}
		out.Write(s.End())
		if !bytes.Contains([]byte(whole), []byte("<secret:")) && whole != string(text) {
			t.Fatalf("harmless text was changed: %q", whole)
		}
		if strings.Contains(out.String(), knownSecret[:5]) && strings.Contains(out.String(), knownSecret) {
			t.Fatalf("the secret came out: %q", out.String())
		}
		if !strings.Contains(whole, "<secret:") && out.String() != string(text) {
			t.Fatalf("in pieces harmless text was changed: %q", out.String())
		}
	})
}

func BenchmarkStream(b *testing.B) {
	known := make([]Secret, 50)
	for i := range known {
		known[i] = NewSecret(fmt.Sprintf("%02d-%s", i, strings.Repeat(string(rune('a'+i%26)), 38)))
	}
	text := bytes.Repeat([]byte("2026-01-02 03:04:05 INFO worker[42] processed 1024 rows in 3.14 s, next: /var/data/file-0001.csv\n"), 400)[:32<<10]
	for _, c := range []struct {
		name string
		set  *Set
	}{{"known", NewSet(false, known...)}, {"formats", NewSet(true, known...)}} {
		b.Run(c.name, func(b *testing.B) {
			s := NewStream(c.set)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if out, changed := s.Next(text); changed || len(out) != len(text) {
					b.Fatal("changed")
				}
			}
		})
	}
	b.Run("copy", func(b *testing.B) {
		var buf []byte
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			buf = append(buf[:0], text...)
		}
	})
}
