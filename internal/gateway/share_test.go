package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

const keyC = "e2b_cccccccccccccccccccccccccccccccccccccccc"

// newShareHouse has three clients, of whom a shares with b and b with c.
func newShareHouse(t *testing.T, edits ...func(*Config)) *vaultHouse {
	return newVaultHouse(t, newEmulator(t), append([]func(*Config){func(cfg *Config) {
		cfg.Clients = append(cfg.Clients, Client{Name: "team-c", Key: redact.NewSecret(keyC)})
		cfg.Share = [][]string{{"team-a", "team-b"}, {"team-b", "team-c"}}
		cfg.Policy.Persistence = policy.Persistence{Fork: true}
	}}, edits...)...)
}

func TestClientsThatShareActOnOneAnothersSandboxes(t *testing.T) {
	v := newShareHouse(t)
	m := v.create(t, keyA, `{"templateID":"base","metadata":{"x":"y"}}`)
	get := func(key, path string) answer { return v.do(t, "GET", path, headers("X-API-KEY", key), nil) }
	connect := func(key string) answer {
		return v.do(t, "POST", "/v2/sandboxes/"+m.ID+"/connect", headers("X-API-KEY", key), strings.NewReader(`{}`))
	}
	run := func(token string) answer {
		return v.do(t, "POST", "/process.Process/Start", m.start("X-Access-Token", token), command(t, "true"))
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			*v.state = *NewState()
		}
		for _, key := range []string{keyA, keyB} {
			require.Contains(t, get(key, "/v2/sandboxes?limit=5").Body, m.ID)
			require.Contains(t, get(key, "/v2/sandboxes?metadata=x%3Dy").Body, m.ID)
			require.NotContains(t, get(key, "/v2/sandboxes").Body, "e2bguard-")
			require.Contains(t, get(key, "/sandboxes/metrics?sandbox_ids="+m.ID).Body, m.ID)
			require.Equal(t, 200, get(key, "/sandboxes/"+m.ID).Status)
			got := connect(key)
			require.Equal(t, 200, got.Status, got.Body)
			token := parseMade(t, got.Body).Envd
			require.NotContains(t, run(token).Body, "error")
			*v.state = *NewState() // the token alone must do
			require.NotContains(t, run(token).Body, "error")
		}
		// b's use of it does not make it b's to share with c.
		require.NotContains(t, get(keyC, "/v2/sandboxes").Body, m.ID)
		require.NotContains(t, get(keyC, "/sandboxes/metrics?sandbox_ids="+m.ID).Body, m.ID)
		require.Equal(t, 404, get(keyC, "/sandboxes/"+m.ID).Status)
		require.Equal(t, 404, connect(keyC).Status)
		v.forgive()
	}
	fork := v.do(t, "POST", "/sandboxes/"+m.ID+"/fork", headers("X-API-KEY", keyB), strings.NewReader(`{}`))
	require.Equal(t, 201, fork.Status, fork.Body)
	require.Equal(t, 2, strings.Count(get(keyA, "/v2/sandboxes").Body, "sandboxID"), "what is forked stays its maker's")
	require.NotContains(t, get(keyC, "/v2/sandboxes").Body, "sandboxID")
	v.kill(t, keyB, m.ID)
}

// What is no longer shared is not reached with a token of the time before.
func TestTokensEndWithSharing(t *testing.T) {
	shared := newShareHouse(t)
	m := shared.create(t, keyA, `{"templateID":"base"}`)
	token := parseMade(t, shared.do(t, "POST", "/v2/sandboxes/"+m.ID+"/connect", headers("X-API-KEY", keyB), strings.NewReader(`{}`)).Body).Envd
	after := newVaultHouse(t, shared.e2b, func(cfg *Config) { cfg.State = shared.state })
	got := after.do(t, "GET", "/files?path=/etc/hostname", m.to("49983", "X-Access-Token", token), nil)
	require.Equal(t, 401, got.Status)
	require.Contains(t, got.Body, "not shared any more")
}

// A URL signed with the token of whoever shares a sandbox is good for it.
func TestURLsSignedByWhoeverSharesASandbox(t *testing.T) {
	v := newShareHouse(t)
	m := v.create(t, keyA, `{"templateID":"base"}`)
	connected := parseMade(t, v.do(t, "POST", "/v2/sandboxes/"+m.ID+"/connect", headers("X-API-KEY", keyB), strings.NewReader(`{}`)).Body)
	require.NotEqual(t, m.Envd, connected.Envd)
	for _, token := range []string{m.Envd, connected.Envd} {
		got := v.do(t, "GET", "/files?"+signedQuery(token, "/etc/hostname", "read", 0), nil, nil)
		require.NotEqual(t, 401, got.Status, got.Body)
		require.NotContains(t, got.Body, "could not route")
	}
	got := v.do(t, "GET", "/files?"+signedQuery(sealedEnvd(m.ID, "team-c", v.real(t, m.ID).Envd), "/etc/hostname", "read", 0), nil, nil)
	require.Contains(t, got.Body, "could not route")
}

func TestShareNamesClients(t *testing.T) {
	require.ErrorContains(t, Config{Share: [][]string{{"a", "nobody"}}}.validate(), `share names "nobody", which is no client`)
}
