package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard"
)

// commandGuard blocks what runs "touch marker", and nothing that only mentions it:
// a comment, a longer word, a line that lacks its first letter.
type commandGuard struct {
	mu   sync.Mutex
	seen []guard.Subject
}

func (g *commandGuard) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	g.mu.Lock()
	g.seen = append(g.seen, s)
	g.mu.Unlock()
	if touches(s.Text) {
		return guard.Verdict{Decision: guard.Block, Guard: "command", Reasoning: "it makes the marker."}, nil
	}
	return guard.Verdict{Decision: guard.Pass, Guard: "command"}, nil
}

func (g *commandGuard) reviewed() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, s := range g.seen {
		fmt.Fprintf(&b, "%s %q\n", s.Language, s.Text)
	}
	return b.String()
}

var (
	touching = regexp.MustCompile(`(^|[\s'"(;&|])touch\s+marker($|[\s'");&|])`)
	comment  = regexp.MustCompile(`(^|\s)#.*`)
)

// touches reads the text as a shell would, line by line where it is no whole
// command.
func touches(text string) bool {
	f, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		first, rest, more := strings.Cut(text, "\n")
		if more {
			return touches(first) || touches(rest)
		}
		return touching.MatchString(comment.ReplaceAllString(text, ""))
	}
	found := false
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for i, w := range n.Args {
				found = found || i > 0 && n.Args[i-1].Lit() == "touch" && w.Lit() == "marker"
			}
		case *syntax.SglQuoted:
			found = found || touches(n.Value)
		case *syntax.Redirect:
			found = found || n.Hdoc != nil && touches(n.Hdoc.Lit())
		}
		return true
	})
	return found
}

func TestTheMarkersGuardBlocksNoMention(t *testing.T) {
	for _, text := range []string{"touch marker", "ls; touch  marker", "sh -c 'touch marker'", "cat <<X\ntouch marker\nX", "echo 'x\ntouch marker", "os.system('touch marker')"} {
		require.True(t, touches(text), text)
	}
	for _, text := range []string{"#touch marker", "touch xmarker", "ouch marker", "touch marke", "touch 'x marker'", "touch marker\x01#x", "touch marker\x7f", ""} {
		require.False(t, touches(text), text)
	}
}

// arena is a shell on a terminal in a directory of its own.
type arena struct {
	*tty
	dir string
}

func (s *estate) arena(t *testing.T, base, dir string, env ...string) *arena {
	t.Helper()
	dir = "/home/user/" + dir
	require.Empty(t, s.run(t.Context(), s.direct, shell("mkdir -p "+dir)).output)
	start := terminalStart()
	start.Process.Cwd = &dir
	start.Process.Args = []string{"--norc", "-i"}
	start.Process.Envs["PS1"] = shellPrompt
	start.Process.Envs["HOME"] = dir
	start.Process.Envs["HISTFILE"] = ""
	for i := 0; i+1 < len(env); i += 2 {
		start.Process.Envs[env[i]] = env[i+1]
	}
	a := &arena{openTerminalAt(t, s, base, start), dir}
	a.shows(t, shellPrompt)
	return a
}

// holds reports whether there is a file of that name.
func (a *arena) holds(name string) bool {
	req, err := http.NewRequestWithContext(a.t.Context(), "POST", a.direct+"/filesystem.Filesystem/Stat", strings.NewReader(`{"path":"`+a.dir+"/"+name+`"}`))
	require.NoError(a.t, err)
	req.Header = a.headers("49983")
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(a.t, err)
	return resp.StatusCode == http.StatusOK
}

// TestNoTrickRunsWhatWasNotSeen types every trick at a real shell: without the
// gateway, where it makes the marker, and through it, where it does not.
func TestNoTrickRunsWhatWasNotSeen(t *testing.T) {
	for name, trick := range tricks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := new(commandGuard)
			s := newEstate(t, func(cfg *Config) { cfg.Guard = g })
			direct := s.arena(t, s.direct, "direct")
			for i, k := range trick {
				require.NoError(t, direct.types(k.typed))
				if k.shown != "" && i < len(trick)-1 {
					direct.shows(t, k.shown)
				}
			}
			require.Eventually(t, func() bool { return direct.holds("marker") }, 10*time.Second, 5*time.Millisecond, "it is no trick: it does not work")

			guarded := s.arena(t, s.gateway, "guarded")
			why := ""
			for i, k := range trick {
				if err := guarded.types(k.typed); err != nil {
					require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)
					why, _, _ = strings.Cut(err.Error(), " [")
				} else if why == "" && k.shown != "" && i < len(trick)-1 {
					guarded.shows(t, k.shown)
				}
			}
			guarded.fence(t, why != "")
			require.False(t, guarded.holds("marker"), "refused: %q, reviewed:\n%s", why, g.reviewed())
			t.Logf("refused: %q", why)
		})
	}
}

// TestALocaleThatIsNotThereReadsNoUTF8: in the locale C, letters outside ASCII are
// keys of the line editor, and this one takes words away.
func TestALocaleThatIsNotThereReadsNoUTF8(t *testing.T) {
	g := new(commandGuard)
	s := newEstate(t, func(cfg *Config) { cfg.Guard = g })
	env := []string{"LC_ALL", "xx_XX.UTF-8", "LANG", "xx_XX.UTF-8"}
	const trick = "#Q touch marker\x01Ĉ\r"
	direct := s.arena(t, s.direct, "direct", env...)
	require.NoError(t, direct.types(trick))
	require.Eventually(t, func() bool { return direct.holds("marker") }, 10*time.Second, 5*time.Millisecond)
	guarded := s.arena(t, s.gateway, "guarded", env...)
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(guarded.types(trick)))
	guarded.fence(t, true)
	require.False(t, guarded.holds("marker"), g.reviewed())
}

// fence waits until the shell has read all that was typed before, whatever reads
// the terminal now.
func (a *arena) fence(t *testing.T, refused bool) {
	t.Helper()
	a.base = a.direct
	fence := "\x05\x15touch fence\r"
	ways := []string{fence, "\x03", fence, "\x1b[201~", fence, "\x1b\x1b:qa!\r", fence, "q", fence, "\x04", fence, "\x11", fence, "\r"}
	if refused {
		ways = ways[1:] // the line that was refused stands on the terminal
	}
	try := 0
	require.Eventually(t, func() bool {
		if a.holds("fence") {
			return true
		}
		if try%10 == 0 {
			_ = a.types(ways[try/10%len(ways)]) // the shell may have ended
		}
		try++
		select {
		case <-a.done:
			return true
		default:
			return false
		}
	}, 20*time.Second, 10*time.Millisecond)
}
