package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/policy"
)

func buildsFromPython(cfg *Config) {
	cfg.Policy.Builds = policy.Builds{Images: []string{"python"}, Templates: []string{"base"}}
	cfg.Policy.Persistence = policy.Persistence{Snapshot: true, Fork: true}
}

func (v *vaultHouse) api(t *testing.T, key, method, path, body string) answer {
	t.Helper()
	return v.do(t, method, path, headers("X-API-KEY", key, "Content-Type", "application/json"), strings.NewReader(body))
}

// template makes a template and returns its id and that of its build.
func (v *vaultHouse) template(t *testing.T, key, name string) (id, build string) {
	t.Helper()
	got := v.api(t, key, "POST", "/v3/templates", `{"name":"`+name+`"}`)
	require.Equal(t, http.StatusAccepted, got.Status, got.Body)
	var made struct{ TemplateID, BuildID string }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &made))
	return made.TemplateID, made.BuildID
}

func TestBuildsAreClosedWithoutTheOption(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	for _, c := range [][2]string{
		{"POST", "/v3/templates"}, {"POST", "/v2/templates"}, {"POST", "/templates"}, {"POST", "/templates/x"}, {"POST", "/v2/templates/x/builds/y"},
		{"POST", "/templates/x/builds/y"}, {"DELETE", "/templates/x"}, {"POST", "/templates/tags"}, {"DELETE", "/templates/tags"}, {"GET", "/templates/x/files/y"}, {"PATCH", "/v2/templates/x"},
	} {
		before := len(v.reached())
		got := v.api(t, keyA, c[0], c[1], `{"name":"team-a-x"}`)
		require.Equal(t, http.StatusForbidden, got.Status, c)
		require.Len(t, v.reached(), before, "nothing reaches E2B: %s", c)
	}
}

func TestABuildIsJudgedStepByStepAndJoined(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app:v1")
	path := "/v2/templates/" + id + "/builds/" + build

	got := v.api(t, keyA, "POST", path, `{"fromImage":"python:3.12","steps":[{"type":"RUN","args":["echo one"]},{"type":"RUN","args":["do evil"]}]}`)
	require.Equal(t, http.StatusForbidden, got.Status, got.Body)

	got = v.api(t, keyA, "POST", path, `{"fromImage":"python:3.12","steps":[{"type":"RUN","args":["echo one"]},{"type":"RUN","args":["echo two"]}],"startCmd":"npm start"}`)
	require.Equal(t, http.StatusAccepted, got.Status, got.Body)
	saw := v.guard.saw()
	last := saw[len(saw)-1]
	for _, s := range saw {
		require.Equal(t, guard.KindBuild, s.Kind)
		require.NotContains(t, s.Labels, guard.LabelNetwork, "a build has a network of its own")
		if s.Target != "" {
			last = s
		}
	}
	require.Equal(t, "bash -l -c 'echo one'\nbash -l -c 'echo two'\nbash -l -c 'npm start'\n", last.Text)
	require.Equal(t, http.StatusOK, v.api(t, keyA, "GET", "/templates/"+id+"/builds/"+build+"/status?logsOffset=0", "").Status)
}

// Templates and snapshots belong to the account for E2B, so a client's name is
// in theirs. See e2b-dev/E2B#873 for names that others' calls act on.
func TestAClientsTemplatesAreItsOwn(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")

	for _, name := range []string{"app", "team-b-app", "Team-B-app", "emulator-team/team-b-app:v1", "team-a", "xteam-a-app"} {
		got := v.api(t, keyA, "POST", "/v3/templates", `{"name":"`+name+`"}`)
		require.Equal(t, http.StatusForbidden, got.Status, name)
		require.Contains(t, got.Body, "team-a-NAME")
	}
	require.Equal(t, http.StatusForbidden, v.api(t, keyA, "POST", "/v3/templates", `{"name":"team-a-x","alias":"team-b-x"}`).Status)

	for _, c := range [][3]string{
		{"POST", "/v2/templates/" + id + "/builds/" + build, `{"fromImage":"python"}`},
		{"GET", "/templates/" + id + "/builds/" + build + "/status", ""},
		{"GET", "/templates/" + id + "/builds/" + build + "/logs", ""},
		{"DELETE", "/templates/" + id, ""},
		{"DELETE", "/templates/team-a-app", ""},
		{"POST", "/v2/sandboxes", `{"templateID":"` + id + `"}`},
		{"POST", "/v2/sandboxes", `{"templateID":"TEAM-A-app:default"}`},
		{"POST", "/sandboxes", `{"templateID":"emulator-team/team-a-app"}`},
	} {
		got := v.api(t, keyB, c[0], c[1], c[2])
		require.Equal(t, http.StatusNotFound, got.Status, "%v: %s", c, got.Body)
	}
	require.Equal(t, http.StatusForbidden, v.api(t, keyB, "POST", "/templates/tags", `{"target":"team-a-app","tags":["x"]}`).Status)
	require.NotContains(t, v.api(t, keyB, "GET", "/templates", "").Body, id)
	require.Contains(t, v.api(t, keyA, "GET", "/templates", "").Body, id)

	v.create(t, keyA, `{"templateID":"`+id+`"}`)
	require.Equal(t, http.StatusNoContent, v.api(t, keyA, "DELETE", "/templates/"+id, "").Status)
}

