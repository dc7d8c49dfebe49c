package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// tty is a shell on a terminal behind the gateway, as the SDK opens one.
type tty struct {
	*estate
	base   string // where it is typed into
	pid    uint32
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	out   strings.Builder
	shown *sync.Cond // there is more of out
}

func terminalStart() *processpb.StartRequest {
	return &processpb.StartRequest{
		Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}, Envs: map[string]string{"TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PROMPT_COMMAND": "", "PS1": "user@e2b:~$ "}},
		Pty:     &processpb.PTY{Size: &processpb.PTY_Size{Cols: 80, Rows: 24}},
	}
}

func openTerminal(t testing.TB, s *estate, env ...string) *tty {
	t.Helper()
	start := terminalStart()
	for i := 0; i+1 < len(env); i += 2 {
		start.Process.Envs[env[i]] = env[i+1]
	}
	l := openTerminalAt(t, s, s.gateway, start)
	l.shows(t, "$ ")
	return l
}

func openTerminalAt(t testing.TB, s *estate, base string, start *processpb.StartRequest) *tty {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client, req := rpc[processpb.StartRequest, processpb.StartResponse](s, base, "Start", start)
	stream, err := client.CallServerStream(ctx, req)
	require.NoError(t, err)
	require.True(t, stream.Receive(), stream.Err())
	l := &tty{estate: s, base: base, pid: stream.Msg().GetEvent().GetStart().GetPid(), cancel: cancel, done: make(chan struct{})}
	l.shown = sync.NewCond(&l.mu)
	go func() {
		defer close(l.done)
		for stream.Receive() {
			l.mu.Lock()
			l.out.Write(stream.Msg().GetEvent().GetData().GetPty())
			l.mu.Unlock()
			l.shown.Broadcast()
		}
		_ = stream.Close()
	}()
	t.Cleanup(l.kill)
	return l
}

// kill ends the shell and waits until its output has ended.
func (l *tty) kill() {
	_ = l.signal(l.pid)
	l.cancel()
	<-l.done
}

func (s *estate) signal(pid uint32) error {
	client, req := rpc[processpb.SendSignalRequest, processpb.SendSignalResponse](s, s.direct, "SendSignal", &processpb.SendSignalRequest{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}}, Signal: processpb.Signal_SIGNAL_SIGKILL,
	})
	_, err := client.CallUnary(context.Background(), req)
	return err
}

// shows waits until the terminal has shown the text, and forgets all up to it.
func (l *tty) shows(t testing.TB, text string) {
	t.Helper()
	var seen string
	defer func() {
		if t.Failed() {
			t.Logf("the terminal shows %q", seen)
		}
	}()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		seen = l.out.String()
		_, after, ok := strings.Cut(l.out.String(), text)
		if ok {
			l.out.Reset()
			l.out.WriteString(after)
		}
		return ok
	}, 10*time.Second, 5*time.Millisecond, "%q", text)
}

func (l *tty) types(keys string) error {
	client, req := rpc[processpb.SendInputRequest, processpb.SendInputResponse](l.estate, l.base, "SendInput", &processpb.SendInputRequest{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}},
		Input:   &processpb.ProcessInput{Input: &processpb.ProcessInput_Pty{Pty: []byte(keys)}},
	})
	_, err := client.CallUnary(l.t.Context(), req)
	return err
}

func TestATerminalIsTypedInto(t *testing.T) {
	l := openTerminal(t, newEstate(t))
	for _, key := range strings.Split("echo on\x7fne", "") {
		require.NoError(t, l.types(key))
	}
	require.NoError(t, l.types("\r"))
	l.shows(t, "\rone\r\n")
	l.shows(t, "$ ")
	require.NoError(t, l.types("x=$((6*7)); echo \"=$x\"\r"))
	l.shows(t, "=42\r\n")
	l.shows(t, "$ ")
	require.NoError(t, l.types("\x1b[A\r")) // the line is read from the screen, and typed again
	l.shows(t, "=42\r\n")
	l.shows(t, "$ ")
	require.NoError(t, l.types("cat /etc/hostn\t"))
	require.NoError(t, l.types("\r"))
	l.shows(t, "\r\n")
	l.shows(t, "$ ")
}

