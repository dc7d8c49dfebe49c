package gateway

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// writer is a stream of input to a terminal, as newer SDKs open one.
type writer struct {
	t      testing.TB
	stream *connect.ClientStreamForClient[processpb.StreamInputRequest, processpb.StreamInputResponse]
}

func (l *tty) writer(ctx context.Context) *writer {
	client := connect.NewClient[processpb.StreamInputRequest, processpb.StreamInputResponse](l.client, l.base+"/process.Process/StreamInput", connect.WithProtoJSON())
	stream := client.CallClientStream(ctx)
	for k, v := range l.headers("49983") {
		stream.RequestHeader()[k] = v
	}
	w := &writer{l.t, stream}
	w.send(&processpb.StreamInputRequest{Event: &processpb.StreamInputRequest_Start{Start: &processpb.StreamInputRequest_StartEvent{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}},
	}}})
	return w
}

// send ignores errors: the stream's end tells them.
func (w *writer) send(msg *processpb.StreamInputRequest) { _ = w.stream.Send(msg) }

func (w *writer) types(keys string) {
	w.send(&processpb.StreamInputRequest{Event: &processpb.StreamInputRequest_Data{Data: &processpb.StreamInputRequest_DataEvent{
		Input: &processpb.ProcessInput{Input: &processpb.ProcessInput_Pty{Pty: []byte(keys)}},
	}}})
}

func (w *writer) close() error {
	_, err := w.stream.CloseAndReceive()
	return err
}

// A stream of keys is judged message by message, with all the rest a terminal has:
// lines from the history, lines that were given up. See e2b-dev/E2B#1034.
func TestAStreamOfKeysIsJudgedAtEveryEnter(t *testing.T) {
	l := openTerminal(t, newEstate(t))
	w := l.writer(t.Context())
	for _, k := range strings.Split("echo on\x7fne", "") {
		w.types(k)
	}
	w.types("\r")
	l.shows(t, "\rone\r\n")
	l.shows(t, "$ ")
	w.types("echo $((6*7))\r")
	l.shows(t, "42\r\n")
	l.shows(t, "$ ")
	w.types("\x1b[A") // the line is read from the screen
	w.types("\r")
	l.shows(t, "42\r\n")
	l.shows(t, "$ ")
	w.types("gone")
	l.shows(t, "gone")
	w.types("\x03")
	w.types("echo $((7*7))\r")
	l.shows(t, "49\r\n")
	l.shows(t, "$ ")
	w.types("ev")
	w.types("il")
	w.types("\r")
	err := w.close()
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "Blocked by policy")

	again := l.writer(t.Context()) // the refused line stands on the terminal
	again.types("\x15echo $((8*8))\r")
	l.shows(t, "64\r\n")
	require.NoError(t, again.close())
}

// A stream that ends in the middle of a line leaves it to whoever types next.
func TestALineIsFinishedByAnotherStream(t *testing.T) {
	for name, finish := range map[string]func(l *tty) error{
		"by SendInput":   func(l *tty) error { return l.types("il\r") },
		"by StreamInput": func(l *tty) error { w := l.writer(t.Context()); w.types("il\r"); return w.close() },
	} {
		t.Run(name, func(t *testing.T) {
			l := openTerminal(t, newEstate(t))
			w := l.writer(t.Context())
			w.types("echo ev")
			require.NoError(t, w.close())
			err := finish(l)
			require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)
		})
	}
}

// Two who type into one terminal make one line: neither half says what it does.
func TestTwoWritersMakeOneLine(t *testing.T) {
	l := openTerminal(t, newEstate(t))
	require.NoError(t, l.types("echo e"))
	w := l.writer(t.Context())
	w.types("v")
	require.NoError(t, w.close())
	require.NoError(t, l.types("i"))
	w = l.writer(t.Context())
	w.types("l\r")
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(w.close()))
	require.NoError(t, l.types("\x15"))

	// At once: every message is judged with what was sent before it, in the order
	// in which it is sent.
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 10 {
				for _, part := range []string{"echo e", "v", "il\r", "\x15"} {
					_ = l.types(part) // refused or not, as the parts happen to meet
				}
			}
		})
	}
	writers.Wait()
	require.NoError(t, l.types("\x15echo $((6*7))\r"))
	shown := ""
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		shown = l.out.String()
		return strings.Contains(shown, "42\r\n")
	}, 10*time.Second, 5*time.Millisecond)
	require.NotContains(t, shown, "\nevil", "a line of both was run")
}

