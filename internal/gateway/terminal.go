package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/pty"
)

const (
	// screenWait is how long a line is waited for that the screen must show.
	screenWait = 2 * time.Second
	// ownCallTimeout bounds a call of the gateway's own to type into a terminal.
	ownCallTimeout = 10 * time.Second
)

// terminal is a PTY: what is typed into it, and who shows the gateway its output.
type terminal struct {
	session *pty.Session

	mu sync.Mutex
	// viewer is the stream whose output is followed; of several, the first.
	viewer *processView
}

// newTerminal is the terminal of a process that was started with one.
func newTerminal(start *processpb.StartRequest) *terminal {
	size := start.GetPty().GetSize()
	return &terminal{session: pty.New(pty.Options{
		Command: start.GetProcess().GetCmd(), Args: start.GetProcess().GetArgs(),
		Cols: int(size.GetCols()), Rows: int(size.GetRows()), UTF8: readsUTF8(start.GetProcess().GetEnvs()),
	})}
}

// readsUTF8 reports whether a process's locale surely reads UTF-8. C.UTF-8, which
// SDKs ask for, is there wherever there is a C library; another that is not
// installed is the locale C, in which letters outside ASCII are keys of the editor.
func readsUTF8(envs map[string]string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts
		if value := envs[name]; value != "" {
			return strings.EqualFold(strings.ReplaceAll(value, "-", ""), "C.UTF8")
		}
	}
	return false
}

// processView shows the output of one stream to the model of its process's
// terminal. Of several streams, the first is followed: Start's, as a rule, which
// has all that was shown.
type processView struct {
	p     *process  // nil until the stream has named it, or for one that is not known
	whole bool      // it shows the output from the beginning
	t     *terminal // once it has shown something
}

// of says whose output the stream shows.
func (v *processView) of(c *call, pid uint32) {
	v.p, v.whole = c.starting, c.starting != nil
	if v.p == nil {
		v.p, _ = c.g.state.processes.find(c.target.Sandbox, &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}})
	}
}

// Output implements relay.Observer.
func (v *processView) Output(to relay.Output, piece []byte) {
	if to == relay.PTY && v.followed() {
		v.t.session.Output(piece)
	}
}

// Missed implements relay.Observer.
func (v *processView) Missed(to relay.Output, _ int64) {
	if to == relay.PTY && v.followed() {
		v.t.session.Lost()
	}
}

func (v *processView) followed() bool {
	if v.p == nil {
		return false
	}
	if v.t == nil {
		v.t = v.p.typing()
		v.t.mu.Lock()
		defer v.t.mu.Unlock()
		size := v.p.tty.Load()
		if v.t.viewer != nil || !v.whole && size == nil {
			return false
		}
		v.t.viewer = v
		if !v.whole {
			v.t.session.Attach(int(size.cols), int(size.rows))
		}
		return true
	}
	v.t.mu.Lock()
	defer v.t.mu.Unlock()
	return v.t.viewer == v
}

// end says that the stream is over.
func (v *processView) end() {
	if v.t == nil {
		return // it has shown nothing
	}
	v.t.mu.Lock()
	defer v.t.mu.Unlock()
	if v.t.viewer == v {
		v.t.viewer = nil
		v.t.session.Lost()
	}
}

// typed is a piece of input to a terminal that is being judged.
type typed struct {
	terminal *terminal
	plan     *pty.Plan
	// undo takes back the mark by which the line was read, if it is not sent.
	undo []byte
	// sent says that the sandbox may have it.
	sent bool
}

// send notes that the input is about to be sent. It does nothing for input that is
// not keys.
func (k *typed) send() {
	if k != nil {
		k.terminal.session.Commit(k.plan)
		k.sent = true
	}
}

// settleKeys notes what became of keys.
func (c *call) settleKeys(p *process, k *typed, taken bool) {
	switch {
	case !k.sent:
		c.takeBack(p, k)
	case !taken:
		k.terminal.session.Unsure()
	}
}

