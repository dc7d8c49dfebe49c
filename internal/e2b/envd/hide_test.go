package envd

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/redact"
)

const planted = "sk_live_PLANTED0123456789abcdef"

var plantedSet = redact.NewSet(false, redact.NewSecret(planted))

func dataEvent(t testing.TB, c Codec, to relay.Output, out string) string {
	data := &processpb.ProcessEvent_DataEvent{Output: &processpb.ProcessEvent_DataEvent_Stdout{Stdout: []byte(out)}}
	switch to {
	case relay.Stderr:
		data.Output = &processpb.ProcessEvent_DataEvent_Stderr{Stderr: []byte(out)}
	case relay.PTY:
		data.Output = &processpb.ProcessEvent_DataEvent_Pty{Pty: []byte(out)}
	}
	return event(t, c, &processpb.ProcessEvent{Event: &processpb.ProcessEvent_Data{Data: data}})
}

// outputs decodes a stream's frames into what each output was, and checks that
// each frame is one.
func outputs(t testing.TB, c Codec, stream string) (texts [relay.PTY + 1]string, kinds string) {
	t.Helper()
	for rest := stream; rest != ""; {
		require.GreaterOrEqual(t, len(rest), frameHeader)
		size := int(binary.BigEndian.Uint32([]byte(rest[1:])))
		payload := []byte(rest[frameHeader : frameHeader+size])
		flags := rest[0]
		rest = rest[frameHeader+size:]
		if flags&flagEndStream != 0 {
			kinds += "!"
			continue
		}
		var m processpb.StartResponse
		_, err := unmarshal(c, payload, &m)
		require.NoError(t, err)
		switch e := m.GetEvent().GetEvent().(type) {
		case *processpb.ProcessEvent_Data:
			texts[relay.Stdout] += string(e.Data.GetStdout())
			texts[relay.Stderr] += string(e.Data.GetStderr())
			texts[relay.PTY] += string(e.Data.GetPty())
			kinds += "d"
		case *processpb.ProcessEvent_End:
			kinds += "e"
		default:
			kinds += "o"
		}
	}
	return texts, kinds
}

func hidden(t testing.TB, c Codec, set *redact.Set, in io.Reader) (out string, shown *seen, err error) {
	t.Helper()
	shown = new(seen)
	f := NewStreamFilter(&closer{Reader: in}, encodingOf(c), StreamLimits{}, nil)
	f.Observe(shown)
	f.Hide(set)
	b, err := io.ReadAll(f)
	return string(b), shown, err
}

// OpenHands/agent-canvas#1049, mastra-ai/mastra#21049: a secret split over the
// frames of a stream, with the other output in between, was not hidden.
func TestStreamHidesSecretsSplitOverFrames(t *testing.T) {
	for _, c := range []Codec{JSON, Proto} {
		for split := range len(planted) + 1 {
			in := startEvent(t, c, 7) +
				dataEvent(t, c, relay.Stdout, "key="+planted[:split]) +
				dataEvent(t, c, relay.Stderr, "warning\n"+planted[:split/2]) + keepalive(t, c) +
				dataEvent(t, c, relay.Stdout, planted[split:]+"\n") +
				dataEvent(t, c, relay.Stderr, planted[split/2:]+"\n") +
				endEvent(t, c, 0) + frameOf(2, "{}")
			out, shown, err := hidden(t, c, plantedSet, iotest.HalfReader(strings.NewReader(in)))
			require.NoError(t, err)
			texts, kinds := outputs(t, c, out)
			for to, before := range map[relay.Output]string{relay.Stdout: "key=", relay.Stderr: "warning\n"} {
				given := strings.TrimSuffix(strings.TrimPrefix(texts[to], before), "<secret:known>\n")
				assert.LessOrEqual(t, len(given), 3, "split at %d: %q", split, texts[to])
				assert.Equal(t, texts[to], shown.text[to].String())
			}
			assert.True(t, strings.HasSuffix(kinds, "e!"), kinds)
		}
	}
}

func TestStreamHidesASecretThatComesByteByByte(t *testing.T) {
	for _, c := range []Codec{JSON, Proto} {
		var in strings.Builder
		for i := range len(planted) {
			in.WriteString(outputEvent(t, c, planted[i:i+1]))
		}
		out, _, err := hidden(t, c, plantedSet, strings.NewReader(in.String()+frameOf(2, "{}")))
		require.NoError(t, err)
		texts, _ := outputs(t, c, out)
		assert.Equal(t, planted[:3]+"<secret:known>", texts[relay.Stdout])
	}
}

