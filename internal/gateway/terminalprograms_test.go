package gateway

import (
	"os/exec"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static"
)

// session is what a person types into a program of a terminal, and what it makes
// of it.
type session struct {
	program string // that must be there
	steps   []keys
	// check is a command that prints want once all is done.
	check, want string
}

// sessions are ordinary: nothing of them is refused.
func sessions() map[string]session {
	const back = "\x1b[?2004h" + shellPrompt
	return map[string]session{
		"here-document": {"cat", []keys{
			{"cat > notes.md <<EOF\r", "> "}, {"# Notes\r", "> "}, {"\r", "> "}, {"Don't forget: it's \"quoted\", `code`, and $HOME.\r", "> "}, {"| a | b |\r", "> "},
			{"- bind mounts, stty, read -n\r", "> "}, {"EOF\r", back}, {"echo $((6*7))\r", "42"},
		}, "grep -c . notes.md", "4\n"},
		"here-document at once": {"cat", []keys{{"cat > a.py <<'EOF'\nimport os\nfor i in range(3):\n    print(i)\nEOF\r", back}}, "python3 a.py", "0\n1\n2\n"},
		"here-document, pasted": {"cat", []keys{{"\x1b[200~cat > a.py <<'EOF'\nprint('hi')\nEOF\n\x1b[201~\r", back}}, "python3 a.py", "hi\n"},
		"Dockerfile":            {"cat", []keys{{"cat > Dockerfile <<X\r", "> "}, {"FROM python:3.12\r", "> "}, {"RUN apt-get update && apt-get install -y git && rm -rf /var/lib/apt/lists/*\r", "> "}, {"X\r", back}}, "wc -l < Dockerfile", "2\n"},
		"a loop, line by line":  {"bash", []keys{{"for i in 1 2; do\r", "> "}, {"echo \"n$i\"\r", "> "}, {"done > out\r", back}}, "cat out", "n1\nn2\n"},
		"python, a block":       {"python3", []keys{{"python3 -q\r", ">>> "}, {"def f(x):\r", "... "}, {"    return x * 2\r", "... "}, {"\r", ">>> "}, {"open('out', 'w').write(str(f(21)))\r", ">>> "}, {"\x04", back}}, "cat out", "42"},
		"python, a class":       {"python3", []keys{{"python3 -q\r", ">>> "}, {"class A:\r", "... "}, {"    def m(self):\r", "... "}, {"        return 'm'\r", "... "}, {"\r", ">>> "}, {"open('out', 'w').write(A().m())\r", ">>> "}, {"exit()\r", back}}, "cat out", "m"},
		"node, a block":         {"node", []keys{{"node\r", "> "}, {"function f(a) {\r", "... "}, {"return a + 1\r", "... "}, {"}\r", "> "}, {"require('fs').writeFileSync('out', `${f(41)}`)\r", "> "}, {".exit\r", back}}, "cat out", "42"},
		"vim":                   {"vim", []keys{{"vim -u NONE notes.md\r", "notes.md"}, {"i", ""}, {"# Title\r\rdon't | do\rmake: `x`\r", ""}, {"\x1b", ""}, {":wq\r", back}}, "head -1 notes.md", "# Title\n"},
		"vim, more":             {"vim", []keys{{"vim -u NONE a.txt\r", "a.txt"}, {"ione\rtwo\x1b", ""}, {"kyyp", ""}, {":%s/one/1/g\r", ""}, {":w\r", "written"}, {":!ls\r", "a.txt"}, {"\r", ""}, {":q\r", back}}, "cat a.txt", "1\n1\ntwo\n"},
		"less":                  {"less", []keys{{"seq 100 | less\r", ":"}, {"\x1b[B", ""}, {"\r", ""}, {"/50\r", "50"}, {"G", "100"}, {"q", back}}, "echo", "\n"},
		"top":                   {"top", []keys{{"top\r", "load average"}, {"q", back}}, "echo", "\n"},
		"git commit": {"git", []keys{
			{"git init -q . && git config user.email a@b.c && git config user.name n && git config core.editor 'vim -u NONE' && touch x && git add x\r", back},
			{"git commit\r", "COMMIT_EDITMSG"}, {"iAdd x\x1b", ""}, {":wq\r", back},
		}, "git log --format=%s", "Add x\n"},
		"sqlite": {"sqlite3", []keys{{"sqlite3 db\r", "sqlite> "}, {"create table t (\r", "...> "}, {"a int);\r", "sqlite> "}, {"insert into t values (42);\r", "sqlite> "}, {".quit\r", back}}, "sqlite3 db 'select a from t'", "42\n"},
	}
}

