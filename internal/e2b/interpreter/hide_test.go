package interpreter_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/redact"
)

const planted = "sk_live_\"PLANTED\\é🚀/0123456789"

var plantedSet = redact.NewSet(false, redact.NewSecret(planted))

func hidden(t testing.TB, in io.Reader) (out string, seen *shown, err error) {
	t.Helper()
	seen = new(shown)
	f := interpreter.NewStreamFilter(&closer{Reader: in}, interpreter.StreamLimits{}, nil)
	f.Observe(seen)
	f.Hide(plantedSet)
	b, err := io.ReadAll(f)
	return string(b), seen, err
}

// printed is what the output events of a stream say, in all.
func printed(t testing.TB, out, kind string) (text string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e struct{ Type, Text string }
		require.NoError(t, json.Unmarshal([]byte(line), &e), "%.200q", line)
		if e.Type == kind {
			text += e.Text
		}
	}
	return text
}

func TestLinesHideSecretsSplitOverEvents(t *testing.T) {
	runes := []rune("a " + planted + " z")
	for split := range len(runes) + 1 {
		a, b := string(runes[:split]), string(runes[split:])
		for name, form := range map[string]func(string) string{"utf-8": func(s string) string { return s }, "ascii": ascii} {
			in := counted + form(output("stdout", a)) + form(output("stderr", "other\n")) + keepalive + form(output("stdout", b)) + end
			for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader} {
				out, seen, err := hidden(t, reader(strings.NewReader(in)))
				require.NoError(t, err)
				text := printed(t, out, "stdout")
				given := strings.TrimSuffix(strings.TrimPrefix(text, "a "), "<secret:known> z")
				assert.LessOrEqual(t, len(given), 3, "%s split at %d: %q", name, split, text)
				assert.Equal(t, text, seen.text[relay.Stdout].String())
				assert.Equal(t, "other\n", printed(t, out, "stderr"))
				assert.True(t, strings.HasSuffix(out, end))
			}
		}
	}
}

func TestHarmlessLinesPassByteForByteThroughHiding(t *testing.T) {
	odd := `{ "type" : "result" , "data": {"a":[1,2.50,{"b":"\ud83d\ude00\/\u0041"}], "c": "\ud83d alone \ud83d\u0041 \ude00"}, "text":"sk_"}` + "\n"
	in := counted + output("stdout", "hé\n\"\\🚀 sk_") + output("stderr", "") + result("AAAA") + odd + failure("NameError") + "not json \"\\\n" + keepalive + end
	for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
		out, _, err := hidden(t, reader(strings.NewReader(in)))
		require.NoError(t, err)
		assert.Equal(t, in, out)
	}
}

func TestResultsAndTracebacksHideSecretsAndPicturesStay(t *testing.T) {
	quoted, _ := json.Marshal(planted)
	secret := string(quoted[1 : len(quoted)-1])
	in := `{"type": "result", "text": "x=` + secret + `", "html": "<b>` + secret + `</b>", "png": "` + secret + `", "data": {"deep": ["` + secret + `", {"png": "` + secret + `", "` + secret + `": 1}]}, "is_main_result": true}` + "\n" +
		`{"type": "error", "name": "E", "value": "` + secret + `", "traceback": "l1\n` + secret + `"}` + "\n" + end
	want := `{"type": "result", "text": "x=<secret:known>", "html": "<b><secret:known></b>", "png": "` + secret + `", "data": {"deep": ["<secret:known>", {"png": "<secret:known>", "<secret:known>": 1}]}, "is_main_result": true}` + "\n" +
		`{"type": "error", "name": "E", "value": "<secret:known>", "traceback": "l1\n<secret:known>"}` + "\n" + end
	out, _, err := hidden(t, strings.NewReader(in))
	require.NoError(t, err)
	assert.Equal(t, want, out)
}

