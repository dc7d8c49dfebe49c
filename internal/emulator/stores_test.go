package emulator

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATemplateBuild(t *testing.T) {
	l := newLab(t, Options{})
	made := l.api(http.MethodPost, "/v3/templates", `{"name":"tmpl:v1","tags":["stable"],"cpuCount":1}`)
	require.Equal(t, http.StatusAccepted, made.status)
	v := made.json(t)
	id, _ := v["templateID"].(string)
	build, _ := v["buildID"].(string)

	hash := strings.Repeat("ab", 32)
	require.Equal(t, http.StatusBadRequest, l.api(http.MethodGet, "/templates/"+id+"/files/abc", "").status)
	status := func() any {
		start := l.api(http.MethodPost, "/v2/templates/"+id+"/builds/"+build, `{"fromImage":"debian:12","steps":[{"type":"COPY","args":["a","b"],"filesHash":"`+hash+`"}]}`)
		require.Equal(t, http.StatusAccepted, start.status)
		return l.api(http.MethodGet, "/templates/"+id+"/builds/"+build+"/status?logsOffset=0", "").json(t)["status"]
	}
	require.Equal(t, "error", status(), "nobody has sent its files")
	file := l.api(http.MethodGet, "/templates/"+id+"/files/"+hash, "").json(t)
	require.Equal(t, false, file["present"])
	url, _ := file["url"].(string)
	require.Equal(t, http.StatusOK, l.do(http.MethodPut, strings.TrimPrefix(url, l.url), "tar").status, "the URL is the credential")
	require.Equal(t, true, l.api(http.MethodGet, "/templates/"+id+"/files/"+hash, "").json(t)["present"])
	require.Equal(t, "ready", status())

	require.Equal(t, http.StatusAccepted, l.api(http.MethodPost, "/v2/templates/"+id+"/builds/"+build, `{"fromImage":"debian:12","steps":[{"type":"RUN","args":["echo"]}]}`).status)
	require.Equal(t, http.StatusNotFound, l.api(http.MethodPost, "/v2/templates/"+id+"/builds/other", `{}`).status)
	require.Equal(t, "ready", l.api(http.MethodGet, "/templates/"+id+"/builds/"+build+"/status?logsOffset=0", "").json(t)["status"])
	require.Equal(t, id, l.api(http.MethodGet, "/templates/aliases/tmpl", "").json(t)["templateID"])
	require.Equal(t, http.StatusCreated, l.api(http.MethodPost, "/templates/tags", `{"target":"tmpl:v1","tags":["prod"]}`).status)
	require.Len(t, jsonList(t, l.api(http.MethodGet, "/templates/"+id+"/tags", "").body), 2)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodDelete, "/templates/tags", `{"name":"tmpl","tags":["prod"]}`).status)
	require.Len(t, jsonList(t, l.api(http.MethodGet, "/templates", "").body), 1)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodDelete, "/templates/"+id, "").status)
	missing := l.api(http.MethodGet, "/templates/aliases/tmpl", "")
	require.JSONEq(t, `{"code":404,"message":"alias not found"}`, missing.body)
	require.Equal(t, http.StatusNotFound, l.api(http.MethodGet, "/no/such/route", "").status)
}

func TestVolumesAreSeenBySandboxes(t *testing.T) {
	l := newLab(t, Options{})
	v := l.api(http.MethodPost, "/volumes", `{"name":"data"}`).json(t)
	id, _ := v["volumeID"].(string)
	token, _ := v["token"].(string)
	content := func(method, path, body string) answer {
		return l.do(method, "/volumecontent/"+id+path, body, "Authorization", "Bearer "+token)
	}
	require.Equal(t, http.StatusBadRequest, l.api(http.MethodPost, "/volumes", `{"name":"data"}`).status)
	require.Equal(t, http.StatusUnauthorized, l.do(http.MethodGet, "/volumecontent/"+id+"/dir?path=/", "", "X-API-Key", "k").status)
	require.Equal(t, http.StatusCreated, content(http.MethodPut, "/file?path=/in/x.txt&force=true", "from outside").status)
	b := l.create("/v2/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"data","path":"/mnt/data"}]}`)
	require.Equal(t, "from outside", b.read("/mnt/data/in/x.txt"))
	require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=/mnt/data/y", "from inside", "Content-Type", octet).status)
	require.Equal(t, "from inside", content(http.MethodGet, "/file?path=y", "").body)
	require.Equal(t, http.StatusNotFound, content(http.MethodGet, "/file?path=/../../../etc/passwd", "").status)
	if l.e.lookup(b.id).spawn.confined {
		require.Equal(t, "from inside", b.run("cat /mnt/data/y; echo shell > /mnt/data/z"))
		require.Equal(t, "shell\n", content(http.MethodGet, "/file?path=z", "").body)
	}
	require.Equal(t, http.StatusConflict, content(http.MethodPut, "/file?path=/y", "again").status, "only with force")
	require.Equal(t, http.StatusNotFound, content(http.MethodPut, "/file?path=/none/y", "x").status)
	require.Equal(t, http.StatusBadRequest, content(http.MethodGet, "/file", "").status)
	require.Equal(t, http.StatusCreated, content(http.MethodPost, "/dir?path=/d&mode=448&uid=7", "").status)
	require.Equal(t, http.StatusConflict, content(http.MethodPost, "/dir?path=/d", "").status)
	require.Equal(t, http.StatusNotFound, content(http.MethodPost, "/dir?path=/e/f", "").status)
	made := content(http.MethodPatch, "/path?path=/d", `{"gid":8,"mode":493}`).json(t)
	require.Equal(t, []any{float64(7), float64(8), float64(493)}, []any{made["uid"], made["gid"], made["mode"]})
	require.Contains(t, content(http.MethodGet, "/dir?path=/&depth=2", "").body, `"/in/x.txt"`)
	require.NotContains(t, content(http.MethodGet, "/dir?path=/", "").body, `"/in/x.txt"`)
	require.Equal(t, http.StatusBadRequest, content(http.MethodDelete, "/path?path=/", "").status)
	require.Equal(t, "directory", content(http.MethodGet, "/path?path=/d", "").json(t)["type"])
	require.Equal(t, http.StatusNoContent, content(http.MethodDelete, "/path?path=/d", "").status)
	require.Equal(t, http.StatusNotFound, content(http.MethodDelete, "/path?path=/d", "").status)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodDelete, "/volumes/"+id, "").status)
	require.Equal(t, http.StatusNotFound, content(http.MethodGet, "/file?path=y", "").status)
}

func TestSecretsNeverGiveTheirValue(t *testing.T) {
	l := newLab(t, Options{})
	for _, a := range []answer{
		l.api(http.MethodPost, "/secrets", `{"name":"tok","value":"hush","metadata":{"a":"b"}}`),
		l.api(http.MethodPost, "/secrets/tok", `{"value":"hush2"}`),
		l.api(http.MethodGet, "/secrets/tok", ""),
		l.api(http.MethodGet, "/secrets", ""),
	} {
		require.Less(t, a.status, 300)
		require.NotContains(t, a.body, "hush")
		require.Contains(t, a.body, `"name":"tok"`)
	}
	require.EqualValues(t, 2, l.api(http.MethodGet, "/secrets/tok", "").json(t)["currentVersion"])
	require.Equal(t, http.StatusNoContent, l.api(http.MethodDelete, "/secrets/tok", "").status)
	require.Equal(t, http.StatusNotFound, l.api(http.MethodGet, "/secrets/tok", "").status)
}
