package envd

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

func runFrame(flags byte, payload string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(payload))), payload...)
}

func dataFrame(output, text string) []byte {
	return runFrame(0, `{"event":{"data":{"`+output+`":"`+base64.StdEncoding.EncodeToString([]byte(text))+`"}}}`)
}

// A frame may come in any pieces.
func TestRunReadsFramesHoweverTheyAreCut(t *testing.T) {
	var answer []byte
	for _, f := range [][]byte{
		runFrame(0, `{"event":{"start":{"pid":7}}}`), dataFrame("stdout", "out"), runFrame(0, `{"event":{"keepalive":{}}}`), dataFrame("stderr", "err"), dataFrame("stdout", "put"),
		runFrame(0, `{"event":{"end":{"exitCode":3,"exited":true,"status":"exit status 3"}}}`), runFrame(2, `{}`),
	} {
		answer = append(answer, f...)
	}
	for size := 1; size <= len(answer); size++ {
		got := map[relay.Output]string{}
		started := 0
		run := &Run{Started: func() { started++ }, Output: func(to relay.Output, piece []byte) error {
			got[to] += string(piece)
			return nil
		}}
		for rest := answer; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			piece := append([]byte(nil), rest[:min(size, len(rest))]...)
			n, err := run.Write(piece)
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
			clear(piece) // what was written must not be kept
		}
		require.Equal(t, map[relay.Output]string{relay.Stdout: "output", relay.Stderr: "err"}, got)
		require.Equal(t, 1, started)
		require.EqualValues(t, 7, run.PID)
		require.True(t, run.Ended && run.Exited && run.Complete)
		require.EqualValues(t, 3, run.ExitCode)
		require.Empty(t, run.Code)
	}
}

func TestRunTellsOfErrors(t *testing.T) {
	run := &Run{Output: func(relay.Output, []byte) error { return errors.New("the reader is gone") }}
	_, err := run.Write(dataFrame("stdout", "x"))
	require.ErrorContains(t, err, "the reader is gone")

	run = &Run{}
	_, err = run.Write(runFrame(2, `{"error":{"code":"deadline_exceeded","message":"too late"}}`))
	require.NoError(t, err)
	assert.Equal(t, []any{true, false, "deadline_exceeded", "too late"}, []any{run.Complete, run.Ended, run.Code, run.Message})

	run = &Run{}
	_, err = run.Write(runFrame(0, `{"event":{"end":{"exitCode":-1,"status":"signal: killed"}}}`))
	require.NoError(t, err)
	assert.True(t, run.Ended && !run.Exited)

	for name, answer := range map[string][]byte{
		"a frame larger than any": {0, 0x7f, 0xff, 0xff, 0xff}, "no JSON": runFrame(0, "x"), "not its type": runFrame(0, `{"event":{"start":{"pid":"x"}}}`),
	} {
		_, err := (&Run{}).Write(answer)
		require.Error(t, err, name)
	}
}
