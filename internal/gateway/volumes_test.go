package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/seal"
)

func openVolumes(cfg *Config) { cfg.Policy.Volumes = policy.Volumes{Open: true} }

type madeVolume struct{ VolumeID, Name, Token, Domain string }

// volume makes a volume of a client's.
func (v *vaultHouse) volume(t *testing.T, key, name string) madeVolume {
	t.Helper()
	got := v.api(t, key, "POST", "/volumes", `{"name":"`+name+`"}`)
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	return parseVolume(t, got.Body)
}

func parseVolume(t *testing.T, body string) madeVolume {
	t.Helper()
	var m madeVolume
	require.NoError(t, json.Unmarshal([]byte(body), &m), body)
	return m
}

func TestVolumesAreClosedWithoutTheOption(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	for _, c := range [][2]string{
		{"GET", "/volumes"}, {"POST", "/volumes"}, {"GET", "/volumes/x"}, {"DELETE", "/volumes/x"},
	} {
		before := len(v.reached())
		got := v.api(t, keyA, c[0], c[1], `{"name":"x"}`)
		require.Equal(t, http.StatusForbidden, got.Status, c)
		require.Contains(t, got.Body, "volumes guard")
		require.Len(t, v.reached(), before, "nothing reaches E2B: %s", c)
	}
	got := v.api(t, keyA, "POST", "/v2/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"x","path":"/mnt/x"}]}`)
	require.Equal(t, http.StatusForbidden, got.Status)
}

func TestAClientsVolumesAreItsOwn(t *testing.T) {
	e2b := newEmulator(t)
	v := newVaultHouse(t, e2b, openVolumes)
	a, b := v.volume(t, keyA, "data"), v.volume(t, keyB, "data")
	require.Equal(t, "data", a.Name)
	require.Equal(t, "data", b.Name, "another client's names are no concern of it")
	require.NotEqual(t, a.VolumeID, b.VolumeID)
	require.Equal(t, "team-a__data", parseVolume(t, v.direct(t, "GET", "/volumes/"+a.VolumeID, nil, nil).Body).Name)

	for _, restarted := range []bool{false, true} {
		if restarted {
			v = newVaultHouse(t, e2b, openVolumes)
		}
		for _, method := range []string{"GET", "DELETE"} {
			got := v.api(t, keyB, method, "/volumes/"+a.VolumeID, "")
			require.Equal(t, http.StatusNotFound, got.Status, got.Body)
			require.NotContains(t, got.Body, "team-a")
			require.Equal(t, http.StatusNotFound, v.api(t, keyB, method, "/volumes/none", "").Status)
		}
		list := v.api(t, keyB, "GET", "/volumes", "").Body
		require.Contains(t, list, b.VolumeID)
		require.NotContains(t, list, a.VolumeID)
		require.Contains(t, list, `"name":"data"`)
		own := parseVolume(t, v.api(t, keyA, "GET", "/volumes/"+a.VolumeID, "").Body)
		require.Equal(t, "data", own.Name)
	}

	require.Equal(t, http.StatusNoContent, v.api(t, keyA, "DELETE", "/volumes/"+a.VolumeID, "").Status)
	require.Equal(t, http.StatusNotFound, v.direct(t, "GET", "/volumes/"+a.VolumeID, nil, nil).Status)
}

// A volume that somebody made past the gateway, or that a client made which the
// configuration has no more, is nobody's.
func TestTheAccountsOtherVolumesAreNobodys(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), openVolumes)
	for _, name := range []string{"shared", "gone__data", "team-a", "team-a_data", "TEAM-A__data", "__data", "team_ua__data"} {
		got := v.direct(t, "POST", "/volumes", nil, strings.NewReader(`{"name":"`+name+`"}`))
		require.Equal(t, http.StatusCreated, got.Status, got.Body)
		id := parseVolume(t, got.Body).VolumeID
		require.Equal(t, http.StatusNotFound, v.api(t, keyA, "GET", "/volumes/"+id, "").Status, name)
		require.Equal(t, "[]", v.api(t, keyA, "GET", "/volumes", "").Body)
		got = v.api(t, keyA, "POST", "/v2/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"`+name+`","path":"/mnt/x"}]}`)
		require.Equal(t, http.StatusBadRequest, got.Status, "%s: %s", name, got.Body)
	}
}

