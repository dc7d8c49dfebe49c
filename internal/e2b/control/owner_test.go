package control

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

func toStamp(t *testing.T, body string) Message {
	t.Helper()
	m, ref := Decode(route.Target{Row: route.Row{Operation: route.SandboxCreate, Pattern: createV2}}, []byte(body))
	require.Nil(t, ref)
	return m
}

func TestStampNamesTheOwner(t *testing.T) {
	for body, want := range map[string]string{
		`{"templateID":"base"}`:                                    `{"templateID":"base","metadata":{"e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"}}`,
		`{"templateID":"base","metadata":null}`:                    `{"templateID":"base","metadata":{"e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"}}`,
		`{"metadata":{"purpose":"x"},"templateID":"base"}`:         `{"metadata":{"purpose":"x","e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"},"templateID":"base"}`,
		`{"templateID":"base","metadata":{"owner":"somebody"}}`:    `{"templateID":"base","metadata":{"owner":"somebody","e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"}}`,
		`{"templateID":"base","metadata":{"e2bguard-owner2":"x"}}`: `{"templateID":"base","metadata":{"e2bguard-owner2":"x","e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"}}`,
	} {
		m := toStamp(t, body)
		require.Nil(t, m.Stamp(Stamp{"team-a", "11aa22bb"}))
		require.Equal(t, want, string(m.Encode()))
	}
}

func TestStampCannotBeForged(t *testing.T) {
	for _, body := range []string{
		`{"templateID":"base","metadata":{"e2bguard-owner":"team-b"}}`,
		`{"templateID":"base","metadata":{"e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"}}`,
		`{"templateID":"base","metadata":{"E2bGuard-Owner":"team-b"}}`,
		`{"templateID":"base","metadata":{"e2bguard\u002downer":"team-b"}}`,
		`{"templateID":"base","metadata":{"e2bguard-owner":""}}`,
		`{"templateID":"base","metadata":{"e2bguard-gateway":"11aa22bb"}}`,
		`{"templateID":"base","metadata":{"E2BGUARD-gateway":"ffffffff"}}`,
	} {
		ref := toStamp(t, body).Stamp(Stamp{"team-a", "11aa22bb"})
		require.NotNil(t, ref, body)
		require.Equal(t, http.StatusForbidden, ref.Status)
		require.Contains(t, ref.Reason, "the metadata key e2bguard-")
	}
}

func TestStampLeavesOtherOperationsAlone(t *testing.T) {
	m, ref := Decode(route.Target{Row: route.Row{Operation: route.SandboxTimeout}}, []byte(`{"timeout":5}`))
	require.Nil(t, ref)
	require.Nil(t, m.Stamp(Stamp{"team-a", "11aa22bb"}))
	require.Equal(t, `{"timeout":5}`, string(m.Encode()))
}

func TestAnswersSayTheOwnerAndHideIt(t *testing.T) {
	const body = `{"sandboxID":"i1","startedAt":"2026-11-30T18:00:00Z","metadata":{"a":"b","e2bguard-owner":"team-a","e2bguard-gateway":"11aa22bb"},"state":"running"}`
	a, err := DecodeAnswer([]byte(body))
	require.NoError(t, err)
	require.Equal(t, []SandboxInfo{{ID: "i1", Stamp: Stamp{"team-a", "11aa22bb"}, StartedAt: time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)}}, a.Sandboxes())
	a.HideStamp()
	require.Equal(t, `{"sandboxID":"i1","startedAt":"2026-11-30T18:00:00Z","metadata":{"a":"b"},"state":"running"}`, string(a.Encode()))

	for _, body := range []string{`{"sandboxID":"i1"}`, `{"sandboxID":"i1","metadata":null}`, `{"sandboxID":"i1","metadata":{"e2bguard-owner":7}}`} {
		a, err := DecodeAnswer([]byte(body))
		require.NoError(t, err)
		require.Empty(t, a.Sandboxes()[0].Owner)
	}
}

func TestKeepLeavesOthersOut(t *testing.T) {
	a, err := DecodeAnswer([]byte(`[{"sandboxID":"i1","metadata":{"e2bguard-owner":"team-a"}},{"sandboxID":"i2","metadata":{"e2bguard-owner":"team-b"}},{"sandboxID":"i3"},{"sandboxID":"i4","metadata":{"e2bguard-owner":"team-a","x":"y"}}]`))
	require.NoError(t, err)
	a.Keep(func(info SandboxInfo) bool { return info.Owner == "team-a" })
	a.HideStamp()
	a.SetDomain("gw.example")
	require.Equal(t, `[{"sandboxID":"i1","metadata":{},"domain":"gw.example"},{"sandboxID":"i4","metadata":{"x":"y"},"domain":"gw.example"}]`, string(a.Encode()))
	require.Len(t, a.Sandboxes(), 2)

	a.Keep(func(SandboxInfo) bool { return false })
	require.Equal(t, `[]`, string(a.Encode()))
}