func TestAHarmfulLineIsNotRun(t *testing.T) {
	for name, keys := range map[string][]string{
		"at once":              {"touch made; echo evil\r"},
		"key by key":           {"touch made; e", "cho ", "ev", "i", "l", "\n"},
		"after a harmless one": {"touch made\recho evil\r"},
		"read from the screen": {"touch made; echo evil \t", "\r"},
		"from a variable":      {"x=vil; touch made; echo e", "vil\r"},
		"by a macro":           {"touch made; bind '\"a\":\"b\"'\r"},
	} {
		t.Run(name, func(t *testing.T) {
			l := openTerminal(t, newEstate(t))
			for _, k := range keys[:len(keys)-1] {
				require.NoError(t, l.types(k))
			}
			err := l.types(keys[len(keys)-1])
			require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), "Blocked by policy")
			ran := l.run(t.Context(), l.direct, shell("test -e made || echo nothing was run"))
			require.Equal(t, "nothing was run\n", ran.output)
		})
	}
}

func TestAREPLOnATerminalIsJudgedInItsLanguage(t *testing.T) {
	l := openTerminal(t, newEstate(t))
	require.NoError(t, l.types("python3 -q\r"))
	l.shows(t, ">>> ")
	require.NoError(t, l.types("import os as o\r"))
	l.shows(t, ">>> ")
	require.NoError(t, l.types("6 * 7\r"))
	l.shows(t, "42\r\n")
	l.shows(t, ">>> ")
	require.ErrorContains(t, l.types("o.getenv('evil')\r"), "Blocked by policy")
}

func TestWithoutItsOutputAnUnknownLineIsRefused(t *testing.T) {
	state := NewState()
	l := openTerminal(t, newEstate(t, func(cfg *Config) { cfg.State = state }))
	l.cancel()
	<-l.done
	p, _ := state.processes.find(l.id, &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}})
	require.Eventually(t, func() bool { return !p.typing().session.Seen() }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, l.types("\x1b[A"))
	require.ErrorContains(t, l.types("\r"), "does not pass through this gateway")
	require.NoError(t, l.types("\x03true\r"))
}

func TestPasswordsTypedIntoATerminalAreNotLogged(t *testing.T) {
	l := openTerminal(t, newEstate(t))
	require.NoError(t, l.types("read -s -p 'Password: ' x\r"))
	l.shows(t, "\rPassword: ")
	require.NoError(t, l.types("hunter2\r"))
	l.shows(t, "$ ")
	require.NotEmpty(t, l.log.FilterMessage("decision").All())
	for _, entry := range l.log.All() {
		require.NotContains(t, fmt.Sprint(entry.ContextMap()), "hunter2")
	}
	last := l.log.FilterMessage("decision").All()
	subjects := fmt.Sprint(last[len(last)-1].ContextMap()["subjects"])
	require.Contains(t, subjects, "input")
	require.NotContains(t, subjects, "sha256")
}

// TestALineWithASecretIsTypedAgainAsItIs, although the client sees it hidden.
func TestALineWithASecretIsTypedAgainAsItIs(t *testing.T) {
	secret := "sk-0123456789abcdef0123456789abcdef"
	l := openTerminal(t, newEstate(t, func(cfg *Config) { cfg.Redact = RedactKnown }), "TOKEN", secret)
	require.NoError(t, l.types("x="+secret+"; echo ${#x}\r"))
	l.shows(t, "\r35\r\n")
	l.shows(t, "$ ")
	require.NoError(t, l.types("\x1b[A\r"))
	l.shows(t, "\r35\r\n")
	require.NoError(t, l.types("echo ${#x}${#x}\r"))
	l.shows(t, "\r3535\r\n")
}

func TestTerminalsCanBeDenied(t *testing.T) {
	s := newEstate(t, func(cfg *Config) { cfg.DenyPTY = true })
	got := s.run(t.Context(), s.gateway, terminalStart())
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(got.err))
	require.ErrorContains(t, got.err, "pty deny")
}
