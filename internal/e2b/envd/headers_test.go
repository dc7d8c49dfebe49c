package envd

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

func messageOf(t testing.TB, path string, m proto.Message) *Message {
	t.Helper()
	method := methodOf(t, path)
	return &Message{Method: method, Encoding: Encoding{Codec: JSON, Stream: method.Kind != Unary}, Proto: m}
}

func TestTimeoutIsBounded(t *testing.T) {
	limits := Deadlines{WallClock: time.Minute, Background: time.Hour, PTY: 2 * time.Hour}
	command := start("/bin/bash")
	terminal := &processpb.StartRequest{Process: command.GetProcess(), Pty: &processpb.PTY{}}
	tests := map[string]struct {
		msg     proto.Message
		path    string
		sent    string
		told    string
		clamped bool
		code    refusal.Code
	}{
		"shorter than the limit":      {sent: "5000", told: "5000"},
		"longer than the limit":       {sent: "3600000", told: "60000", clamped: true},
		"none is background":          {told: "3600000", clamped: true},
		"terminal without":            {msg: terminal, told: "7200000", clamped: true},
		"terminal with":               {msg: terminal, sent: "60000", told: "60000"},
		"zero would run unseen":       {sent: "0", code: refusal.CodeDeadline},
		"negative":                    {sent: "-1", code: refusal.CodeInvalid},
		"garbage":                     {sent: "1m", code: refusal.CodeInvalid},
		"eleven digits":               {sent: "10000000000", code: refusal.CodeInvalid},
		"leading zeros, eleven":       {sent: "00000000001", code: refusal.CodeInvalid},
		"attaching is not limited":    {path: "/process.Process/Connect", msg: &processpb.ConnectRequest{}},
		"attaching keeps a timeout":   {path: "/process.Process/Connect", msg: &processpb.ConnectRequest{}, sent: "9000000", told: "9000000"},
		"zero on a unary call":        {path: statPath, msg: &filesystempb.StatRequest{}, sent: "0", code: refusal.CodeDeadline},
		"plus sign is written plain":  {sent: "+5000", told: "5000"},
		"leading zeros are no matter": {sent: "0000005000", told: "5000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.msg == nil {
				tt.msg = command
			}
			if tt.path == "" {
				tt.path = startPath
			}
			h := http.Header{}
			if tt.sent != "" {
				h.Set("Connect-Timeout-Ms", tt.sent)
			}
			changes, r := SanitiseHeaders(messageOf(t, tt.path, tt.msg), h, limits)
			if tt.code != "" {
				require.NotNil(t, r)
				assert.Equal(t, tt.code, r.Code)
				return
			}
			require.Nil(t, r)
			assert.Equal(t, tt.told, h.Get("Connect-Timeout-Ms"))
			assert.Equal(t, tt.clamped, changes.Clamped)
		})
	}
}

func TestTimeoutIsNotSetWithoutLimits(t *testing.T) {
	h := http.Header{}
	changes, r := SanitiseHeaders(messageOf(t, startPath, start("a")), h, Deadlines{})
	require.Nil(t, r)
	assert.Empty(t, h.Values("Connect-Timeout-Ms"))
	assert.Zero(t, changes)
}

// A keepalive of 0 or less ends the whole daemon of the sandbox.
func TestKeepaliveIsSane(t *testing.T) {
	for sent, told := range map[string]string{
		"50": "50", "0": "", "-5": "", "x": "", "": "", "1": "1", "86400": "90", "99999999999999999999": "", " 5": "",
	} {
		h := http.Header{"Keepalive-Ping-Interval": {sent}}
		_, r := SanitiseHeaders(messageOf(t, startPath, start("a")), h, Deadlines{})
		require.Nil(t, r)
		assert.Equal(t, told, h.Get("Keepalive-Ping-Interval"), "sent %q", sent)
	}
	h := http.Header{"Keepalive-Ping-Interval": {"50"}}
	_, r := SanitiseHeaders(messageOf(t, statPath, &filesystempb.StatRequest{}), h, Deadlines{})
	require.Nil(t, r)
	assert.Empty(t, h.Values("Keepalive-Ping-Interval"))
}

func TestHeadersFitCanonicalBody(t *testing.T) {
	h := http.Header{
		"Content-Type": {"Application/Connect+JSON; charset=utf-8"}, "Content-Encoding": {"identity"}, "Connect-Content-Encoding": {"gzip"},
		"Connect-Accept-Encoding": {"gzip"}, "Content-Length": {"7"}, "Grpc-Timeout": {"1S"}, "Te": {"trailers"},
		"Connect-Protocol-Version": {"1", "1"}, "X-Access-Token": {"keep"}, "Accept-Encoding": {"gzip, deflate"},
	}
	_, r := SanitiseHeaders(messageOf(t, startPath, start("a")), h, Deadlines{})
	require.Nil(t, r)
	assert.Equal(t, http.Header{
		"Content-Type": {"application/connect+json"}, "Connect-Protocol-Version": {"1"},
		"X-Access-Token": {"keep"}, "Accept-Encoding": {"gzip, deflate"},
	}, h)
}

// The first value of a repeated header wins in the sandbox: two that differ could
// show the gateway one thing and do another.
func TestRepeatedHeadersMustAgree(t *testing.T) {
	for _, name := range []string{"Connect-Timeout-Ms", "Keepalive-Ping-Interval", "Authorization", "Connect-Content-Encoding"} {
		_, r := Classify(methodOf(t, startPath), http.Header{"Content-Type": {jsonType}, name: {"a", "b"}})
		require.NotNil(t, r, name)
		assert.Equal(t, refusal.CodeInvalid, r.Code)
		assert.Contains(t, r.Reason, name)
	}
	_, r := Classify(methodOf(t, startPath), http.Header{"Content-Type": {jsonType}, "Connect-Timeout-Ms": {"5", "5"}})
	assert.Nil(t, r)
}
