package envd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(t testing.TB, c Codec, e *processpb.ProcessEvent) string {
	t.Helper()
	b, err := marshal(c, &processpb.StartResponse{Event: e}, nil)
	require.NoError(t, err)
	return frameOf(0, string(b))
}

func startEvent(t testing.TB, c Codec, pid uint32) string {
	return event(t, c, &processpb.ProcessEvent{Event: &processpb.ProcessEvent_Start{Start: &processpb.ProcessEvent_StartEvent{Pid: pid}}})
}

func outputEvent(t testing.TB, c Codec, out string) string {
	return event(t, c, &processpb.ProcessEvent{Event: &processpb.ProcessEvent_Data{Data: &processpb.ProcessEvent_DataEvent{
		Output: &processpb.ProcessEvent_DataEvent_Stdout{Stdout: []byte(out)},
	}}})
}

func endEvent(t testing.TB, c Codec, code int32) string {
	return event(t, c, &processpb.ProcessEvent{Event: &processpb.ProcessEvent_End{End: &processpb.ProcessEvent_EndEvent{
		ExitCode: code, Exited: true, Status: fmt.Sprintf("exit status %d", code),
	}}})
}

func keepalive(t testing.TB, c Codec) string {
	return event(t, c, &processpb.ProcessEvent{Event: &processpb.ProcessEvent_Keepalive{Keepalive: &processpb.ProcessEvent_KeepAlive{}}})
}

func encodingOf(c Codec) Encoding { return Encoding{Codec: c, Stream: true} }

// closer notes whether the upstream body was closed.
type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

func TestStreamPassesByteForByte(t *testing.T) {
	for _, c := range []Codec{JSON, Proto} {
		long := strings.Repeat("x", 32<<10)
		in := startEvent(t, c, 55) + outputEvent(t, c, "hi\n") + keepalive(t, c) + outputEvent(t, c, long) + outputEvent(t, c, "") + endEvent(t, c, 3) + frameOf(2, "{}")
		readers := map[string]func(string) io.Reader{
			"at once":      func(s string) io.Reader { return strings.NewReader(s) },
			"byte by byte": func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
			"halves":       func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
			"eof at once":  func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
		}
		for name, reader := range readers {
			t.Run(c.String()+" "+name, func(t *testing.T) {
				var seen []Event
				f := NewStreamFilter(&closer{Reader: reader(in)}, encodingOf(c), StreamLimits{OutputBytes: 1 << 20}, func(e Event) { seen = append(seen, e) })
				out, err := io.ReadAll(f)
				require.NoError(t, err)
				assert.Equal(t, in, string(out))
				assert.Equal(t, []Event{
					{Kind: EventStart, PID: 55},
					{Kind: EventEnd, ExitCode: 3, Status: "exit status 3"},
					{Kind: EventEndStream},
				}, seen)
				assert.EqualValues(t, 3+len(long), f.OutputBytes())
			})
		}
	}
}

// Output arrives as it is written, not when a buffer is full:
// corazawaf/coraza-caddy#263.
func TestStreamDoesNotHoldFramesBack(t *testing.T) {
	r, w := io.Pipe()
	f := NewStreamFilter(r, encodingOf(JSON), StreamLimits{}, nil)
	buf := make([]byte, 4096)
	for _, frame := range []string{startEvent(t, JSON, 1), outputEvent(t, JSON, "a"), outputEvent(t, JSON, "b")} {
		done := make(chan struct{})
		go func() { defer close(done); _, _ = io.WriteString(w, frame) }()
		n, err := f.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, frame, string(buf[:n]))
		<-done
	}
	require.NoError(t, f.Close())
}

// A filter that ends a stream must not make it look like a success:
// e2b-dev/infra#3281.
func TestStreamEndsAtOutputLimit(t *testing.T) {
	for _, c := range []Codec{JSON, Proto} {
		t.Run(c.String(), func(t *testing.T) {
			passed := startEvent(t, c, 1) + outputEvent(t, c, strings.Repeat("a", 60)) + keepalive(t, c) + outputEvent(t, c, strings.Repeat("b", 40))
			src := &closer{Reader: strings.NewReader(passed + outputEvent(t, c, "c") + endEvent(t, c, 0) + frameOf(2, "{}"))}
			var kinds []EventKind
			f := NewStreamFilter(src, encodingOf(c), StreamLimits{OutputBytes: 100, RequestID: "r1"}, func(e Event) { kinds = append(kinds, e.Kind) })
			out, err := io.ReadAll(f)
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(out, []byte(passed)))
			end := out[len(passed):]
			require.EqualValues(t, flagEndStream, end[0])
			assert.Len(t, end, frameHeader+int(end[4])|int(end[3])<<8+0, "one frame and nothing behind it")
			var body struct {
				Error struct{ Code, Message string }
			}
			require.NoError(t, json.Unmarshal(end[frameHeader:], &body))
			assert.Equal(t, "aborted", body.Error.Code)
			assert.Contains(t, body.Error.Message, "100 bytes")
			assert.Contains(t, body.Error.Message, "r1")
			assert.Equal(t, []EventKind{EventStart, EventLimit}, kinds)
			assert.True(t, src.closed)
			assert.EqualValues(t, 100, f.OutputBytes())
		})
	}
}