// attach watches a terminal again, as the SDK does after a disconnect.
func (l *tty) attach(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client, req := rpc[processpb.ConnectRequest, processpb.ConnectResponse](l.estate, l.gateway, "Connect",
		&processpb.ConnectRequest{Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}}})
	stream, err := client.CallServerStream(ctx, req)
	require.NoError(t, err)
	require.True(t, stream.Receive(), stream.Err())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for stream.Receive() {
			l.mu.Lock()
			l.out.Write(stream.Msg().GetEvent().GetData().GetPty())
			l.mu.Unlock()
		}
		_ = stream.Close()
	}()
	t.Cleanup(func() {
		_ = l.signal(l.pid)
		cancel()
		<-done
	})
}

func (l *tty) terminal(t *testing.T, state *State) *terminal {
	t.Helper()
	p, _ := state.processes.find(l.id, &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}})
	require.NotNil(t, p)
	return p.typing()
}

// Who watches again sees what is shown from then on: a line of unknown text is
// refused until there is a prompt that was seen, and read from the screen after it.
func TestATerminalIsWatchedAgain(t *testing.T) {
	state := NewState()
	l := openTerminal(t, newEstate(t, func(cfg *Config) { cfg.State = state }))
	require.NoError(t, l.types("echo $((6*7))\r"))
	l.shows(t, "42\r\n")
	l.shows(t, "$ ")
	require.NoError(t, l.types("echo e")) // what was typed before counts after it
	l.cancel()
	<-l.done
	require.Eventually(t, func() bool { return !l.terminal(t, state).session.Seen() }, 10*time.Second, 5*time.Millisecond)
	l.attach(t)
	err := l.types("vil\r")
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)

	require.NoError(t, l.types("\x15echo $((7*7))\r"))
	l.shows(t, "49\r\n")
	l.shows(t, "$ ")
	require.True(t, l.terminal(t, state).session.Seen())
	require.NoError(t, l.types("\x1b[A"))
	require.NoError(t, l.types("\r"))
	l.shows(t, "49\r\n")
}

// A second stream beside the first shows the same: it is not taken in twice, and
// its end is not the end of the terminal's being seen.
func TestASecondStreamBesideTheFirst(t *testing.T) {
	state := NewState()
	l := openTerminal(t, newEstate(t, func(cfg *Config) { cfg.State = state }))
	ctx, cancel := context.WithCancel(t.Context())
	client, req := rpc[processpb.ConnectRequest, processpb.ConnectResponse](l.estate, l.gateway, "Connect",
		&processpb.ConnectRequest{Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}}})
	second, err := client.CallServerStream(ctx, req)
	require.NoError(t, err)
	require.True(t, second.Receive(), second.Err())
	require.NoError(t, l.types("echo $((6*7))\r"))
	l.shows(t, "42\r\n")
	l.shows(t, "$ ")
	require.NoError(t, l.types("\x1b[A\r"))
	l.shows(t, "42\r\n")
	l.shows(t, "$ ")
	cancel()
	for second.Receive() { //nolint:revive // until it has ended
	}
	_ = second.Close()
	require.True(t, l.terminal(t, state).session.Seen())
	require.NoError(t, l.types("\x1b[A\r"))
	l.shows(t, "42\r\n")
}

