package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// What no option opens is refused, and never reaches E2B, whoever asks.
func TestOwnEndpointsAreClosedUnlessConfigured(t *testing.T) {
	for _, row := range route.Table() {
		if row.Plane != route.Own || row.Operation == route.Preflight {
			continue
		}
		v := newVaultHouse(t, newEmulator(t))
		got := v.do(t, row.Method, row.Pattern, headers("X-API-KEY", keyA, "Content-Type", "application/json"), strings.NewReader(`{"text":"ls"}`))
		require.Equal(t, 403, got.Status, got.Body)
		require.Contains(t, got.Body, "Its operator can open it with the option ")
		require.Contains(t, got.Header.Get("E2b-Guard"), "code=denied")

		l := newLab(t)
		answered := l.send(t, wire{method: row.Method, target: row.Pattern, headers: []string{"X-API-KEY", labKey, "Content-Type", "application/json"}, body: `{"text":"ls"}`})
		require.Equal(t, 403, answered.Status, answered.Body)
		for _, r := range l.emu.Recorded() {
			require.NotEqual(t, row.Pattern, r.Path)
		}
	}
}

// One key, in any of the headers that clients send it in. Two that differ are none:
// which one counts would be the reader's choice.
func TestKeyOfOwnEndpoints(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{nil, ""},
		{[]string{"X-Api-Key", "k"}, "k"},
		{[]string{"X-Superagent-Api-Key", "k"}, "k"},
		{[]string{"Authorization", "Bearer k"}, "k"},
		{[]string{"Authorization", "bearer k"}, "k"},
		{[]string{"Authorization", "Bearer k", "X-Superagent-Api-Key", "k"}, "k"},
		{[]string{"Authorization", "Basic k"}, ""},
		{[]string{"Authorization", "k"}, ""},
		{[]string{"Authorization", "Basic x", "X-Api-Key", "k"}, "k"},
		{[]string{"Authorization", "Bearer k", "X-Superagent-Api-Key", "other"}, ""},
		{[]string{"Authorization", "Bearer k", "X-Api-Key", ""}, ""},
		{[]string{"X-Api-Key", "k", "X-Api-Key", "other"}, ""},
	} {
		h := http.Header{}
		for i := 0; i < len(c.headers); i += 2 {
			h.Add(c.headers[i], c.headers[i+1])
		}
		require.Equal(t, c.want, ownKey(h), "%v", c.headers)
	}
}
