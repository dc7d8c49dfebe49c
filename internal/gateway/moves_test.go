package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (l *lab) move(t *testing.T, from, to string) answer {
	t.Helper()
	b, err := json.Marshal(map[string]string{"source": from, "destination": to})
	require.NoError(t, err)
	return l.send(t, wire{target: "/filesystem.Filesystem/Move", headers: l.to("49983", "Content-Type", "application/json"), body: string(b)})
}

func (l *lab) compose(t *testing.T, to string, from ...string) answer {
	t.Helper()
	b, err := json.Marshal(map[string]any{"source_paths": from, "destination": to})
	require.NoError(t, err)
	return l.send(t, wire{target: "/files/compose", headers: l.to("49983", "Content-Type", "application/json"), body: string(b)})
}

// What is moved to where it runs by itself, or to a name that says code, is judged
// as if it were written there.
func TestMovedFilesAreJudgedWhereTheyArrive(t *testing.T) {
	for name, disturb := range map[string]bool{"from memory": false, "from the sandbox": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, withStaticGuard(t))
			put := func(path, text string) {
				t.Helper()
				require.Equal(t, http.StatusOK, l.put(t, path, text).Status)
				if disturb {
					require.False(t, refused(l.run(t, "true")))
				}
			}
			for _, to := range []string{"/home/user/repo/.git/hooks/pre-commit", "/home/user/.bashrc", "/home/user/x.sh", "/etc/profile.d/x.sh", "~/.profile", ".bash_aliases", "x/../.zshrc"} {
				put("/home/user/a.txt", harm)
				assert.True(t, refused(l.move(t, "/home/user/a.txt", to)), to)
				assert.True(t, refused(l.move(t, "a.txt", to)), to)
			}
			put("/home/user/a.txt", "export EDITOR=vi\n")
			assert.False(t, refused(l.move(t, "/home/user/a.txt", "/home/user/.bash_aliases")))
			put("/home/user/a.txt", harm)
			require.False(t, refused(l.move(t, "/home/user/a.txt", "/home/user/b.txt")), "data by its name is no harm yet")
			assert.True(t, refused(l.run(t, "sh b.txt")), "but when it is run it is")
			assert.True(t, refused(l.move(t, "/home/user/none", "/home/user/.bashrc")), "what cannot be read does not go where it runs by itself")
		})
	}
}

func TestComposedFilesAreJudgedAsOne(t *testing.T) {
	for name, disturb := range map[string]bool{"from memory": false, "from the sandbox": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, withStaticGuard(t))
			put := func(parts ...string) {
				t.Helper()
				for i, text := range parts {
					require.Equal(t, http.StatusOK, l.put(t, "/home/user/p"+string(rune('0'+i))+".part", text).Status)
				}
				if disturb {
					require.False(t, refused(l.run(t, "true")))
				}
			}
			first, second := harm[:12], harm[12:]
			put(first, second)
			for _, to := range []string{"/home/user/x.sh", "x.sh", "~/.bashrc", "/home/user/repo/.git/hooks/post-commit"} {
				assert.True(t, refused(l.compose(t, to, "p0.part", "/home/user/p1.part")), to)
			}
			put("#", "!/bin/sh\n"+harm)
			assert.True(t, refused(l.compose(t, "/home/user/data.bin", "p0.part", "p1.part")), "a first line in two parts")

			put("echo ", "fine\n")
			require.Equal(t, http.StatusOK, l.compose(t, "/home/user/x.sh", "p0.part", "p1.part").Status)
			got := l.run(t, "bash x.sh")
			require.False(t, refused(got))
			assert.True(t, refused(l.compose(t, "/home/user/y", "p0.part"))) // the parts are gone

			put(first, second)
			require.Equal(t, http.StatusOK, l.compose(t, "/home/user/x.txt", "p0.part", "p1.part").Status)
			assert.True(t, refused(l.run(t, "bash x.txt")))

			put(strings.Repeat("true\n", maxFileText/4), "true\n")
			assert.True(t, refused(l.compose(t, "/home/user/x.sh", "p0.part", "p1.part")), "code that is too long to be read")
			assert.Equal(t, http.StatusOK, l.compose(t, "/home/user/x.csv", "p0.part", "p1.part").Status, "data that is")
			assert.True(t, refused(l.compose(t, "/home/user/x", "/etc/shadow")))
			assert.True(t, refused(l.compose(t, "/home/user/x", "/home/user/../../etc/./shadow")))
		})
	}
}

// envd reads the names of members in any case, and the last of two; what it could
// read differently is refused.
func TestComposeIsReadAsEnvdReadsIt(t *testing.T) {
	l := newLab(t)
	require.Equal(t, http.StatusOK, l.put(t, "a", "1").Status)
	for name, body := range map[string]string{
		"another case":      `{"source_paths":["a"],"destination":"b","Source_Paths":["evil"]}`,
		"another case only": `{"SOURCE_PATHS":["a"],"destination":"b"}`,
		"twice":             `{"source_paths":["a"],"destination":"b","destination":"evil"}`,
		"trailing":          `{"source_paths":["a"],"destination":"b"}{"destination":"evil"}`,
		"no list":           `{"source_paths":"a","destination":"b"}`,
		"empty":             `{"source_paths":[],"destination":"b"}`,
		"no destination":    `{"source_paths":["a"]}`,
		"an empty source":   `{"source_paths":[""],"destination":"b"}`,
		"a NUL":             "{\"source_paths\":[\"a\"],\"destination\":\"b\\u0000\"}",
		"a blocked source":  `{"source_paths":["evil"],"destination":"b"}`,
	} {
		records, _ := l.mark()
		got := l.send(t, wire{target: "/files/compose", headers: l.to("49983"), body: body})
		assert.True(t, refused(got), name)
		assert.Empty(t, l.recorded()[records:], name)
	}
}
