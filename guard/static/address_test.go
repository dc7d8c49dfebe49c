package static

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// Clients of the web read an address leniently; what is judged is where they go.
func TestAddressesAsClientsReadThem(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for _, address := range []string{
		"http://169.254.169.254/", "HTTP://169.254.169.254/", "http://2852039166/", "http://0xA9FEA9FE/", "http://0251.0376.0251.0376/",
		"http://169.254.43518/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/", "http://user:pw@169.254.169.254/",
		`http:\\169.254.169.254\x`, `http:/\169.254.169.254/x`, "http:169.254.169.254/x", "http:/169.254.169.254/x", "http:////169.254.169.254/x",
		"http://169.254.\n169.254/", "ht\ttp://169.254.169.254/", "\x01 http://169.254.169.254/", "http://１６９.254.169.254/", "http://169。254。169。254/",
		"http://%31%36%39.254.169.254/", `http://169.254.169.254\@ok.example/`, "http://169.254.169.254./", "http://metadata.google.internal./x",
		"http://169.254.169.254/ a b c d e f g h i j", "ws://169.254.169.254/", "http://169.254.169.254/" + strings.Repeat("x", 8000),
		"http://169-254-169-254.nip.io/", "http://x.169.254.169.254.sslip.io/",
	} {
		for name, text := range map[string]string{
			"after a verb":   "FETCH " + address,
			"by itself":      address,
			"in JSON":        `{"url":` + quoteJSON(address) + `}`,
			"in a JSON list": `{"urls":[` + quoteJSON(address) + `]}`,
		} {
			f := g.Inspect(guard.Subject{Kind: guard.KindTool, Target: "fetch", Text: text})
			assert.Contains(t, rulesOf(f), "metadata-endpoint", "%s: %q", name, text)
		}
	}

	for _, address := range []string{"file:///etc/shadow", "FILE:///etc/shadow", "file:/etc/shadow", "file:etc/shadow", "file://localhost/etc/shadow", "file:///etc/%73hadow", `file:\\\etc\shadow`, "file:///x/../etc/shadow"} {
		f := g.Inspect(guard.Subject{Kind: guard.KindTool, Target: "fetch", Text: "FETCH " + address})
		assert.Contains(t, rulesOf(f), "read-credentials", address)
	}

	for _, text := range []string{
		"FETCH https://example.com/a b", "http: is a scheme", "FETCH http://", "FETCH https://169.254.169.254.example.com/", "file: a note", "FETCH file:///home/user/a.txt",
		"FETCH https://example.com/" + strings.Repeat("x", maxAddress),
	} {
		assert.Empty(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindTool, Target: "fetch", Text: text})), "%.60s", text)
	}
}

func quoteJSON(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "\x01", `\u0001`).Replace(s) + `"`
}