func TestSetTokens(t *testing.T) {
	for body, want := range map[string]string{
		`{"sandboxID":"i1","envdAccessToken":"ea_1","trafficAccessToken":"ta_1","x":1}`: `{"sandboxID":"i1","x":1,"envdAccessToken":"E i1 ea_1","trafficAccessToken":"T i1 ta_1"}`,
		`{"sandboxID":"i1"}`: `{"sandboxID":"i1","envdAccessToken":"E i1 ","trafficAccessToken":"T i1 "}`,
		`{"sandboxID":"i1","envdAccessToken":null,"mcpToken":"m","AccessToken":"x"}`:         `{"sandboxID":"i1","envdAccessToken":"E i1 ","trafficAccessToken":"T i1 "}`,
		`[{"sandbox":{"sandboxID":"i1","envdAccessToken":"ea_1"}},{"error":{"code":500}}]`:   `[{"sandbox":{"sandboxID":"i1","envdAccessToken":"E i1 ea_1","trafficAccessToken":"T i1 "}},{"error":{"code":500}}]`,
		`[{"sandboxID":"i1","envdAccessToken":"ea_1"},{"sandboxID":"i2","state":"running"}]`: `[{"sandboxID":"i1","envdAccessToken":"E i1 ea_1","trafficAccessToken":"T i1 "},{"sandboxID":"i2","state":"running","envdAccessToken":"E i2 ","trafficAccessToken":"T i2 "}]`,
	} {
		a, err := DecodeAnswer([]byte(body))
		require.NoError(t, err)
		a.SetTokens(func(i SandboxInfo) (string, string) {
			return "E " + i.ID + " " + i.EnvdToken, "T " + i.ID + " " + i.TrafficToken
		})
		require.Equal(t, want, string(a.Encode()))
	}
	a, err := DecodeAnswer([]byte(`{"sandboxID":"i1","envdAccessToken":"ea_1"}`))
	require.NoError(t, err)
	a.SetTokens(func(SandboxInfo) (string, string) { return "", "" })
	require.Equal(t, `{"sandboxID":"i1"}`, string(a.Encode()))
}

func TestOwnerQuery(t *testing.T) {
	for query, want := range map[string]string{
		"":                               "e2bguard-owner=team-a",
		"limit=2&state=running":          "e2bguard-owner=team-a",
		"metadata=":                      "e2bguard-owner=team-a",
		"metadata=tag%3Dx":               "tag=x&e2bguard-owner=team-a",
		"metadata=a%3Db%2526c%26d%3De":   "a=b%26c&d=e&e2bguard-owner=team-a",
		"metadata=e2bguard-owner%3Dteam": "e2bguard-owner=team&e2bguard-owner=team-a",
	} {
		got, ref := OwnerQuery(query, "team-a")
		require.Nil(t, ref, query)
		values, err := url.ParseQuery(got)
		require.NoError(t, err)
		require.Equal(t, []string{want}, values["metadata"], query)
		before, err := url.ParseQuery(query)
		require.NoError(t, err)
		require.Equal(t, before["limit"], values["limit"])
		require.Equal(t, before["state"], values["state"])
	}
	for _, query := range []string{"metadata=a%3Db&metadata=c%3Dd", "metadata=%zz"} {
		_, ref := OwnerQuery(query, "team-a")
		require.NotNil(t, ref, query)
		require.Equal(t, http.StatusBadRequest, ref.Status)
	}
}

func TestKeepMetrics(t *testing.T) {
	got, err := KeepMetrics([]byte(`{"sandboxes":{"i1":{"cpuCount":2},"i2":{"cpuCount":4}}}`), func(id string) bool { return id == "i2" })
	require.NoError(t, err)
	require.Equal(t, `{"sandboxes":{"i2":{"cpuCount":4}}}`, string(got))
	got, err = KeepMetrics([]byte(`{}`), func(string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, `{}`, string(got))
	for _, body := range []string{``, `[]`, `{"sandboxes":[{"sandboxID":"i1"}]}`} {
		_, err := KeepMetrics([]byte(body), func(string) bool { return true })
		require.Error(t, err, body)
	}
}

func TestAnswersSayWhatBecomesOfASandbox(t *testing.T) {
	for body, want := range map[string]SandboxInfo{
		`{"sandboxID":"i1","state":"running","lifecycle":{"onTimeout":"kill"}}`:  {ID: "i1"},
		`{"sandboxID":"i1","state":"running","lifecycle":{"onTimeout":"pause"}}`: {ID: "i1", PausesAtEnd: true},
		`{"sandboxID":"i1","state":"paused"}`:                                    {ID: "i1", Paused: true},
		`{"sandboxID":"i1","state":null,"lifecycle":[]}`:                         {ID: "i1"},
	} {
		a, err := DecodeAnswer([]byte(body))
		require.NoError(t, err)
		require.Equal(t, want, a.Sandboxes()[0])
	}
}

func TestGatewayQueryNamesOneGatewaysRunningSandboxes(t *testing.T) {
	q, err := url.ParseQuery(GatewayQuery("11aa22bb", "a&b"))
	require.NoError(t, err)
	require.Equal(t, url.Values{"state": {"running"}, "limit": {"100"}, "metadata": {"e2bguard-gateway=11aa22bb"}, "nextToken": {"a&b"}}, q)
	require.NotContains(t, GatewayQuery("11aa22bb", ""), "nextToken")
}