// A stream that breaks off upstream breaks off for the client too:
// e2b-dev/E2B#921, opensandbox-group/OpenSandbox#1206.
func TestStreamTruncationStaysTruncation(t *testing.T) {
	whole := startEvent(t, JSON, 1) + outputEvent(t, JSON, "abc")
	broken := errors.New("connection reset")
	for name, tt := range map[string]struct {
		in   io.Reader
		want error
	}{
		"in a frame":         {strings.NewReader(whole + outputEvent(t, JSON, "def")[:9]), io.ErrUnexpectedEOF},
		"in a header":        {strings.NewReader(whole + "\x00\x00"), io.ErrUnexpectedEOF},
		"between frames":     {strings.NewReader(whole), io.ErrUnexpectedEOF},
		"before any":         {strings.NewReader(""), io.ErrUnexpectedEOF},
		"with an error":      {io.MultiReader(strings.NewReader(whole), iotest.ErrReader(broken)), broken},
		"in a huge frame":    {strings.NewReader(outputEvent(t, JSON, strings.Repeat("x", 1<<20))[:500_000]), io.ErrUnexpectedEOF},
		"in a frame's error": {io.MultiReader(strings.NewReader(whole+"\x00"), iotest.ErrReader(broken)), broken},
	} {
		t.Run(name, func(t *testing.T) {
			var last Event
			f := NewStreamFilter(&closer{Reader: tt.in}, encodingOf(JSON), StreamLimits{}, func(e Event) { last = e })
			out, err := io.ReadAll(f)
			require.ErrorIs(t, err, tt.want)
			assert.Equal(t, Event{Kind: EventAborted, Err: tt.want}, last)
			assert.Zero(t, bytes.Count(out, []byte("\x02\x00\x00")), "no end-of-stream frame is made up")
			_, err = f.Read(make([]byte, 8))
			require.ErrorIs(t, err, tt.want, "the error stays")
		})
	}
}

// A frame larger than the buffer is passed on, counted and not held.
func TestStreamPassesHugeFrame(t *testing.T) {
	const size = 3 << 20
	for _, c := range []Codec{JSON, Proto} {
		t.Run(c.String(), func(t *testing.T) {
			in := startEvent(t, c, 1) + outputEvent(t, c, strings.Repeat("x", size)) + outputEvent(t, c, "y") + frameOf(2, "{}")
			f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(c), StreamLimits{OutputBytes: size + 100}, nil)
			out, err := io.ReadAll(f)
			require.NoError(t, err)
			assert.Equal(t, in, string(out))
			assert.InDelta(t, size+1, f.OutputBytes(), 16)
			assert.LessOrEqual(t, f.Size(), maxStreamBuffer)

			f = NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(c), StreamLimits{OutputBytes: size - 100}, nil)
			out, err = io.ReadAll(f)
			require.NoError(t, err)
			assert.True(t, bytes.HasPrefix(out, []byte(startEvent(t, c, 1)+"\x02")), "refused before its first byte")
		})
	}
}

func TestStreamShowsUpstreamError(t *testing.T) {
	in := frameOf(2, `{"error":{"code":"deadline_exceeded","message":"late"}}`)
	var got Event
	f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(JSON), StreamLimits{}, func(e Event) { got = e })
	out, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, in, string(out))
	assert.Equal(t, Event{Kind: EventEndStream, Code: "deadline_exceeded", Message: "late"}, got)
}

