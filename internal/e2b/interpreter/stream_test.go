package interpreter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	counted   = `{"type": "number_of_executions", "execution_count": 2}` + "\n"
	keepalive = `{"type": "keepalive"}` + "\n"
	end       = `{"type": "end_of_execution"}` + "\n"
)

func output(kind, text string) string {
	b, _ := json.Marshal(text)
	return `{"type": "` + kind + `", "text": ` + string(b) + `, "timestamp": "2026-11-30T17:52:41.000976+00:00"}` + "\n"
}

func result(png string) string {
	return `{"type": "result", "png": "` + png + `", "extra": {}, "is_main_result": true}` + "\n"
}

func failure(name string) string {
	return `{"type": "error", "name": "` + name + `", "value": "x", "traceback": "y"}` + "\n"
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

func run(in io.Reader, lim interpreter.StreamLimits) (out string, seen []interpreter.Event, f *interpreter.StreamFilter, err error) {
	f = interpreter.NewStreamFilter(&closer{Reader: in}, lim, func(e interpreter.Event) { seen = append(seen, e) })
	b, err := io.ReadAll(f)
	return string(b), seen, f, err
}

func TestLinesPassByteForByte(t *testing.T) {
	in := counted + output("stdout", "hé\n\"\\🚀") + keepalive + output("stderr", "") + result("AAAA") + failure("NameError") + "not json\n" + end
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
		"eof at once":  iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			out, seen, f, err := run(reader(strings.NewReader(in)), interpreter.StreamLimits{OutputBytes: 1000, ResultBytes: 1000})
			require.NoError(t, err)
			assert.Equal(t, in, out)
			assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventError, Name: "NameError", Value: "x"}, {Kind: interpreter.EventEnd}}, seen)
			assert.EqualValues(t, len("hé\n\"\\🚀"), f.OutputBytes())
		})
	}
}

// A character must not be split between two writes: the JavaScript client decodes
// chunk by chunk.
func TestOnlyWholeLinesAreHandedOut(t *testing.T) {
	r, w := io.Pipe()
	f := interpreter.NewStreamFilter(r, interpreter.StreamLimits{}, nil)
	line := output("stdout", "hello")
	go func() {
		_, _ = io.WriteString(w, line[:10])
		_, _ = io.WriteString(w, line[10:]+line[:5])
	}()
	buf := make([]byte, 1000)
	n, err := f.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, line, string(buf[:n]))
	require.NoError(t, f.Close())
}

// requireRefused checks the end of a stream that a limit ended.
func requireRefused(t *testing.T, tail string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(tail, "\n"), "\n")
	require.Len(t, lines, 2, tail)
	var event struct{ Type, Name, Value string }
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &event))
	assert.Equal(t, "error", event.Type)
	assert.Equal(t, "OutputLimitExceeded", event.Name)
	assert.Contains(t, event.Value, "limit of 10 bytes")
	assert.Contains(t, event.Value, "r1")
	assert.Equal(t, strings.TrimSuffix(end, "\n"), lines[1])
}

func TestStreamEndsAtOutputLimit(t *testing.T) {
	lim := interpreter.StreamLimits{OutputBytes: 10, RequestID: "r1"}
	passed := counted + output("stdout", "12345") + result(strings.Repeat("A", 100)) + output("stderr", "67890")
	out, seen, f, err := run(strings.NewReader(passed+output("stdout", "x")+end), lim)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, passed))
	requireRefused(t, out[len(passed):])
	assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventLimit}}, seen)
	assert.EqualValues(t, 10, f.OutputBytes())
}

func TestStreamEndsAtResultLimit(t *testing.T) {
	out, _, _, err := run(strings.NewReader(counted+result("A")+end), interpreter.StreamLimits{ResultBytes: 10, RequestID: "r1"})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, counted))
	requireRefused(t, out[len(counted):])
}