// judgeKeys says what a guard must see before keys are typed. Where the line has
// to be read from the screen first, the keys before its Enter are typed by a call
// of the gateway's own, and what is left of the input is put in place of it.
func (c *call) judgeKeys(p *process, in *processpb.ProcessInput_Pty) (*typed, []guard.Subject, *refusal.Refusal) {
	if c.g.cfg.DenyPTY {
		return nil, nil, refuseTerminal()
	}
	t := p.typing()
	k := &typed{terminal: t, plan: t.session.Keys(in.Pty)}
	for k.plan.Look != nil && k.plan.Refusal == "" {
		if ref := c.readLine(p, k); ref != nil {
			return nil, nil, ref
		}
	}
	if k.plan.Refusal != "" {
		c.takeBack(p, k)
		return nil, nil, refusal.New(refusal.CodePolicy, "Blocked by policy: "+k.plan.Refusal+" What was typed before is still on the line and was not run.")
	}
	in.Pty = k.plan.Send
	subjects := make([]guard.Subject, 0, len(k.plan.Reviews))
	for _, r := range k.plan.Reviews {
		s := p.subject(r.Language, r.Text)
		s.Labels = make(map[string]string)
		if r.Hidden {
			s.Labels[guard.LabelHidden] = "true"
		}
		if r.Data {
			s.Labels[guard.LabelNetwork] = "" // it is not asked whether it would work
		}
		subjects = append(subjects, s)
	}
	return k, subjects, nil
}

// readLine types the keys before an Enter, and waits until the screen shows what
// has become of them.
func (c *call) readLine(p *process, k *typed) *refusal.Refusal {
	look := k.plan.Look
	k.terminal.session.Commit(k.plan) // before the terminal can answer
	if err := c.typeKeys(c.r.Context(), p, look.Ask); err != nil {
		k.terminal.session.Unsure()
		ref := refusal.New(refusal.CodeUpstream, "e2bguard could not type into the terminal, so the line was not run. Try again in a moment.")
		ref.Err, ref.Retryable = err, true
		return ref
	}
	k.undo = look.Undo
	timer := time.NewTimer(screenWait)
	defer timer.Stop()
	for late := false; ; {
		changed := k.terminal.session.Changed()
		if then, ok := k.terminal.session.Read(look, late); ok {
			k.plan = then
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			late = true
		case <-c.r.Context().Done():
			c.takeBack(p, k)
			return refusal.New(refusal.CodeInvalid, "the client left before its line was read.")
		}
	}
}

// takeBack removes the mark from a line that is not sent.
func (c *call) takeBack(p *process, k *typed) {
	if k == nil || k.undo == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), ownCallTimeout)
	defer cancel()
	if err := c.typeKeys(ctx, p, k.undo); err != nil {
		c.g.log.Warn("a mark was left on a terminal's line", zap.String("request_id", c.id), zap.String("sandbox", c.target.Sandbox), zap.Error(err))
	}
	k.undo = nil
}

// typeKeys is a call of the gateway's own.
func (c *call) typeKeys(ctx context.Context, p *process, keys []byte) error {
	if len(keys) == 0 {
		return nil
	}
	return c.askEnvd(ctx, "/process.Process/SendInput", &processpb.SendInputRequest{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: p.pid}},
		Input:   &processpb.ProcessInput{Input: &processpb.ProcessInput_Pty{Pty: slices.Clone(keys)}},
	}, new(processpb.SendInputResponse))
}

// typing is the process's terminal. Of one that was started elsewhere, nothing
// that was shown or typed before is known.
func (p *process) typing() *terminal {
	if t := p.terminal.Load(); t != nil {
		return t
	}
	p.terminal.CompareAndSwap(nil, &terminal{session: pty.New(pty.Options{Command: p.cmd, Args: p.args, Unseen: true})})
	return p.terminal.Load()
}

func refuseTerminal() *refusal.Refusal {
	return refusal.New(refusal.CodeDenied, "this gateway does not open terminals (pty deny). Run the command by itself, with its input.")
}

// enforceTerminal keeps the shell of a terminal from reading a history file: its
// lines were judged by nobody, and a key brings them up.
func (c *call) enforceTerminal(start *processpb.StartRequest) {
	if start.GetPty() == nil {
		return
	}
	if start.Process.Envs == nil {
		start.Process.Envs = make(map[string]string, 1)
	}
	start.Process.Envs["HISTFILE"] = ""
	c.changed("history", "")
}
