package gateway

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secretPaths are spellings of files that hold secrets.
var secretPaths = []string{
	"/etc/shadow", "//etc//shadow", "/etc/./shadow", "/home/user/../../etc/shadow", "../../etc/shadow", "../etc/shadow", "../../../../etc/shadow", "a/../../../etc/shadow",
	"/home/user/.ssh/id_rsa", "~/.ssh/id_ed25519", ".ssh/id_rsa", "./.ssh/id_rsa", "x/../.ssh/id_rsa", "/root/.ssh/id_rsa", "~/.aws/credentials", ".aws/credentials", "/root/.aws/credentials",
	"/home/user/.config/gcloud/credentials.db", "/proc/1/environ", "/proc/self/environ", "/proc//42/./environ", "/proc/1/task/1/environ", "/proc/1/root/etc/shadow", "/proc/self/root/etc/shadow",
	"/proc/thread-self/environ", "/proc/self/cwd/.aws/credentials", "/dev/fd/../../proc/self/environ", "/.//etc/gshadow",
}

// envd reads files as root, whoever asks. See e2b-dev/infra PR 1862 for what a
// path can look like on the way.
func TestSecretFilesAreNotReadWhateverTheirPathIsSpelled(t *testing.T) {
	l := newLab(t, withStaticGuard(t))
	for _, path := range secretPaths {
		for _, query := range []string{"path=" + url.QueryEscape(path), "username=root&path=" + percent(path), "username=bob&path=" + url.QueryEscape(path)} {
			records := len(l.recorded())
			got := l.send(t, wire{method: http.MethodGet, target: "/files?" + query, headers: l.to("49983")})
			assert.True(t, refused(got), "%s: %d", query, got.Status)
			assert.Empty(t, l.recorded()[records:], query)
		}
		assert.True(t, refused(l.move(t, path, "/home/user/x")), path)
		assert.True(t, refused(l.compose(t, "/home/user/x", path)), path)
	}
	for _, path := range []string{"/home/user/.aws", "/home/user/.ssh", "~/.config", "/home/user", "/root", "/etc", "/proc/1"} {
		assert.True(t, refused(l.move(t, path, "/home/user/x")), path)
	}
	require.Equal(t, http.StatusOK, l.put(t, "/home/user/notes.txt", "x").Status)
	assert.Equal(t, http.StatusOK, l.send(t, wire{method: http.MethodGet, target: "/files?path=notes.txt", headers: l.to("49983")}).Status)
	assert.True(t, refused(l.send(t, wire{method: http.MethodGet, target: "/envs", headers: l.to("49983")})))
}

// percent writes every byte of a text percent-encoded.
func percent(s string) string {
	const hex = "0123456789abcdef"
	var b []byte
	for i := range len(s) {
		b = append(b, '%', hex[s[i]>>4], hex[s[i]&15])
	}
	return string(b)
}