func TestHeldTextComesBeforeTheEndOfTheExecution(t *testing.T) {
	for name, c := range map[string]struct {
		rest string
		err  error
	}{"end": {end, nil}, "end of the body": {"", nil}} {
		out, _, err := hidden(t, strings.NewReader(output("stdout", "x sk_live_")+output("stderr", "sk_liv")+c.rest))
		require.ErrorIs(t, err, c.err, name)
		assert.Equal(t, "x sk_live_", printed(t, out, "stdout"), name)
		assert.Equal(t, "sk_liv", printed(t, out, "stderr"), name)
		assert.True(t, strings.HasSuffix(out, c.rest), name)
	}
}

func TestLongLinesHideSecrets(t *testing.T) {
	far := strings.Repeat("0123456789\n", 200_000)
	in := output("stdout", far+planted+far) + `{"type": "result", "png": "` + strings.Repeat("A", 3<<20) + `", "text": "` + strings.Repeat("é", 1<<20) + `"}` + "\n" + end
	out, _, err := hidden(t, strings.NewReader(in))
	require.NoError(t, err)
	assert.True(t, printed(t, out, "stdout") == far+"<secret:known>"+far)
	assert.True(t, strings.Contains(out, strings.Repeat("A", 3<<20)))
}

func TestALongLineCutInsideItsTextIsStillALine(t *testing.T) {
	for _, tail := range []string{"sk_live_", `\`, `\u00`, `\ud83d`, `\ud83d\u`, "plain"} {
		pr, pw := io.Pipe()
		f := interpreter.NewStreamFilter(pr, interpreter.StreamLimits{}, nil)
		f.Hide(plantedSet)
		go func() {
			_, _ = io.WriteString(pw, `{"type": "stdout", "text": "`+strings.Repeat("x", 2<<20)+tail)
			f.Cut(refusal.New(refusal.CodeWallClock, "over"))
		}()
		out, err := io.ReadAll(f)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(printed(t, string(out), "stdout"), strings.Repeat("x", 2<<20)), tail)
		assert.Contains(t, string(out), "over")
	}
}

func FuzzHiddenLines(f *testing.F) {
	f.Add("a "+planted+" z", uint16(5), true)
	f.Add("sk_live_\"PLANTED\\\u00e9", uint16(1), false)
	f.Add("\x00\xff\u2028<&>", uint16(2), true)
	f.Fuzz(func(t *testing.T, text string, size uint16, plain bool) {
		text = strings.ToValidUTF8(text, "?")
		line := output("stdout", text)
		if !plain {
			line = ascii(line)
		}
		in := counted + line + end
		out, _, err := hidden(t, &chunks{[]byte(in), int(size%97) + 1})
		require.NoError(t, err)
		got := printed(t, out, "stdout")
		require.NotContains(t, got, planted)
		if plantedSet.Replace(text) == text {
			require.Equal(t, text, got)
		}
	})
}

func FuzzLinesThatMayBeBroken(f *testing.F) {
	f.Add([]byte(`{"type":"stdout","text":"\ud83d\ud83d\ude00\u00`), uint16(1))
	f.Add([]byte(`{"a":{"b":["\"]}`+"\n}}]]\n\"\\"), uint16(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint16) {
		out, _, err := hidden(t, &chunks{in, int(size%97) + 1})
		require.NoError(t, err)
		if !bytes.Contains(in, []byte("sk_l")) && !bytes.ContainsAny(in, `\`) && out != string(in) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// chunks reads n bytes at a time.
type chunks struct {
	rest []byte
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.n, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func BenchmarkLinesHide(b *testing.B) {
	in := strings.Repeat(output("stdout", strings.Repeat("2026-01-02 INFO nothing to hide here\n", 50)), 100)
	for name, set := range map[string]*redact.Set{"plain": redact.NewSet(false), "hiding": plantedSet} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				f := interpreter.NewStreamFilter(&closer{Reader: strings.NewReader(in)}, interpreter.StreamLimits{}, nil)
				f.Hide(set)
				_, _ = io.Copy(io.Discard, f)
			}
		})
	}
}