func TestAClientsNameForItsVolumesHasOneReading(t *testing.T) {
	clients := []string{"a", "a_", "a.", "a_u", "a-", "a_b", "a__b", "A"}
	g := &Gateway{names: map[string]Client{}}
	for _, client := range clients {
		g.names[client] = Client{}
	}
	seen := map[string]string{}
	for _, client := range clients {
		for _, name := range []string{"x", "_x", "__x", "u__x", "_u__x", "b__x", "-__x", "_", "__"} {
			known := ownedVolume(client, name)
			require.Empty(t, seen[known], "%q is two volumes", known)
			seen[known] = client + "/" + name
			owner, own := g.volumeOwner(known)
			require.Equal(t, client+"/"+name, owner+"/"+own)
		}
	}
}

func TestVolumesOfAGroupAreShared(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), openVolumes, func(cfg *Config) { cfg.Share = [][]string{{"team-a", "team-b"}} })
	a := v.volume(t, keyA, "data")
	v.volume(t, keyB, "data")
	shown := parseVolume(t, v.api(t, keyB, "GET", "/volumes/"+a.VolumeID, "").Body)
	require.Equal(t, "team-a__data", shown.Name)
	got := v.api(t, keyB, "POST", "/v2/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"team-a__data","path":"/mnt/a"},{"name":"data","path":"/mnt/b"}]}`)
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	id := parseMade(t, got.Body).ID
	require.Contains(t, v.direct(t, "GET", "/sandboxes/"+id, nil, nil).Body, `[{"name":"team-a__data","path":"/mnt/a"},{"name":"team-b__data","path":"/mnt/b"}]`)
	require.Contains(t, v.api(t, keyB, "GET", "/sandboxes/"+id, "").Body, `[{"name":"team-a__data","path":"/mnt/a"},{"name":"data","path":"/mnt/b"}]`)
	require.Equal(t, http.StatusForbidden, v.api(t, keyB, "POST", "/volumes", `{"name":"team-a__new"}`).Status)
}

func TestAVolumesTokenIsSealed(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), openVolumes, func(cfg *Config) { cfg.PublicDomain = "gw.example.com" })
	m := v.volume(t, keyA, "data")
	real := parseVolume(t, v.direct(t, "GET", "/volumes/"+m.VolumeID, nil, nil).Body)
	require.NotEqual(t, real.Token, m.Token)
	sealed, err := testSealer("11").Open(m.Token)
	require.NoError(t, err)
	require.Equal(t, seal.Token{Kind: seal.Volume, Sandbox: m.VolumeID, Client: "team-a", Inner: "team-a__data\n\n" + real.Token}, sealed)
	require.Equal(t, "gw.example.com", m.Domain, "the SDK sends the content there")
	require.Equal(t, m, parseVolume(t, v.api(t, keyA, "GET", "/volumes/"+m.VolumeID, "").Body), "on every answer the same")
	got := v.direct(t, "GET", "/volumecontent/"+m.VolumeID+"/dir?path=/", headers("Authorization", "Bearer "+m.Token), nil)
	require.Equal(t, http.StatusUnauthorized, got.Status, "it is worth nothing at E2B")
}

