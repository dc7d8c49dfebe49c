package relay_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// words passes words that end in a space.
type words struct {
	stream *relay.Stream
	banned string
}

func (w *words) Scan(held []byte) (pass int, instead []byte) {
	for {
		i := bytes.IndexByte(held[pass:], ' ')
		if i < 0 {
			return pass, nil
		}
		switch string(held[pass : pass+i]) {
		case w.banned:
			w.stream.End(refusal.New(refusal.CodePolicy, "no"))
			return pass, nil
		case "edit":
			if pass > 0 {
				return pass, nil
			}
			return i + 1, []byte("EDITED ")
		case "drop":
			if pass > 0 {
				return pass, nil
			}
			return i + 1, []byte{}
		}
		pass += i + 1
	}
}

func (w *words) Finish(held []byte, err error) (int, []byte, error) {
	if r := w.stream.Pending(); r != nil {
		w.stream.End(r)
		return 0, nil, nil
	}
	if string(held) == "edit" {
		return len(held), []byte("EDITED"), err
	}
	if len(held) > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return 0, nil, err
}

func (w *words) Ending(r *refusal.Refusal) ([]byte, error) { return []byte("!" + r.Reason), io.EOF }

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestUnitsPassWholeAndInOrder(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for in, want := range map[string]struct {
		out string
		err error
	}{
		"a bc d ":              {"a bc d ", nil},
		"a bc d":               {"a bc ", io.ErrUnexpectedEOF},
		"":                     {"", nil},
		"a stop b ":            {"a !no", nil},
		"stop ":                {"!no", nil},
		long + " b " + long:    {long + " b ", io.ErrUnexpectedEOF},
		long + " stop " + long: {long + " !no", nil},
	} {
		for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
			src := &body{Reader: reader(strings.NewReader(in))}
			w := &words{banned: "stop"}
			w.stream = relay.NewStream(src, w)
			out, err := io.ReadAll(w.stream)
			require.ErrorIs(t, err, want.err)
			assert.True(t, want.out == string(out), "%.50q", in)
			assert.Equal(t, strings.Contains(want.out, "!"), src.closed)
		}
	}
}

func TestCutDropsTheUnitInFlight(t *testing.T) {
	pr, pw := io.Pipe()
	w := &words{}
	w.stream = relay.NewStream(pr, w)
	go func() {
		_, _ = io.WriteString(pw, "a hal")
		w.stream.Cut(refusal.New(refusal.CodeWallClock, "first"))
		w.stream.Cut(refusal.New(refusal.CodeWallClock, "second"))
	}()
	out, err := io.ReadAll(w.stream)
	require.NoError(t, err)
	assert.Equal(t, "a !first", string(out))
}
