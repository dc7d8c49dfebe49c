package emulator

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestControlPlaneWantsAKey(t *testing.T) {
	l := newLab(t, Options{})
	require.Equal(t, http.StatusUnauthorized, l.do(http.MethodPost, "/v2/sandboxes", `{"templateID":"base"}`).status)
	require.Empty(t, l.e.all())
	require.Equal(t, http.StatusOK, l.do(http.MethodGet, "/sandboxes", "", "Authorization", "Bearer sk").status)
}

func TestCreateRefusesWhatE2BRefuses(t *testing.T) {
	l := newLab(t, Options{})
	for _, tt := range []struct{ name, path, body, message string }{
		{"no template", "/sandboxes", `{}`, `Error when parsing request: property "templateID" is missing`},
		{"not JSON", "/sandboxes", `{`, "Error when parsing request: the body is not JSON"},
		{"timeout 0", "/sandboxes", `{"templateID":"base","timeout":0}`, "Timeout must be greater than 0"},
		{"negative timeout", "/v2/sandboxes", `{"templateID":"base","timeout":-1}`, "Timeout must be greater than 0"},
		{"a timeout beyond the plan", "/sandboxes", `{"templateID":"base","timeout":86401}`, "Timeout cannot be greater than 24 hours"},
		{
			"domains without a closed default", "/sandboxes", `{"templateID":"base","network":{"allowOut":["example.com"]}}`,
			"When specifying allowed domains in allow out, you must include '0.0.0.0/0' in deny out to block all other traffic.",
		},
		{"a denied domain", "/sandboxes", `{"templateID":"base","network":{"denyOut":["example.com"]}}`, "invalid denied CIDR example.com"},
		{
			"private but not secure", "/sandboxes", `{"templateID":"base","network":{"allowPublicTraffic":false}}`,
			"You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag.",
		},
		{"autoPauseMemory alone", "/v2/sandboxes", `{"templateID":"base","autoPauseMemory":false}`, "autoPauseMemory=false only applies when autoPause is true."},
		{"an unknown volume", "/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"v","path":"/v"}]}`, "invalid mounts: [0: volume 'v' not found]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := l.api(http.MethodPost, tt.path, tt.body)
			require.Equal(t, http.StatusBadRequest, a.status)
			require.Equal(t, map[string]any{"code": 400.0, "message": tt.message}, a.json(t))
		})
	}
	overflow := l.api(http.MethodPost, "/sandboxes", `{"templateID":"base","timeout":99999999999}`)
	require.Equal(t, http.StatusBadRequest, overflow.status)
	unknown := l.api(http.MethodPost, "/sandboxes", `{"templateID":"other-team/snap"}`)
	require.Equal(t, http.StatusNotFound, unknown.status)
	require.Empty(t, l.e.all())
}

func TestTokensOfTheTwoVersions(t *testing.T) {
	l := newLab(t, Options{Domain: "gw.test"})
	plain := l.create("/sandboxes", `{"templateID":"base"}`)
	require.Empty(t, plain.token, "version 1 without secure has no token at all")
	require.NotEmpty(t, l.create("/sandboxes", `{"templateID":"base","secure":true}`).token)
	v2 := l.create("/v2/sandboxes", `{"templateID":"base"}`)
	require.NotEmpty(t, v2.token)

	info := l.api(http.MethodGet, "/sandboxes/"+v2.id, "").json(t)
	require.Equal(t, v2.token, info["envdAccessToken"])
	require.Equal(t, "gw.test", info["domain"])
	require.Nil(t, info["network"])
	require.Equal(t, http.StatusNoContent, plain.envd(http.MethodGet, "/health", "").status)
	require.Equal(t, "gw.test", l.api(http.MethodPost, "/v2/sandboxes/"+v2.id+"/connect", "{}").json(t)["domain"])
}