func TestAVolumeIsMountedWhereTheClientMay(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), openVolumes)
	v.volume(t, keyA, "data")
	v.volume(t, keyB, "other")
	create := func(mounts string) answer {
		return v.api(t, keyA, "POST", "/v2/sandboxes", `{"templateID":"base","volumeMounts":`+mounts+`}`)
	}
	got := create(`[{"name":"data","path":"/mnt/data"}]`)
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	id := parseMade(t, got.Body).ID
	for _, path := range []string{"/sandboxes/" + id, "/v2/sandboxes"} {
		require.Contains(t, v.api(t, keyA, "GET", path, "").Body, `"volumeMounts":[{"name":"data","path":"/mnt/data"}]`)
	}

	for _, mounts := range []string{
		`[{"name":"other","path":"/mnt/x"}]`, `[{"name":"team-b__other","path":"/mnt/x"}]`, `[{"name":"none","path":"/mnt/x"}]`,
	} {
		require.Equal(t, http.StatusBadRequest, create(mounts).Status, mounts)
	}
	before := len(v.reached())
	for _, mounts := range []string{
		`[{"name":"data","path":"/etc"}]`, `[{"name":"data","path":"/usr/bin"}]`, `[{"name":"data","path":"/usr/local"}]`, `[{"name":"data","path":"/home/user/.ssh"}]`,
		`[{"name":"data","path":"/home/user"}]`, `[{"name":"data","path":"/"}]`, `[{"name":"data","path":"/mnt/x"},{"name":"data","path":"/root/.ssh"}]`,
		`[{"name":"data","path":"/mnt/../etc"}]`, `[{"name":"data","path":"/mnt/./x"}]`, `[{"name":"data","path":"//etc"}]`, `[{"name":"data","path":"/etc/"}]`, `[{"name":"data","path":"etc"}]`,
		`[{"name":"data","path":"/mnt/x","subPath":"y"}]`, `[{"name":"data","path":"/mnt/x","Path":"/etc"}]`, `[{"Name":"data","path":"/etc"}]`,
		`[{"name":"data ","path":"/mnt/x"}]`, `[{"name":"","path":"/mnt/x"}]`, `[{"name":"data"}]`, `[{"path":"/mnt/x"}]`, `["data"]`, `[null]`, `{"name":"data","path":"/mnt/x"}`,
	} {
		got := create(mounts)
		require.Contains(t, []int{http.StatusForbidden, http.StatusBadRequest}, got.Status, "%s: %s", mounts, got.Body)
	}
	require.Len(t, v.reached(), before, "none of it reaches E2B")
}

func TestForksKeepTheirMountsNames(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), openVolumes, buildsFromPython)
	v.volume(t, keyA, "data")
	m := v.create(t, keyA, `{"templateID":"base","volumeMounts":[{"name":"data","path":"/mnt/data"}]}`)
	got := v.api(t, keyA, "POST", "/sandboxes/"+m.ID+"/fork", `{}`)
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	var forks []struct{ Sandbox made }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &forks))
	require.Contains(t, v.api(t, keyA, "GET", "/sandboxes/"+forks[0].Sandbox.ID, "").Body, `"volumeMounts":[{"name":"data","path":"/mnt/data"}]`)
	require.Equal(t, http.StatusNotFound, v.api(t, keyB, "GET", "/sandboxes/"+forks[0].Sandbox.ID, "").Status)
}

// Without keys of the gateway's, volumes are those of the client's own account.
func TestPassedThroughVolumesKeepTheirNamesAndTokens(t *testing.T) {
	e2b := newEmulator(t)
	h := newHouse(t, e2b.ServeHTTP, func(cfg *Config) {
		openVolumes(cfg)
		cfg.PublicDomain = "gw.example.com"
	})
	key := headers("X-API-KEY", labKey, "Content-Type", "application/json")
	got := h.do(t, "POST", "/volumes", key, strings.NewReader(`{"name":"data"}`))
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	m := parseVolume(t, got.Body)
	require.Equal(t, "data", m.Name)
	require.True(t, strings.HasPrefix(m.Token, "vt_"))
	require.Equal(t, "gw.example.com", m.Domain)
	require.Contains(t, h.do(t, "GET", "/volumes", key, nil).Body, m.VolumeID)
}