func TestStreamWithHarmlessOutputPassesByteForByte(t *testing.T) {
	for _, c := range []Codec{JSON, Proto} {
		in := startEvent(t, c, 7) + outputEvent(t, c, "sk_") + outputEvent(t, c, "") + dataEvent(t, c, relay.PTY, "\x1b[1m\xff\x00") +
			keepalive(t, c) + outputEvent(t, c, strings.Repeat("benign ", 4000)) + endEvent(t, c, 1) + frameOf(2, `{"error":{"code":"x"}}`)
		for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
			out, shown, err := hidden(t, c, plantedSet, reader(strings.NewReader(in)))
			require.NoError(t, err)
			assert.Equal(t, in, out)
			assert.Equal(t, "sk_"+strings.Repeat("benign ", 4000), shown.text[relay.Stdout].String())
		}
	}
}

func TestHeldOutputComesBeforeTheEnd(t *testing.T) {
	for _, c := range []Codec{JSON, Proto} {
		half := planted[:10]
		start := startEvent(t, c, 7) + outputEvent(t, c, "x "+half)
		for name, cse := range map[string]struct {
			rest, kinds string
			err         error
		}{
			"end event":           {endEvent(t, c, 0) + frameOf(2, "{}"), "odde!", nil},
			"end of stream alone": {frameOf(2, "{}"), "odd!", nil},
			"broken off":          {"", "odd", io.ErrUnexpectedEOF},
		} {
			out, _, err := hidden(t, c, plantedSet, strings.NewReader(start+cse.rest))
			require.ErrorIs(t, err, cse.err, name)
			texts, kinds := outputs(t, c, out)
			assert.Equal(t, "x "+half, texts[relay.Stdout], name)
			assert.Equal(t, cse.kinds, kinds, name)
		}
	}
}

func TestCutStreamGivesOutWhatIsHeld(t *testing.T) {
	f := NewStreamFilter(&closer{Reader: io.MultiReader(strings.NewReader(outputEvent(t, JSON, planted[:10])), iotest.ErrReader(errors.New("closed")))}, encodingOf(JSON), StreamLimits{}, nil)
	f.Hide(plantedSet)
	f.Cut(refusal.New(refusal.CodeWallClock, "over"))
	out, err := io.ReadAll(f)
	require.NoError(t, err)
	_, kinds := outputs(t, JSON, string(out))
	assert.Equal(t, "!", kinds)
}

func TestErrorThatEndsAStreamHidesSecrets(t *testing.T) {
	out, _, err := hidden(t, JSON, plantedSet, strings.NewReader(frameOf(2, `{"error":{"code":"internal","message":"no such file: /x/`+planted+`"}}`)))
	require.NoError(t, err)
	assert.Equal(t, frameOf(2, `{"error":{"code":"internal","message":"no such file: /x/<secret:known>"}}`), out)
}

func TestOutputThatCannotBeReadEndsAStreamThatHides(t *testing.T) {
	for name, in := range map[string]string{
		"compressed":     frameOf(1, "anything"),
		"no base64":      frameOf(0, `{"event":{"data":{"stdout":"%%%%"}}}`),
		"too large":      outputEvent(t, JSON, strings.Repeat("x", maxStreamBuffer)),
		"base64 in JSON": frameOf(0, `{"event":{"data":{"stdout":"`+base64.RawStdEncoding.EncodeToString([]byte("x"))+`"}}}`),
	} {
		out, _, err := hidden(t, JSON, plantedSet, strings.NewReader(in+frameOf(2, "{}")))
		require.NoError(t, err, name)
		assert.Contains(t, out, "look for secrets", name)
	}
}

func BenchmarkStreamFilterHides(b *testing.B) {
	for _, c := range []Codec{JSON, Proto} {
		frame := outputEvent(b, c, strings.Repeat("2026-01-02 INFO nothing to hide here\n", 800))
		for name, set := range map[string]*redact.Set{"plain": redact.NewSet(false), "hiding": plantedSet} {
			b.Run(c.String()+"/"+name, func(b *testing.B) {
				in := strings.Repeat(frame, 100)
				b.SetBytes(int64(len(in)))
				b.ReportAllocs()
				for b.Loop() {
					f := NewStreamFilter(&closer{Reader: strings.NewReader(in)}, encodingOf(c), StreamLimits{}, nil)
					f.Hide(set)
					_, _ = io.Copy(io.Discard, f)
				}
			})
		}
	}
}