// TestOrdinaryProgramsAreUsedOnATerminal types the sessions with the embedded
// guard, a message a line and a message a key.
func TestOrdinaryProgramsAreUsedOnATerminal(t *testing.T) {
	embedded, err := static.New(static.Options{})
	require.NoError(t, err)
	for name, c := range sessions() {
		if _, err := exec.LookPath(c.program); err != nil {
			continue // not all machines have all programs
		}
		for how, cut := range map[string]bool{"lines": false, "keys": true} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				a := newEstate(t, func(cfg *Config) { cfg.Guard = embedded }).arenaOf(t)
				for _, k := range c.steps {
					messages := []string{k.typed}
					if cut && !strings.Contains(k.typed, "\x1b[") {
						messages = strings.Split(k.typed, "")
					}
					for _, m := range messages {
						require.NoError(t, a.types(m), "%q", k.typed)
					}
					if k.shown != "" {
						a.shows(t, k.shown)
					}
				}
				require.Equal(t, c.want, a.run(t.Context(), a.direct, shell("cd "+a.dir+" && "+c.check)).output)
			})
		}
	}
}

func (s *estate) arenaOf(t *testing.T) *arena {
	t.Helper()
	return s.arena(t, s.gateway, "programs")
}

// TestCommandsOfProgramsAreJudged where they are typed.
func TestCommandsOfProgramsAreJudged(t *testing.T) {
	for name, c := range map[string]session{
		"vim":            {"vim", []keys{{"vim -u NONE x\r", "x"}, {":!echo evil\r", ""}}, "", ""},
		"vim, read":      {"vim", []keys{{"vim -u NONE x\r", "x"}, {":r !echo evil\r", ""}}, "", ""},
		"vim, filter":    {"vim", []keys{{"vim -u NONE x\r", "x"}, {"ione\x1b", ""}, {"!!echo evil\r", ""}}, "", ""},
		"vim, its text":  {"vim", []keys{{"vim -u NONE x\r", "x"}, {"iecho e\x1bavil\x1b", ""}, {":w !sh\r", ""}}, "", ""},
		"less":           {"less", []keys{{"seq 100 | less\r", ":"}, {"!echo evil\r", ""}}, "", ""},
		"python":         {"python3", []keys{{"python3 -q\r", ">>> "}, {"import os\r", ">>> "}, {"os.system('echo evil')\r", ""}}, "", ""},
		"sqlite":         {"sqlite3", []keys{{"sqlite3\r", "sqlite> "}, {".shell echo evil\r", ""}}, "", ""},
		"gdb":            {"gdb", []keys{{"gdb -q\r", "(gdb) "}, {"!echo evil\r", ""}}, "", ""},
		"git log":        {"git", []keys{{"git init -q . && seq 99 > x && git add x && git -c user.name=n -c user.email=e commit -qm x && git -c core.pager=less show\r", ":"}, {"!echo evil\r", ""}}, "", ""},
		"a commit's vim": {"git", []keys{{"git init -q . && touch x && git add x\r", "\x1b[?2004h"}, {"git -c core.editor='vim -u NONE' -c user.name=n -c user.email=e commit\r", "COMMIT_EDITMSG"}, {":!echo evil\r", ""}}, "", ""},
	} {
		if _, err := exec.LookPath(c.program); err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newEstate(t).arenaOf(t)
			for _, k := range c.steps[:len(c.steps)-1] {
				require.NoError(t, a.types(k.typed))
				if k.shown != "" {
					a.shows(t, k.shown)
				}
			}
			err := a.types(c.steps[len(c.steps)-1].typed)
			require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)
		})
	}
}