func TestASnapshotIsItsClientsOwn(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython, func(cfg *Config) { cfg.Policy.Templates.Allow = []string{"base"} })
	m := v.create(t, keyA, `{"templateID":"base"}`)
	path := "/sandboxes/" + m.ID + "/snapshots"
	require.Equal(t, http.StatusForbidden, v.api(t, keyA, "POST", path, `{"name":"team-b-state"}`).Status)

	got := v.api(t, keyA, "POST", path, "")
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	require.Contains(t, got.Header.Get("E2b-Guard"), "changed=name")
	var snapshot struct{ SnapshotID string }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &snapshot))
	require.Contains(t, snapshot.SnapshotID, "/team-a-")

	fork := v.create(t, keyA, `{"templateID":"`+snapshot.SnapshotID+`"}`) // though the list names base only
	own := v.direct(t, "GET", "/sandboxes/"+fork.ID, nil, nil).Body
	require.Contains(t, own, `"e2bguard-owner":"team-a"`)
	require.Contains(t, own, "0.0.0.0/0")

	require.Equal(t, http.StatusNotFound, v.api(t, keyB, "POST", "/v2/sandboxes", `{"templateID":"`+snapshot.SnapshotID+`"}`).Status)
	escaped := strings.NewReplacer("/", "%2F", ":", "%3A").Replace(snapshot.SnapshotID)
	require.Equal(t, http.StatusNotFound, v.api(t, keyB, "DELETE", "/templates/"+escaped, "").Status)
	require.Equal(t, http.StatusNoContent, v.api(t, keyA, "DELETE", "/templates/"+escaped, "").Status)
}

func TestForksInheritPolicyAndOwner(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	m := v.create(t, keyA, `{"templateID":"base"}`)
	require.Equal(t, http.StatusNotFound, v.api(t, keyB, "POST", "/sandboxes/"+m.ID+"/fork", `{"count":2}`).Status)
	got := v.api(t, keyA, "POST", "/sandboxes/"+m.ID+"/fork", `{"count":2}`)
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	var forks []struct{ Sandbox made }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &forks))
	require.Len(t, forks, 2)
	for _, f := range forks {
		require.True(t, strings.HasPrefix(f.Sandbox.Envd, "e2bg_"), "its tokens are sealed")
		own := v.direct(t, "GET", "/sandboxes/"+f.Sandbox.ID, nil, nil).Body
		require.Contains(t, own, `"e2bguard-owner":"team-a"`)
		require.Contains(t, own, "0.0.0.0/0")
		require.Equal(t, http.StatusNotFound, v.api(t, keyB, "GET", "/sandboxes/"+f.Sandbox.ID, "").Status)
	}
}

func TestClientsWhoseTemplatesCouldNotBeToldApart(t *testing.T) {
	g := &Gateway{clients: []knownClient{{name: "team"}, {name: "team-a"}, {name: "Dev.Ops"}}}
	for name, want := range map[string]string{"team-x": "team", "team-a-x": "team-a", "team-a": "team", "ns/dev-ops-x:1": "Dev.Ops", " TEAM-A-x": "team-a", "x": "", "": "", "ns/x/team-a-x": "team-a"} {
		require.Equal(t, want, g.nameOwner(name), name)
	}
	cfg := Config{Clients: []Client{{Name: "a.b"}, {Name: "a-b"}}}
	require.NoError(t, cfg.clientsShareNames())
	buildsFromPython(&cfg)
	require.ErrorContains(t, cfg.clientsShareNames(), "rename one")
}

// The price of a build's registry is a secret: it is in no answer and no log.
func TestRegistryPasswordsAreNowhere(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	for _, image := range []string{"python", "evil/x"} {
		got := v.api(t, keyA, "POST", "/v2/templates/"+id+"/builds/"+build, `{"fromImage":"`+image+`","fromImageRegistry":{"type":"registry","username":"u","password":"hush-hush"}}`)
		require.NotContains(t, got.Body, "hush-hush")
	}
	for _, entry := range v.log.All() {
		b, err := json.Marshal(entry.ContextMap())
		require.NoError(t, err)
		require.NotContains(t, entry.Message+string(b), "hush-hush")
	}
}
