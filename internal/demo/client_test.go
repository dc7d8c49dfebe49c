package demo

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func frames(pairs ...any) string {
	var stream []byte
	for i := 0; i < len(pairs); i += 2 {
		flag, payload := pairs[i].(int), pairs[i+1].(string)
		stream = binary.BigEndian.AppendUint32(append(stream, byte(flag)), uint32(len(payload)))
		stream = append(stream, payload...)
	}
	return string(stream)
}

func TestReadStart(t *testing.T) {
	const (
		started = `{"event":{"start":{"pid":7}}}`
		hello   = `{"event":{"data":{"stdout":"aGVsbG8K"}}}`
		ended   = `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`
		killed  = `{"event":{"end":{"exitCode":-1,"status":"signal: CPU time limit exceeded"}}}`
		refused = `{"error":{"code":"permission_denied","message":"Blocked [e2bguard request x]"}}`
	)
	for name, tc := range map[string]struct {
		stream string
		want   answer
	}{
		"a command that ends well":       {frames(0, started, 0, hello, 0, ended, 2, "{}"), answer{pass, "hello"}},
		"a refusal before it started":    {frames(2, refused), answer{block, "permission_denied: Blocked [e2bguard request x]"}},
		"a refusal of somebody else's":   {frames(2, `{"error":{"code":"unknown","message":"no"}}`), answer{failed, "unknown: no"}},
		"a limit while it ran":           {frames(0, started, 0, hello, 2, refused), answer{stopped, "permission_denied: Blocked [e2bguard request x]"}},
		"a limit the system enforced":    {frames(0, started, 0, killed), answer{stopped, "(signal: CPU time limit exceeded)"}},
		"a keepalive changes nothing":    {frames(0, started, 0, `{"event":{"keepalive":{}}}`, 0, ended, 2, "{}"), answer{pass, ""}},
		"fields it does not know change": {frames(0, started, 0, hello, 0, ended, 2, `{"metadata":{}}`), answer{pass, "hello"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readStart(strings.NewReader(tc.stream))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}

	for name, stream := range map[string]string{
		"no frame at all":          "",
		"a frame cut short":        frames(0, started)[:9],
		"no end of the stream":     frames(0, started, 0, hello),
		"an event that is no JSON": frames(0, "{"),
	} {
		t.Run("an error: "+name, func(t *testing.T) {
			_, err := readStart(strings.NewReader(stream))
			require.Error(t, err)
		})
	}
}