// A deadline of the policy's is not told as the client's own, which the SDK would
// advise to raise.
func TestWallClockIsToldInOurWords(t *testing.T) {
	passed := startEvent(t, JSON, 1)
	in := passed + frameOf(2, `{"error":{"code":"deadline_exceeded","message":"late"}}`)
	var kinds []EventKind
	f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(JSON), StreamLimits{WallClock: time.Minute, RequestID: "r1"}, func(e Event) { kinds = append(kinds, e.Kind) })
	out, err := io.ReadAll(f)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(out, []byte(passed)))
	assert.Equal(t, []EventKind{EventStart, EventWallClock}, kinds)
	assert.Contains(t, string(out), `"code":"aborted"`)
	assert.Contains(t, string(out), "1m0s")
	assert.NotContains(t, string(out), "deadline_exceeded")
}

func TestStreamPassesOtherServices(t *testing.T) {
	in := frameOf(0, `{"start":{}}`) + frameOf(0, `{"filesystem":{"name":"a","type":"EVENT_TYPE_CREATE"}}`) + frameOf(0, "not json") + frameOf(2, "{}")
	f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(JSON), StreamLimits{OutputBytes: 1}, nil)
	out, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, in, string(out))
	assert.Zero(t, f.OutputBytes())
}

// Compressed frames are not asked for; if they come they are not free.
func TestStreamCountsCompressedFrames(t *testing.T) {
	in := frameOf(1, strings.Repeat("z", 50)) + frameOf(2, "{}")
	f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(JSON), StreamLimits{OutputBytes: 49}, nil)
	out, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.EqualValues(t, flagEndStream, out[0])
}

func TestCutEndsStreamInErrorFrame(t *testing.T) {
	r, w := io.Pipe()
	f := NewStreamFilter(r, encodingOf(JSON), StreamLimits{}, nil)
	first := startEvent(t, JSON, 9)
	var writer sync.WaitGroup
	writer.Go(func() {
		_, err := io.WriteString(w, first+outputEvent(t, JSON, "half")[:10])
		assert.NoError(t, err)
	})
	buf := make([]byte, 4096)
	n, err := f.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, first, string(buf[:n]))

	timer := time.AfterFunc(10*time.Millisecond, func() {
		f.Cut(refusal.New(refusal.CodeWallClock, "out of time"))
		f.Cut(refusal.New(refusal.CodePolicy, "second"))
	})
	defer timer.Stop()
	rest, err := io.ReadAll(f)
	require.NoError(t, err)
	writer.Wait()
	require.NotEmpty(t, rest)
	assert.EqualValues(t, flagEndStream, rest[0])
	assert.Contains(t, string(rest), "out of time")
	assert.NotContains(t, string(rest), "second")
}

func TestCutAfterTheEndChangesNothing(t *testing.T) {
	in := startEvent(t, JSON, 9) + frameOf(2, "{}")
	f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(JSON), StreamLimits{}, nil)
	buf := make([]byte, len(in))
	_, err := io.ReadFull(f, buf)
	require.NoError(t, err)
	f.Cut(refusal.New(refusal.CodeWallClock, "late"))
	rest, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Empty(t, rest)
}

func TestIsStream(t *testing.T) {
	for _, tt := range []struct {
		status int
		ct     string
		want   bool
	}{
		{200, "application/connect+json", true},
		{200, "Application/connect+json; charset=utf-8", true},
		{200, "application/connect+proto", false},
		{200, "application/json", false},
		{415, "application/connect+json", false},
		{200, "", false},
	} {
		assert.Equal(t, tt.want, IsStream(tt.status, http.Header{"Content-Type": {tt.ct}}, encodingOf(JSON)), "%d %s", tt.status, tt.ct)
	}
}

func TestPeekCountsDecodedBytes(t *testing.T) {
	for n := range 70 {
		text := strings.Repeat("é", n)
		for _, kind := range []string{"stdout", "stderr", "pty"} {
			for _, space := range []string{"", " ", "\n\t"} {
				payload := strings.NewReplacer("_", space).Replace(`_{_"event"_:_{_"data"_:_{_"` + kind + `"_:_"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"_}_}_}`)
				p := peek(JSON, 0, []byte(payload), int64(len(payload)))
				require.Equal(t, frameOutput, p.kind, payload)
				require.EqualValues(t, len(text), p.size, payload)
			}
		}
	}
}

// seen collects what an observer is shown.
type seen struct {
	text   [4]strings.Builder
	missed int64
}

func (s *seen) Output(to relay.Output, piece []byte) { s.text[to].Write(piece) }
func (s *seen) Missed(_ relay.Output, n int64)       { s.missed += n }

