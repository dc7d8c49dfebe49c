package gateway

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// running counts the processes of this machine that sleep for so long.
func running(t *testing.T, seconds string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(b), "sleep\x00"+seconds) {
			n++
		}
	}
	return n
}

// family starts children of every kind that gets away from its parent: in the
// background, deaf to signals, in a session of its own, orphaned, without its
// environment. All sleep.
func family(seconds string) string {
	s := "sleep " + seconds
	return s + " & (trap '' TERM HUP INT; exec " + s + ") & setsid " + s + " & (setsid sh -c '" + s + " & " + s + " &' &) ; env -i setsid sh -c 'nohup " + s + " >/dev/null 2>&1 &'; sleep 0.1; "
}

func startBody(script string) string {
	return string(frame(`{"process":{"cmd":"/bin/bash","args":["-l","-c",` + quoted(script) + `]},"stdin":false}`))
}

// At its deadline a command ends with all that it has started, whoever set the
// deadline and whether or not its client still listens. See e2b-dev/E2B#500.
func TestDeadlineEndsTheWholeTree(t *testing.T) {
	for i, tc := range []struct {
		name    string
		timeout string
		leaves  bool
		script  string
		want    string
	}{
		{"policy's", "", false, "wait", "ran for 1.5s, as long as policy lets it"},
		{"the client's", "1200", false, "wait", "deadline_exceeded"},
		{"the shell itself has ended", "1200", false, "exit", "deadline_exceeded"},
		{"the client has left", "1200", true, "wait", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(cfg *Config) {
				cfg.Policy.Limits.WallClock, cfg.Policy.Limits.BackgroundWallClock = time.Minute, 1500*time.Millisecond
			})
			seconds := fmt.Sprint(86_400+i, ".", os.Getpid())
			w := wire{target: "/process.Process/Start", headers: l.to("49983", "Content-Type", "application/connect+json"), body: startBody(family(seconds) + tc.script)}
			if tc.timeout != "" {
				w = w.set("Connect-Timeout-Ms", tc.timeout)
			}
			if tc.leaves {
				l.startWire(t, w)
				require.Eventually(t, func() bool { return running(t, seconds) == 6 }, 10*time.Second, 5*time.Millisecond)
			} else {
				got := l.send(t, w)
				require.Contains(t, got.Body, tc.want)
			}
			require.Eventually(t, func() bool { return running(t, seconds) == 0 }, 15*time.Second, 20*time.Millisecond)
		})
	}
}

// A command that ends in time leaves running what it put into the background.
func TestBackgroundOfAnEndedCommandLivesOn(t *testing.T) {
	l := newLab(t)
	seconds := fmt.Sprint(86_500, ".", os.Getpid())
	got := l.send(t, wire{target: "/process.Process/Start", headers: l.to("49983", "Content-Type", "application/connect+json", "Connect-Timeout-Ms", "1000"),
		body: startBody("nohup sleep " + seconds + " >/dev/null 2>&1 &")})
	require.Contains(t, got.Body, `"exited":true`)
	require.Never(t, func() bool { return running(t, seconds) == 0 }, 2500*time.Millisecond, 100*time.Millisecond)
}

// A process that passes its output limit ends with all that it has started.
func TestOutputLimitEndsTheWholeTree(t *testing.T) {
	l := newLab(t, func(cfg *Config) { cfg.Policy.Limits.OutputBytes = 100_000 })
	seconds := fmt.Sprint(86_600, ".", os.Getpid())
	got := l.send(t, wire{target: "/process.Process/Start", headers: l.to("49983", "Content-Type", "application/connect+json"), body: startBody(family(seconds) + "exec yes")})
	require.Contains(t, got.Body, "The output limit of 100000 bytes was passed")
	require.Eventually(t, func() bool { return running(t, seconds) == 0 }, 15*time.Second, 20*time.Millisecond)
}

// What will not die takes its sandbox with it, where the gateway has the key.
func TestSandboxIsKilledWhereItsProcessesWillNotDie(t *testing.T) {
	deleted := make(chan string, 1)
	b, edit := audited(t, audit.Options{})
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			deleted <- r.URL.Path
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
		default:
			b, _ := io.ReadAll(r.Body)
			if strings.Contains(string(b), "Max file locks") {
				streamAnswer(w, frame(`{"event":{"start":{"pid":8}}}`), frame(`{"event":{"end":{"exitCode":1,"exited":true,"status":"exit status 1"}}}`), endFrame("{}"))
				return
			}
			streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`), endFrame(`{"error":{"code":"deadline_exceeded"}}`))
		}
	}, func(cfg *Config) {
		vault(cfg)
		edit(cfg)
		cfg.State = NewState()
		cfg.State.remember("isbx1", sandbox{client: "team-a", envdToken: redact.NewSecret("x"), envdKnown: true})
	})
	h.do(t, "POST", "/process.Process/Start", startHeaders("X-Access-Token", sealedEnvd("isbx1", "team-a", "x")), command(t, "sleep 60"))
	require.Equal(t, "/sandboxes/isbx1", <-deleted)
	require.Eventually(t, func() bool { return len(b.teardowns(t)) == 1 }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, endedByWallClock, b.teardowns(t)[0].DestroyedBy)
}