func TestNetworkIsEchoedAndReplacedAsAWhole(t *testing.T) {
	l := newLab(t, Options{})
	b := l.create("/v2/sandboxes", `{"templateID":"base","allow_internet_access":false,"network":{"allowOut":["example.com"],`+
		`"denyOut":["0.0.0.0/0"],"egressProxy":{"address":"p:1"},"rules":{"example.com":[]},"maskRequestHost":"h"},"iam":{"tokens":{}}}`)
	info := l.api(http.MethodGet, "/sandboxes/"+b.id, "").json(t)
	require.Equal(t, false, info["allowInternetAccess"])
	require.Equal(t, map[string]any{
		"allowOut": []any{"example.com"}, "denyOut": []any{"0.0.0.0/0"}, "egressProxy": map[string]any{"address": "p:1"},
		"rules": map[string]any{"example.com": []any{}}, "maskRequestHost": "h",
	}, info["network"])
	require.Equal(t, map[string]any{"tokens": map[string]any{}}, info["iam"])

	require.Equal(t, http.StatusBadRequest, l.api(http.MethodPut, "/sandboxes/"+b.id+"/network", `{"denyOut":["x"]}`).status)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPut, "/sandboxes/"+b.id+"/network", `{}`).status)
	info = l.api(http.MethodGet, "/sandboxes/"+b.id, "").json(t)
	require.Nil(t, info["allowInternetAccess"], "an empty update opens the network")
	require.Equal(t, map[string]any{"maskRequestHost": "h"}, info["network"])

	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+b.id+"/pause", "").status)
	require.Equal(t, http.StatusConflict, l.api(http.MethodPut, "/sandboxes/"+b.id+"/network", `{}`).status)
}

func endOf(t *testing.T, b box) time.Time {
	t.Helper()
	s, _ := b.api(http.MethodGet, "/sandboxes/"+b.id, "").json(t)["endAt"].(string)
	end, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return end
}

func TestLifetimes(t *testing.T) {
	l := newLab(t, Options{})
	requireEnd := func(b box, d time.Duration) {
		t.Helper()
		require.WithinDuration(t, time.Now().Add(d), endOf(t, b), 5*time.Second)
	}
	b := l.create("/sandboxes", `{"templateID":"base"}`)
	requireEnd(b, 15*time.Second)
	requireEnd(l.create("/v2/sandboxes", `{"templateID":"base"}`), 300*time.Second)
	for _, step := range []struct {
		name, path, body string
		status           int
		end              time.Duration
	}{
		{"timeout extends", "/timeout", `{"timeout":100}`, 204, 100 * time.Second},
		{"refresh never shortens", "/refreshes", `{"duration":20}`, 204, 100 * time.Second},
		{"connect never shortens", "/connect", `{"timeout":50}`, 200, 100 * time.Second},
		{"connect extends", "/connect", `{"timeout":200}`, 200, 200 * time.Second},
		{"timeout shortens", "/timeout", `{"timeout":60}`, 204, 60 * time.Second},
		{"negative", "/timeout", `{"timeout":-1}`, 400, 60 * time.Second},
		{"missing", "/timeout", `{}`, 400, 60 * time.Second},
		{"connect of version 1 needs one", "/connect", `{}`, 400, 60 * time.Second},
		{"too long", "/timeout", `{"timeout":86401}`, 400, 60 * time.Second},
	} {
		a := l.api(http.MethodPost, "/sandboxes/"+b.id+step.path, step.body)
		require.Equal(t, step.status, a.status, step.name)
		requireEnd(b, step.end)
	}
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+b.id+"/timeout", `{"timeout":0}`).status)
	require.Eventually(t, func() bool { return !b.exists() }, soon, tick, "0 ends it now")
	require.Equal(t, http.StatusNotFound, l.api(http.MethodGet, "/sandboxes/"+b.id, "").status)
	gone := l.api(http.MethodDelete, "/sandboxes/"+b.id, "")
	require.Equal(t, http.StatusNotFound, gone.status)
	require.JSONEq(t, `{"code":404,"message":"Sandbox \"`+b.id+`\" doesn't exist or you don't have access to it"}`, gone.body)
}