// A line of megabytes passes without being held; at the limit its text is closed,
// so that what was printed is still read.
func TestLongOutputLineIsCutInsideItsText(t *testing.T) {
	for name, text := range map[string]string{
		"plain": strings.Repeat("x", 3<<20), "escapes": strings.Repeat(`\`, 3<<19), "unicode": strings.Repeat("ü\n", 1<<19), "pairs": strings.Repeat("🚀", 3<<17),
	} {
		t.Run(name, func(t *testing.T) {
			line := output("stdout", text)
			if name == "unicode" || name == "pairs" {
				line = ascii(line)
			}
			out, _, f, err := run(strings.NewReader(counted+line+end), interpreter.StreamLimits{OutputBytes: 1 << 30})
			require.NoError(t, err)
			require.Equal(t, len(counted)+len(line)+len(end), len(out))
			assert.EqualValues(t, len(text), f.OutputBytes())

			out, seen, f, err := run(iotest.HalfReader(strings.NewReader(counted+line+end)), interpreter.StreamLimits{OutputBytes: 1 << 20, RequestID: "r1"})
			require.NoError(t, err)
			assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventLimit}}, seen)
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			require.Len(t, lines, 4)
			var event struct{ Type, Text, Timestamp string }
			require.NoError(t, json.Unmarshal([]byte(lines[1]), &event))
			assert.Equal(t, "stdout", event.Type)
			assert.NotEmpty(t, event.Timestamp)
			assert.LessOrEqual(t, len(event.Text), 1<<20+4)
			assert.InDelta(t, f.OutputBytes(), len(event.Text), 8)
			assert.Contains(t, lines[2], "OutputLimitExceeded")
			assert.Equal(t, strings.TrimSuffix(end, "\n"), lines[3])
		})
	}
}

// ascii writes a JSON line the way the server does.
func ascii(line string) string {
	var b bytes.Buffer
	for _, c := range line {
		switch {
		case c < 0x80:
			b.WriteByte(byte(c))
		case c > 0xFFFF:
			c -= 0x10000
			b.WriteString(escape(0xD800+c>>10) + escape(0xDC00+c&0x3FF))
		default:
			b.WriteString(escape(c))
		}
	}
	return b.String()
}

func escape(c rune) string {
	const digits = "0123456789abcdef"
	return `\u` + string([]byte{digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15]})
}

func TestHugeFirstPieceOverTheLimitIsNotHandedOut(t *testing.T) {
	out, _, _, err := run(strings.NewReader(counted+output("stdout", strings.Repeat("x", 3<<20))+end), interpreter.StreamLimits{OutputBytes: 10, RequestID: "r1"})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, counted))
	requireRefused(t, out[len(counted):])
}

// A result line that is too long has no place for an error: the stream breaks off.
func TestLongResultOverTheLimitBreaksOff(t *testing.T) {
	in := strings.NewReader(counted + result(strings.Repeat("A", 8<<20)) + end)
	out, seen, _, err := run(in, interpreter.StreamLimits{ResultBytes: 4 << 20})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventLimit}}, seen)
	assert.LessOrEqual(t, len(out), 5<<20)
}

func TestLongResultPasses(t *testing.T) {
	in := counted + result(strings.Repeat("A", 8<<20)) + output("stdout", "x") + end
	out, seen, f, err := run(strings.NewReader(in), interpreter.StreamLimits{ResultBytes: 64 << 20, OutputBytes: 10})
	require.NoError(t, err)
	assert.True(t, in == out)
	assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventEnd}}, seen)
	assert.EqualValues(t, 1, f.OutputBytes())
}

// A stream that the sandbox breaks off in the middle of a line stays broken:
// e2b-dev/E2B#921, e2b-dev/code-interpreter#181.
func TestTruncationStaysTruncation(t *testing.T) {
	reset := errors.New("connection reset")
	whole := counted + output("stdout", "abc")
	out, seen, _, err := run(io.MultiReader(strings.NewReader(whole+`{"type": "std`), iotest.ErrReader(reset)), interpreter.StreamLimits{})
	require.ErrorIs(t, err, reset)
	assert.Equal(t, whole, out)
	assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventAborted, Err: reset}}, seen)
}

func TestLastLineWithoutBreakPasses(t *testing.T) {
	in := counted + strings.TrimSuffix(end, "\n")
	out, seen, _, err := run(strings.NewReader(in), interpreter.StreamLimits{})
	require.NoError(t, err)
	assert.Equal(t, in, out)
	assert.Equal(t, []interpreter.Event{{Kind: interpreter.EventStart}, {Kind: interpreter.EventEnd}}, seen)
}

