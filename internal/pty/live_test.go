package pty

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
)

// event is one step of a terminal's session, in the order in which the gateway
// sees them: what the person types, what is sent for it, what is shown.
type event struct {
	Type string `json:"type,omitempty"` // input
	Ask  string `json:"ask,omitempty"`  // sent to read the line from the screen
	Sent string `json:"sent,omitempty"` // sent instead of the input, or the rest of it
	Show []byte `json:"show,omitempty"` // output
}

// reviewer judges with the embedded guard, as the gateway would.
func reviewer(t testing.TB) func(Review) string {
	t.Helper()
	g, err := static.New(static.Options{})
	require.NoError(t, err)
	return func(r Review) string {
		v, err := g.Review(context.Background(), guard.Subject{Kind: guard.KindInput, Language: r.Language, Text: r.Text})
		require.NoError(t, err)
		if v.Decision == guard.Block {
			return v.Reasoning
		}
		return ""
	}
}

func judge(review func(Review) string, p *Plan) string {
	if p.Refusal != "" {
		return p.Refusal
	}
	for _, r := range p.Reviews {
		if why := review(r); why != "" {
			return why
		}
	}
	return ""
}

// liveTerminal is a real shell on a terminal, with the model in front.
type liveTerminal struct {
	t       testing.TB
	tty     *os.File
	session *Session
	review  func(Review) string
	output  chan []byte
	events  []event
}

// startTerminal starts a shell as the SDK does, in an empty home directory.
func startTerminal(t testing.TB, home string, env ...string) *liveTerminal {
	t.Helper()
	cmd := exec.Command("/bin/bash", "-i", "-l")
	cmd.Dir = home
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "HOME=" + home, "HISTFILE="}, env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	l := &liveTerminal{
		t: t, tty: tty, review: reviewer(t), output: make(chan []byte),
		session: New(Options{Command: "/bin/bash", Args: []string{"-i", "-l"}, Cols: 80, Rows: 24, UTF8: true}),
	}
	go func() {
		defer close(l.output)
		for {
			b := make([]byte, 16<<10)
			n, err := tty.Read(b)
			if err != nil {
				return
			}
			l.output <- b[:n]
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
		for range l.output { //nolint:revive // until its reader has left
		}
		_ = cmd.Wait()
	})
	return l
}

// settle takes in output until there is none for a while, or until is true.
func (l *liveTerminal) settle(quiet time.Duration, until func() bool) bool {
	for {
		if until != nil && until() {
			return true
		}
		select {
		case b, open := <-l.output:
			if !open {
				return false
			}
			l.events = append(l.events, event{Show: b})
			l.session.Output(b)
		case <-time.After(quiet):
			return false
		}
	}
}

// press types input as the gateway passes it, and returns why it was refused.
func (l *liveTerminal) press(keys string) string {
	l.events = append(l.events, event{Type: keys})
	p := l.session.Keys([]byte(keys))
	if why := judge(l.review, p); why != "" {
		return why
	}
	asked := p.Look != nil
	for p.Look != nil {
		look := p.Look
		l.session.Commit(p)
		l.events = append(l.events, event{Ask: string(look.Ask)})
		l.send(look.Ask)
		ready := func() (ok bool) { p, ok = l.session.Read(look, false); return ok }
		if !l.settle(5*time.Second, ready) {
			p, _ = l.session.Read(look, true)
		}
		if why := judge(l.review, p); why != "" {
			l.send(look.Undo)
			return why
		}
	}
	l.session.Commit(p)
	if asked {
		l.events = append(l.events, event{Sent: string(p.Send)})
	} else if string(p.Send) != keys {
		l.events[len(l.events)-1].Sent = string(p.Send)
	}
	l.send(p.Send)
	return ""
}

func (l *liveTerminal) send(b []byte) {
	_, err := l.tty.Write(b)
	require.NoError(l.t, err)
}
