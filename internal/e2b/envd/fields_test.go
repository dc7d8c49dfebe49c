package envd

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Millions of empty fields in a few megabytes would take a hundred times their
// size once they are decoded.
func TestMessagesOfManyFieldsAreNotDecoded(t *testing.T) {
	repeat := func(field []byte) []byte { return bytes.Repeat(field, strictjson.MaxValues+1) }
	inProcess := func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
	}
	args := inProcess(repeat([]byte{0x12, 0})) // process.args
	envs := inProcess(repeat([]byte{0x1a, 0})) // process.envs
	for name, payload := range map[string][]byte{
		"arguments": args, "variables": envs, "processes": repeat([]byte{0x0a, 0}), "unknown fields": repeat([]byte{0x7a, 0}),
		"unknown numbers": repeat([]byte{0x78, 0}), "in two parts": append(inProcess(bytes.Repeat([]byte{0x12, 0}, strictjson.MaxValues/2+1)), inProcess(bytes.Repeat([]byte{0x12, 0}, strictjson.MaxValues/2+1))...),
	} {
		allocs := testing.AllocsPerRun(1, func() {
			_, err := unmarshal(Proto, payload, new(processpb.StartRequest))
			require.ErrorContains(t, err, "more than 100000 fields", name)
		})
		require.Less(t, allocs, 100.0, name)
	}
	many := &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "x", Args: make([]string, 50_000)}}
	b, err := proto.Marshal(many)
	require.NoError(t, err)
	got := new(processpb.StartRequest)
	_, err = unmarshal(Proto, b, got)
	require.NoError(t, err)
	require.True(t, proto.Equal(many, got))
	for _, broken := range [][]byte{{0x0a}, {0x0a, 5, 1}, {0xff}, {0x0a, 1, 0xff}} {
		_, err := unmarshal(Proto, broken, new(processpb.StartRequest))
		require.ErrorContains(t, err, "reading protobuf", "the decoder says what is broken")
	}
}
