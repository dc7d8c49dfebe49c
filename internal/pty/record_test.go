package pty

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var record = flag.Bool("record", false, "record testdata again, from the programs of this machine")

// recording is an ordinary session of a person at a terminal.
type recording struct {
	Name   string  `json:"name"`
	Events []event `json:"events"`
}

// TestOrdinarySessionsAreNotRefused replays what was typed and shown in real
// programs: nothing of it is refused, and what is sent is what was typed, but for
// lines that were read from the screen.
func TestOrdinarySessionsAreNotRefused(t *testing.T) {
	if *record {
		recordAll(t)
	}
	lines, sessions := 0, 0
	for _, file := range []string{"lines.json", "programs.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		var all []recording
		require.NoError(t, json.Unmarshal(b, &all))
		for _, r := range all {
			t.Run(r.Name, func(t *testing.T) { replay(t, r.Events) })
			if file == "programs.json" {
				sessions++
				continue
			}
			for _, e := range r.Events {
				lines += strings.Count(e.Type, "\r")
			}
		}
	}
	require.GreaterOrEqual(t, lines, 200)
	require.GreaterOrEqual(t, sessions, 50)
}

func replay(t *testing.T, events []event) {
	review := reviewer(t)
	s := New(Options{Command: "/bin/bash", Args: []string{"-i", "-l"}, Cols: 80, Rows: 24, UTF8: true})
	var look *Look
	for _, e := range events {
		switch {
		case e.Show != nil:
			s.Output(e.Show)
		case e.Type != "":
			p := s.Keys([]byte(e.Type))
			require.Empty(t, judge(review, p), "%q", e.Type)
			if look = p.Look; look == nil {
				require.Equal(t, cmp.Or(e.Sent, e.Type), string(p.Send))
			}
			s.Commit(p)
		case e.Ask != "":
			require.NotNil(t, look)
			require.Equal(t, e.Ask, string(look.Ask))
		case e.Sent != "":
			p, ok := s.Read(look, false)
			require.True(t, ok)
			require.Empty(t, judge(review, p))
			require.Equal(t, e.Sent, string(p.Send))
			s.Commit(p)
		}
	}
}

func recordAll(t *testing.T) {
	var lines, sessions []recording
	for _, script := range [][2]string{{"bash", bashLines}, {"bash with vi keys", viLines}} {
		lines = append(lines, recordSession(t, script[0], strings.Split(strings.TrimSpace(script[1]), "\n")))
	}
	for _, s := range strings.Split(strings.TrimSpace(programSessions), "\n\n") {
		keys := strings.Split(s, "\n")
		sessions = append(sessions, recordSession(t, strings.TrimSuffix(keys[0], "⏎"), append(keys, `\x03`)))
	}
	for file, all := range map[string][]recording{"lines.json": lines, "programs.json": sessions} {
		b, err := json.MarshalIndent(all, "", "\t")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join("testdata", file), append(b, '\n'), 0o644))
	}
}

// recordSession types a script, a message a line; an Enter is added to those
// without one that end in "⏎".
func recordSession(t *testing.T, name string, script []string) recording {
	home := filepath.Join(os.TempDir(), "home-of-user") // programs show it
	require.NoError(t, os.Mkdir(home, 0o755))
	defer os.RemoveAll(home)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "project", "src"), 0o755))
	const prompt = "PS1='user@e2b:\\w$ '\n"
	for file, text := range map[string]string{
		"project/main.py": "print('hello')\n", "project/src/util.py": "def add(a, b):\n    return a + b\n", "notes.txt": strings.Repeat("a line of text\n", 60),
		"data.csv": "a,b\n1,2\n", ".bash_profile": prompt, ".bashrc": prompt, ".bash_history": "ls -la\ncd project\npython3 main.py\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(home, file), []byte(text), 0o600))
	}
	l := startTerminal(t, home)
	l.settle(300*time.Millisecond, nil)
	for _, keys := range script {
		keys = strings.ReplaceAll(keys, "⏎", "\r")
		keys = unescape(keys)
		why := l.press(keys)
		assert.Empty(t, why, "%s: %q", name, keys)
		l.settle(200*time.Millisecond, nil)
	}
	return recording{name, l.events}
}

func unescape(s string) string {
	return strings.NewReplacer(`\e`, "\x1b", `\t`, "\t", `\x03`, "\x03", `\x04`, "\x04", `\x7f`, "\x7f", `\s`, " ", "↵", "\n", `^A`, "\x01", `^E`, "\x05", `^K`, "\x0b", `^U`, "\x15",
		`^W`, "\x17", `^Y`, "\x19", `^T`, "\x14", `^R`, "\x12", `^P`, "\x10", `^L`, "\x0c", `^X`, "\x18", `^O`, "\x0f", `^Z`, "\x1a", `^V`, "\x16").Replace(s)
}
