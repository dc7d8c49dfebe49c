package control

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSandboxesReadsEveryAnswer(t *testing.T) {
	end := time.Date(2026, 11, 30, 18, 0, 0, 500_000_000, time.UTC)
	tests := map[string]struct {
		body string
		want []SandboxInfo
	}{
		"create": {`{"clientID":"6532622b","domain":null,"envdAccessToken":"ea_1","envdVersion":"0.6.13","sandboxID":"i1","templateID":"base"}` + "\n",
			[]SandboxInfo{{ID: "i1", TemplateID: "base", EnvdToken: "ea_1"}}},
		"create with a traffic token and a domain": {`{"sandboxID":"i1","templateID":"base","domain":"byoc.example","trafficAccessToken":"ta_1"}`,
			[]SandboxInfo{{ID: "i1", TemplateID: "base", Domain: "byoc.example", TrafficToken: "ta_1"}}},
		"info": {`{"sandboxID":"i1","endAt":"2026-11-30T18:00:00.5Z","state":"running","cpuCount":2}`,
			[]SandboxInfo{{ID: "i1", EndAt: end}}},
		"list": {`[{"sandboxID":"i1"},{"sandboxID":"i2"}]`,
			[]SandboxInfo{{ID: "i1"}, {ID: "i2"}}},
		"empty list": {`[]`, nil},
		"fork, one failed": {`[{"sandbox":{"sandboxID":"i1","envdAccessToken":"ea_1"}},{"error":{"code":500,"message":"x"}},{"sandbox":{"sandboxID":"i2"},"error":null}]`,
			[]SandboxInfo{{ID: "i1", EnvdToken: "ea_1"}, {ID: "i2"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeAnswer([]byte(tt.body))
			require.NoError(t, err)
			assert.Equal(t, tt.want, got.Sandboxes())
			assert.JSONEq(t, tt.body, string(got.Encode()), "what is not edited must not change")
		})
	}
	for body, want := range map[string]string{
		``:                                  "empty",
		`<html>`:                            "reading JSON",
		`"x"`:                               "is a string, not an object",
		`[1]`:                               "is a number, not an object",
		`{}`:                                "there is no sandboxID",
		`[{}]`:                              "there is no sandboxID",
		`{"sandboxID":1}`:                   "sandboxID is a number",
		`[{"sandbox":"x"}]`:                 "is a string, not an object",
		`{"sandboxID":"a","sandboxID":"b"}`: "appears twice",
		`{"sandboxID":"a","endAt":"soon"}`:  "endAt",
	} {
		_, err := DecodeAnswer([]byte(body))
		require.ErrorContains(t, err, want, body)
	}
}

func TestSetDomainReachesEverySandbox(t *testing.T) {
	for body, want := range map[string]string{
		`{"sandboxID":"i1","domain":null,"memoryMB":12345678901234567890}`: `{"sandboxID":"i1","domain":"gw.example","memoryMB":12345678901234567890}`,
		`{"sandboxID":"i1"}`: `{"sandboxID":"i1","domain":"gw.example"}`,
		`[{"sandbox":{"sandboxID":"i1","domain":"byoc.example"}},{"error":{"code":500}}]`: `[{"sandbox":{"sandboxID":"i1","domain":"gw.example"}},{"error":{"code":500}}]`,
	} {
		a, err := DecodeAnswer([]byte(body))
		require.NoError(t, err)
		a.SetDomain("gw.example")
		assert.Equal(t, want, string(a.Encode()))
	}
}