// Shells redraw a line when the terminal's size changes.
func TestATerminalIsResizedInTheMiddleOfALine(t *testing.T) {
	resize := func(l *tty, cols, rows uint32) {
		client, req := rpc[processpb.UpdateRequest, processpb.UpdateResponse](l.estate, l.gateway, "Update", &processpb.UpdateRequest{
			Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: l.pid}},
			Pty:     &processpb.PTY{Size: &processpb.PTY_Size{Cols: cols, Rows: rows}},
		})
		_, err := client.CallUnary(l.t.Context(), req)
		require.NoError(l.t, err)
	}
	for name, size := range map[string][2]uint32{"wider": {132, 40}, "narrower": {30, 10}, "to a line": {40, 1}} {
		t.Run(name, func(t *testing.T) {
			l := openTerminal(t, newEstate(t))
			require.NoError(t, l.types("echo wor"))
			l.shows(t, "wor")
			resize(l, size[0], size[1])
			require.NoError(t, l.types("ds-$((6*7))\r"))
			l.shows(t, "words-42\r\n")

			require.NoError(t, l.types("echo e"))
			resize(l, 80, 24)
			require.NoError(t, l.types("v"))
			resize(l, size[0], size[1])
			require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(l.types("il\r")))
			require.NoError(t, l.types("\x15"))

			// From the history, while the size changes: it is run as it was judged, or
			// refused with a hint, and the next line runs.
			require.NoError(t, l.types("\x1b[A"))
			resize(l, 80, 24)
			if err := l.types("\r"); err != nil {
				require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)
				require.NoError(t, l.types("\x03"))
			}
			require.NoError(t, l.types("echo $((7*7))\r"))
			l.shows(t, "49\r\n")
		})
	}
}

// What is typed where nothing is shown is a secret, whether its prompt says so or
// not: it is in no log and no audit record, whatever these keep.
func TestHiddenInputIsKeptNowhere(t *testing.T) {
	const secret = "hunter2-and-more"
	for name, c := range map[string]struct{ start, prompt, after string }{
		"read -s":                  {"read -r -s -p 'Password: ' x\r", "Password: ", "$ "},
		"read -s, another prompt":  {"read -r -s -p 'Your word: ' x\r", "Your word: ", "$ "},
		"read -s without a prompt": {"echo; read -rs x; echo got-$((6*7))\r", "\x1b[?2004l\r\r\n", "got-42"},
		"sudo":                     {"sudo() { read -r -s -p \"[sudo] password for user: \" x; echo; }; sudo\r", "password for user: ", "$ "},
		"getpass":                  {"python3 -c 'import getpass; getpass.getpass(\"PIN, please\" + \": \")'\r", "PIN, please: ", "$ "},
		"a passphrase":             {"read -r -s -p \"Enter passphrase for key '/home/user/.ssh/id': \" x\r", "id': ", "$ "},
	} {
		for how, types := range map[string]func(*tty, string) error{
			"at once": func(l *tty, s string) error { return l.types(s + "\r") },
			"by letters": func(l *tty, s string) (err error) {
				for _, k := range strings.Split(s+"\r", "") {
					if err == nil {
						err = l.types(k)
					}
				}
				return err
			},
			"by a stream": func(l *tty, s string) error { w := l.writer(l.t.Context()); w.types(s + "\r"); return w.close() },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				b, edit := audited(t, audit.Options{})
				l := openTerminal(t, newEstate(t, edit, func(cfg *Config) {
					cfg.Audit.Code, cfg.Audit.OutputBytes = audit.CodeFull, 1<<20
				}))
				require.NoError(t, l.types(c.start))
				l.shows(t, c.prompt)
				require.NoError(t, types(l, secret))
				l.shows(t, c.after)
				require.NoError(t, l.types("echo $((7*7))\r")) // a later line is judged with those before it
				l.shows(t, "49\r\n")
				l.kill()
				record, err := os.ReadFile(b.path)
				require.NoError(t, err)
				require.Contains(t, string(record), "echo $((7*7))")
				require.NotContains(t, string(record), secret)
				for _, entry := range l.log.All() {
					require.NotContains(t, entry.Message+fmt.Sprint(entry.ContextMap()), secret)
				}
			})
		}
	}
}