func TestStreamShowsOutputDecoded(t *testing.T) {
	long := strings.Repeat("0123456789\x00\xff\n", 3000)
	for _, c := range []Codec{JSON, Proto} {
		t.Run(c.String(), func(t *testing.T) {
			in := startEvent(t, c, 1) + outputEvent(t, c, "a") + outputEvent(t, c, long) + outputEvent(t, c, "") + endEvent(t, c, 0) + frameOf(2, "{}")
			var got seen
			f := NewStreamFilter(&closer{Reader: iotest.OneByteReader(strings.NewReader(in))}, encodingOf(c), StreamLimits{}, nil)
			f.Observe(&got)
			out, err := io.ReadAll(f)
			require.NoError(t, err)
			assert.Equal(t, in, string(out))
			assert.Equal(t, "a"+long, got.text[relay.Stdout].String())
			assert.Zero(t, got.missed)

			got = seen{}
			in = outputEvent(t, c, strings.Repeat("x", 1<<20)) + frameOf(2, "{}")
			f = NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(c), StreamLimits{}, nil)
			f.Observe(&got)
			_, err = io.ReadAll(f)
			require.NoError(t, err)
			assert.InDelta(t, 1<<20, got.missed, 16, "a frame too large to be held is told as missed")
		})
	}
}

func TestStreamTellsOutputsApart(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString([]byte("hi"))
	in := ""
	for _, kind := range []string{"stdout", "stderr", "pty"} {
		in += frameOf(0, `{"event":{"data":{"`+kind+`":"`+b64+`"}}}`)
	}
	in += frameOf(0, `{"event":{"data":{"stdout":"!not base64!"}}}`) + frameOf(2, "{}")
	var got seen
	f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(JSON), StreamLimits{}, nil)
	f.Observe(&got)
	_, err := io.ReadAll(f)
	require.NoError(t, err)
	for _, to := range []relay.Output{relay.Stdout, relay.Stderr, relay.PTY} {
		assert.Equal(t, "hi", got.text[to].String())
	}
	assert.Positive(t, got.missed, "what cannot be decoded")
}

func FuzzStreamFilter(f *testing.F) {
	f.Add(false, int64(10), []byte(startEvent(f, JSON, 1)+outputEvent(f, JSON, "hello world")+frameOf(2, "{}")))
	f.Add(true, int64(0), []byte(startEvent(f, Proto, 1)+outputEvent(f, Proto, "hello world")+endEvent(f, Proto, 2)+frameOf(2, "{}")))
	f.Add(false, int64(0), []byte("\x00\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, binary bool, limit int64, in []byte) {
		enc := encodingOf(JSON)
		if binary {
			enc = encodingOf(Proto)
		}
		limited := false
		on := func(e Event) { limited = limited || e.Kind == EventLimit }
		out, err := io.ReadAll(NewStreamFilter(&closer{Reader: bytes.NewReader(in)}, enc, StreamLimits{OutputBytes: limit}, on))
		again, errAgain := io.ReadAll(iotest.OneByteReader(NewStreamFilter(&closer{Reader: iotest.OneByteReader(bytes.NewReader(in))}, enc, StreamLimits{OutputBytes: limit}, nil)))
		if !bytes.Equal(out, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("the answer depends on how the bytes arrive: %q (%v), %q (%v)", out, err, again, errAgain)
		}
		if !limited && !bytes.HasPrefix(in, out) {
			t.Fatalf("%q was made up", out)
		}
		if err == nil && !limited && len(out) != len(in) {
			t.Fatal("bytes were lost without an error")
		}
	})
}

func BenchmarkStreamFilter(b *testing.B) {
	for _, c := range []Codec{JSON, Proto} {
		var in bytes.Buffer
		for range 256 {
			in.WriteString(outputEvent(b, c, strings.Repeat("x", 32<<10)))
		}
		in.WriteString(frameOf(2, "{}"))
		copyBuf := make([]byte, 32<<10)
		b.Run(c.String()+"/copy", func(b *testing.B) {
			b.SetBytes(int64(in.Len()))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{bytes.NewReader(in.Bytes())}, copyBuf)
			}
		})
		b.Run(c.String()+"/filter", func(b *testing.B) {
			b.SetBytes(int64(in.Len()))
			b.ReportAllocs()
			for b.Loop() {
				f := NewStreamFilter(io.NopCloser(bytes.NewReader(in.Bytes())), encodingOf(c), StreamLimits{OutputBytes: 1 << 30}, nil)
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, copyBuf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