func TestAutoPauseAndResume(t *testing.T) {
	l := newLab(t, Options{})
	b := l.create("/v2/sandboxes", `{"templateID":"base","timeout":1,"autoPause":true}`)
	require.Eventually(t, func() bool { return l.api(http.MethodGet, "/sandboxes/"+b.id, "").json(t)["state"] == "paused" }, soon, tick)
	again := l.api(http.MethodPost, "/sandboxes/"+b.id+"/pause", "{}")
	require.Equal(t, http.StatusConflict, again.status)
	require.JSONEq(t, `{"code":409,"message":"sandbox is already paused"}`, again.body)
	woken := l.api(http.MethodPost, "/v2/sandboxes/"+b.id+"/connect", "{}")
	require.Equal(t, http.StatusCreated, woken.status)
	require.Equal(t, b.token, woken.json(t)["envdAccessToken"])
	require.Equal(t, http.StatusConflict, l.api(http.MethodPost, "/sandboxes/"+b.id+"/resume", "{}").status)
	require.Equal(t, http.StatusOK, l.api(http.MethodPost, "/v2/sandboxes/"+b.id+"/connect", "{}").status)
	require.True(t, b.exists())
}

func TestForksAndSnapshotsStartWithTheFiles(t *testing.T) {
	l := newLab(t, Options{})
	b := l.newBox()
	b.run("echo kept > f; ln -s f link; mkdir -m 700 d")
	forked := l.api(http.MethodPost, "/sandboxes/"+b.id+"/fork", `{"count":2,"timeout":60}`)
	require.Equal(t, http.StatusCreated, forked.status, forked.body)
	for _, bad := range []string{`{"count":0}`, `{"count":101}`, `{"timeout":0}`} {
		require.Equal(t, http.StatusBadRequest, l.api(http.MethodPost, "/sandboxes/"+b.id+"/fork", bad).status)
	}
	require.Len(t, l.e.all(), 3)

	snap := l.api(http.MethodPost, "/sandboxes/"+b.id+"/snapshots", `{"name":"s1"}`)
	require.Equal(t, http.StatusCreated, snap.status)
	require.JSONEq(t, `{"names":["emulator-team/s1:default"],"snapshotID":"emulator-team/s1:default"}`, snap.body)
	again := l.create("/v2/sandboxes", `{"templateID":"emulator-team/s1:default"}`)
	require.Equal(t, "kept\ndrwx------\n", again.run("cat link; stat -c %A d"))
	require.JSONEq(t, "["+snap.body+"]", l.api(http.MethodGet, "/snapshots?sandboxID="+b.id, "").body)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodDelete, "/templates/emulator-team%2Fs1%3Adefault", "").status)
	require.JSONEq(t, "[]", l.api(http.MethodGet, "/snapshots", "").body)
}

func TestListFiltersAndPages(t *testing.T) {
	l := newLab(t, Options{})
	var ids []string
	for i := range 3 {
		b := l.create("/v2/sandboxes", `{"templateID":"base","metadata":{"user":"u 1","n":"`+strconv.Itoa(i)+`"}}`)
		ids = append([]string{b.id}, ids...)
	}
	other := l.create("/v2/sandboxes", `{"templateID":"base"}`)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+other.id+"/pause", "").status)
	list := func(query string) ([]string, string) {
		t.Helper()
		a := l.api(http.MethodGet, "/v2/sandboxes?"+query, "")
		require.Equal(t, http.StatusOK, a.status, a.body)
		var got []string
		for _, item := range jsonList(t, a.body) {
			id, _ := item["sandboxID"].(string)
			got = append(got, id)
		}
		return got, a.header.Get("X-Next-Token")
	}
	got, next := list("metadata=user%3Du%25201&limit=2")
	require.Equal(t, ids[:2], got)
	got, next = list("metadata=user%3Du%25201&limit=2&nextToken=" + next)
	require.Equal(t, ids[2:], got)
	require.Empty(t, next)
	got, _ = list("state=paused")
	require.Equal(t, []string{other.id}, got)
	got, _ = list("state=running,paused")
	require.Len(t, got, 4)
	require.Equal(t, http.StatusBadRequest, l.api(http.MethodGet, "/v2/sandboxes?limit=0", "").status)
	require.Len(t, jsonList(t, l.api(http.MethodGet, "/sandboxes", "").body), 3, "version 1 lists running ones")
	require.Equal(t, http.StatusNoContent, l.api(http.MethodDelete, "/sandboxes/"+other.id, "").status)
	require.Len(t, jsonList(t, l.api(http.MethodGet, "/v2/sandboxes", "").body), 3)
}
