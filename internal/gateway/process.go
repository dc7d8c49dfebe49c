package gateway

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// process is what the gateway knows of one running process of a sandbox: what it
// is, as it was judged, and what was sent to it. It is learned from Start, or from
// envd's List for a process that was started elsewhere or before a restart.
type process struct {
	sandbox string
	pid     uint32
	tag     string
	// cmd and args are the command as the client asked for it, without the limits
	// around it.
	cmd  string
	args []string
	// stdin is what may become of its standard input; empty if it is only read as
	// data. A PTY's input is not described by it.
	stdin []envd.Use
	// mark is on it and all it has started; 0 if there is none.
	mark int64
	// seen says that it was started through this gateway, so that everything sent
	// to it is known. Of any other, what was sent before is not.
	seen bool

	// files are the sandboxes' files.
	files *fileMemory

	// streams are the open answers that will tell of its end, since is when it
	// became known, and kept how many bytes of its input are remembered. They are
	// guarded by processes.mu.
	streams []*processStream
	since   uint64
	kept    int64

	// tty is the size of its terminal; nil without one, and for a process that was
	// not seen, of which envd does not tell.
	tty atomic.Pointer[terminalSize]

	// turn is taken while an input is judged and until the sandbox has it, so that
	// two halves of a command cannot be judged side by side: see call.takeTurn.
	turn chan struct{}
	// terminal is what is known of its PTY; nil if nothing was typed into it or shown
	// on it yet.
	terminal atomic.Pointer[terminal]
	// input is what was sent to its standard input. It belongs to whoever has the turn.
	input input
}

// terminalSize is the size of a PTY in characters.
type terminalSize struct{ cols, rows uint32 }

// newProcess describes the process of a start request as the client asked for it.
func newProcess(sandbox string, start *processpb.StartRequest) *process {
	p := &process{
		sandbox: sandbox, turn: make(chan struct{}, 1), tag: start.GetTag(), seen: true,
		cmd: start.GetProcess().GetCmd(), args: slices.Clone(start.GetProcess().GetArgs()),
	}
	if tty := start.GetPty(); tty != nil {
		p.tty.Store(&terminalSize{tty.GetSize().GetCols(), tty.GetSize().GetRows()})
		p.terminal.Store(newTerminal(start))
	}
	p.stdin = envd.ProcessUses(start.GetProcess())
	return p
}

// listedProcess describes a process as envd's List does. What was sent to it is
// not known.
func listedProcess(sandbox string, info *processpb.ProcessInfo) *process {
	mark := envd.MarkOf(info.GetConfig())
	envd.Unwrap(info.GetConfig())
	p := newProcess(sandbox, &processpb.StartRequest{Process: info.GetConfig(), Tag: info.Tag})
	p.pid, p.mark, p.seen = info.GetPid(), mark, false
	return p
}

// sameStart reports whether two descriptions are of one start: pids are given to
// other processes, and two may be started with the same words, but not with one
// mark.
func (p *process) sameStart(o *process) bool {
	return p.pid == o.pid && p.mark == o.mark && p.tag == o.tag && p.cmd == o.cmd && slices.Equal(p.args, o.args)
}

// readsCode reports whether what is sent to it may be code.
func (p *process) readsCode() bool { return len(p.stdin) > 0 }

// resize notes a new size of the terminal.
func (p *process) resize(size *processpb.PTY_Size) {
	if p.tty.Load() != nil {
		p.tty.Store(&terminalSize{size.GetCols(), size.GetRows()})
	}
	if t := p.terminal.Load(); t != nil {
		t.session.Resize(int(size.GetCols()), int(size.GetRows()))
	}
}

// findProcess returns the process that a selector means, asking envd for its list
// where what is known may be out of date. The call must then name the process by
// its pid, so that no other with the same tag takes its place.
func (c *call) findProcess(sel *processpb.ProcessSelector) (*process, *refusal.Refusal) {
	ps := c.g.state.processes
	if p, trusted := ps.find(c.target.Sandbox, sel); trusted {
		return p, nil
	}
	asked := ps.now()
	list := new(processpb.ListResponse)
	if err := c.askEnvd(c.r.Context(), "/process.Process/List", new(processpb.ListRequest), list); err != nil {
		ref := refusal.New(refusal.CodeUpstream, "e2bguard could not ask the sandbox which process this input is for, so it was not sent. Try again in a moment.")
		ref.Err, ref.Retryable = err, true
		return nil, ref
	}
	ps.listed(c.target.Sandbox, list, asked)
	if p, _ := ps.find(c.target.Sandbox, sel); p != nil {
		return p, nil
	}
	if tag, byTag := sel.GetSelector().(*processpb.ProcessSelector_Tag); byTag {
		return nil, refusal.New(refusal.CodeNoProcess, fmt.Sprintf("process with tag %s not found", tag.Tag))
	}
	return nil, refusal.New(refusal.CodeNoProcess, fmt.Sprintf("process with pid %d not found", sel.GetPid()))
}
