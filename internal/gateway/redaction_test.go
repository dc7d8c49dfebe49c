package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/redact"
)

const plantedKey = "PLANTED-0123456789-abcdefghij"

// shell runs a command as the SDKs do.
func (l *lab) shell(t *testing.T, command string, envs map[string]string) answer {
	t.Helper()
	msg, err := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", command}, "envs": envs}})
	require.NoError(t, err)
	return l.send(t, wire{
		target: "/process.Process/Start", headers: l.to("49983", "Content-Type", "application/connect+json", "Connect-Protocol-Version", "1"),
		body: string(frame(string(msg))),
	})
}

// printed is the standard output in a stream of Connect frames.
func printed(body string) string {
	var out strings.Builder
	for _, part := range strings.Split(body, `"stdout":"`)[1:] {
		text, _ := base64.StdEncoding.DecodeString(part[:strings.IndexByte(part, '"')])
		out.Write(text)
	}
	return out.String()
}

func TestSecretsOfTheEnvironmentAreHiddenInOutput(t *testing.T) {
	l := newLab(t)
	created := l.send(t, wire{target: "/v2/sandboxes", headers: []string{"X-API-KEY", labKey}, body: `{"templateID":"base","envVars":{"OPENAI_API_KEY":"` + plantedKey + `","GREETING":"hello"}}`})
	require.Equal(t, http.StatusCreated, created.Status, created.Body)
	var sb struct{ SandboxID, EnvdAccessToken string }
	require.NoError(t, json.Unmarshal([]byte(created.Body), &sb))
	l.sandbox, l.token = sb.SandboxID, sb.EnvdAccessToken

	got := printed(l.shell(t, `echo "$GREETING $OPENAI_API_KEY"; echo "$OPENAI_API_KEY" | base64; printf %s "$OPENAI_API_KEY" | rev; for i in $(seq 1 29); do printf %s "${OPENAI_API_KEY:$((i-1)):1}"; done`, nil).Body)
	assert.True(t, strings.HasPrefix(got, "hello <secret:known>\n"), got)
	for _, form := range []string{plantedKey[4:], base64.StdEncoding.EncodeToString([]byte(plantedKey))[8:30]} {
		assert.NotContains(t, got, form)
	}
	assert.NotContains(t, got, "jihgfedcba-9876")

	got = printed(l.shell(t, `echo "$DB_PASSWORD and $OPENAI_API_KEY"`, map[string]string{"DB_PASSWORD": "s3cret-of-the-command"}).Body)
	assert.Equal(t, "<secret:known> and <secret:known>\n", got)

	missing := l.send(t, wire{method: "GET", target: "/files?path=/tmp/" + plantedKey, headers: l.to("49983")})
	require.Equal(t, http.StatusNotFound, missing.Status)
	assert.Contains(t, missing.Body, "<secret:known>")
}

func TestSecretsAreHiddenInTextFilesAtTheSameLength(t *testing.T) {
	l := newLab(t)
	l.shell(t, `mkdir -p /tmp/files; printf 'key: %s\n%08000d\nkey: %s end' "$A_TOKEN" 0 "$A_TOKEN" > /tmp/files/text; printf '\0%s' "$A_TOKEN" > /tmp/files/binary; printf plain > /tmp/files/plain`, map[string]string{"A_TOKEN": plantedKey})
	get := func(path string, headers ...string) answer {
		return l.send(t, wire{method: "GET", target: "/files?path=/tmp/files/" + path, headers: l.to("49983", headers...)})
	}
	text := get("text")
	require.Equal(t, http.StatusOK, text.Status)
	assert.NotContains(t, text.Body, "0123456789-abc")
	assert.Len(t, text.Body, len("key: \n\nkey:  end")+8000+2*len(plantedKey))
	assert.True(t, strings.HasSuffix(text.Body, "<secret:known>*************** end"), text.Body[8000:])
	assert.Equal(t, "none", text.Header.Get("Accept-Ranges"))

	part := get("text", "Range", "bytes=5-20")
	assert.Equal(t, http.StatusOK, part.Status, "a part could hold a part of a secret")
	assert.Equal(t, text.Body, part.Body)
	assert.Equal(t, "\x00"+plantedKey, get("binary").Body)
	assert.Equal(t, "plain", get("plain").Body)
}

func TestRedactOffPassesEverything(t *testing.T) {
	l := newLab(t, func(cfg *Config) { cfg.Redact = RedactOff })
	assert.Equal(t, plantedKey+"\n", printed(l.shell(t, `echo "$A_TOKEN"`, map[string]string{"A_TOKEN": plantedKey}).Body))
}

func TestRedactAllHidesFormats(t *testing.T) {
	const github = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	assert.Equal(t, "<secret:github_token>\n", printed(newLab(t, func(cfg *Config) { cfg.Redact = RedactAll }).shell(t, "echo "+github, nil).Body))
	assert.Equal(t, github+"\n", printed(newLab(t).shell(t, "echo "+github, nil).Body))
}

// A wallet is bounded: a client must not fill the memory with variables.
func TestSecretsKeptAreBounded(t *testing.T) {
	w := new(wallet)
	var all []redact.Secret
	for range secretsKept + 1 {
		all = append(all, redact.NewSecret(strings.Repeat("x", len(all)+minShownSecret)))
	}
	assert.True(t, w.add(all[:secretsKept]))
	assert.True(t, w.add(all[:secretsKept]), "they are known already")
	assert.False(t, w.add(all))
	assert.Len(t, w.all(), secretsKept)
}

const minShownSecret = 8