func TestCutEndsStreamWithError(t *testing.T) {
	r, w := io.Pipe()
	f := interpreter.NewStreamFilter(r, interpreter.StreamLimits{}, nil)
	var writer sync.WaitGroup
	writer.Go(func() {
		_, err := io.WriteString(w, counted+`{"type": "st`)
		assert.NoError(t, err)
	})
	buf := make([]byte, 1000)
	n, err := f.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, counted, string(buf[:n]))
	timer := time.AfterFunc(10*time.Millisecond, func() {
		f.Cut(refusal.New(refusal.CodeUpstreamIdle, "silent"))
		f.Cut(refusal.New(refusal.CodePolicy, "second"))
	})
	defer timer.Stop()
	rest, err := io.ReadAll(f)
	require.NoError(t, err)
	writer.Wait()
	assert.Contains(t, string(rest), "silent")
	assert.True(t, strings.HasSuffix(string(rest), end))
}

func FuzzStreamFilter(f *testing.F) {
	f.Add(int64(10), int64(10), []byte(counted+output("stdout", "hello\nüö")+result("AA")+end))
	f.Add(int64(0), int64(0), []byte(`{"type":"stdout","text":"\ud83d\u00e9"}`))
	f.Fuzz(func(t *testing.T, outputBytes, resultBytes int64, in []byte) {
		lim := interpreter.StreamLimits{OutputBytes: outputBytes, ResultBytes: resultBytes}
		out, seen, _, err := run(bytes.NewReader(in), lim)
		again, seenAgain, _, errAgain := run(iotest.OneByteReader(bytes.NewReader(in)), lim)
		if out != again || len(seen) != len(seenAgain) || (err == nil) != (errAgain == nil) {
			t.Fatalf("the answer depends on how the bytes arrive: %q (%v), %q (%v)", out, err, again, errAgain)
		}
		limited := len(seen) > 0 && seen[len(seen)-1].Kind == interpreter.EventLimit
		if !limited && out != string(in) {
			t.Fatalf("changed to %q", out)
		}
	})
}

func BenchmarkStreamFilter(b *testing.B) {
	in := strings.Repeat(output("stdout", strings.Repeat("x", 8<<10)), 512) + end
	copyBuf := make([]byte, 32<<10)
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{strings.NewReader(in)}, copyBuf)
		}
	})
	b.Run("filter", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		b.ReportAllocs()
		for b.Loop() {
			f := interpreter.NewStreamFilter(io.NopCloser(strings.NewReader(in)), interpreter.StreamLimits{OutputBytes: 1 << 30}, nil)
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, copyBuf)
		}
	})
}

// shown collects what an observer is shown.
type shown struct{ text [4]strings.Builder }

func (s *shown) Output(to relay.Output, piece []byte) { s.text[to].Write(piece) }
func (s *shown) Missed(relay.Output, int64)           {}

func TestOutputIsShownDecoded(t *testing.T) {
	text := "hé \"quoted\" \\ / \n\t\r\b\f \x00 🚀 €"
	escaped := `"h\u00e9 \u0022quoted\" \\ \/ \n\t\r\b\f \u0000 \ud83d\ude80 \u20AC"`
	long := strings.Repeat("0123456789é", 1<<18)
	raw := `{"type": "stdout", "text": ` + escaped + `, "timestamp": "x"}` + "\n"
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
	} {
		t.Run(name, func(t *testing.T) {
			in := raw + output("stderr", text) + output("stderr", "") + end
			want := text
			if name == "at once" { // a line longer than may be held
				in, want = raw+output("stdout", long)+output("stderr", text)+end, text+long
			}
			var got shown
			f := interpreter.NewStreamFilter(&closer{Reader: reader(strings.NewReader(in))}, interpreter.StreamLimits{}, nil)
			f.Observe(&got)
			out, err := io.ReadAll(f)
			require.NoError(t, err)
			assert.Equal(t, in, string(out))
			assert.True(t, want == got.text[relay.Stdout].String())
			assert.Equal(t, text, got.text[relay.Stderr].String())
		})
	}
}

// What the limit keeps from the client was not shown to anybody.
func TestRefusedOutputIsNotShown(t *testing.T) {
	var got shown
	f := interpreter.NewStreamFilter(&closer{Reader: strings.NewReader(output("stdout", "abc") + output("stdout", "defgh") + end)}, interpreter.StreamLimits{OutputBytes: 5}, nil)
	f.Observe(&got)
	_, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, "abc", got.text[relay.Stdout].String())
}
