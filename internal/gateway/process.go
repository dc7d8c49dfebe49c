package gateway

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

const (
	// sandboxesWatched bounds the sandboxes whose processes are remembered; the
	// least recently used are forgotten first.
	sandboxesWatched = 10_000
	// processesKept bounds the processes remembered of one sandbox; the oldest are
	// forgotten first.
	processesKept = 1024
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

	// trusted says that the pid is surely still this process's: there is an open
	// stream that would tell of its end. It is guarded by processes.mu.
	trusted bool

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
	p.stdin = envd.StdinUses(p.cmd, p.args)
	return p
}

// sameAs reports whether envd's List describes this process.
func (p *process) sameAs(info *processpb.ProcessInfo) bool {
	return p.pid == info.GetPid() && p.tag == info.GetTag() &&
		p.cmd == info.GetConfig().GetCmd() && slices.Equal(p.args, info.GetConfig().GetArgs())
}

// sameStart reports whether two descriptions are of one start.
func (p *process) sameStart(o *process) bool {
	return p.pid == o.pid && p.tag == o.tag && p.cmd == o.cmd && slices.Equal(p.args, o.args)
}

// resize notes a new size of the terminal.
func (p *process) resize(size *processpb.PTY_Size) {
	if p.tty.Load() != nil {
		p.tty.Store(&terminalSize{size.GetCols(), size.GetRows()})
	}
	if t := p.terminal.Load(); t != nil {
		t.session.Resize(int(size.GetCols()), int(size.GetRows()))
	}
}

// processes are the running processes of all sandboxes. It is safe for concurrent
// use.
type processes struct {
	mu        sync.Mutex
	sandboxes *lru.Cache[string, *sandboxProcesses]
	// typed is how many bytes of input are remembered in all.
	typed atomic.Int64
}

// sandboxProcesses are one sandbox's.
type sandboxProcesses struct {
	byPID map[uint32]*process
	order []*process // as they became known
	// streams counts, by pid, the open answers that will tell of the process's end.
	streams map[uint32]int
}

func newProcesses() *processes {
	ps := new(processes)
	cache, err := lru.NewWithEvict(sandboxesWatched, func(_ string, sb *sandboxProcesses) {
		for _, p := range sb.order {
			ps.forgetInput(p)
		}
	})
	if err != nil {
		panic(err) // only for a size below one
	}
	ps.sandboxes = cache
	return ps
}

// forgetInput gives back the memory of a process that is no longer remembered.
func (ps *processes) forgetInput(p *process) {
	ps.typed.Add(-p.input.charged.Swap(0))
}

// follow notes an open stream of the process with that pid, which is p where it
// has just been started, and returns what to call when the stream is over.
func (ps *processes) follow(sandbox string, pid uint32, p *process) (unfollow func(ended bool)) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	sb := ps.of(sandbox)
	sb.streams[pid]++
	if p != nil {
		p.pid = pid
		if old := sb.byPID[pid]; old != nil && !old.seen && old.sameStart(p) {
			old.tty.Store(p.tty.Load())
			p = old // input may have been sent to it already
		} else {
			ps.add(sb, p)
		}
		p.trusted = true
	}
	return func(ended bool) {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		now := sb.byPID[pid]
		if ended && now != nil && now.trusted {
			ps.drop(sb, now)
			now = nil
		}
		if sb.streams[pid]--; sb.streams[pid] <= 0 {
			delete(sb.streams, pid)
			if now != nil {
				now.trusted = false
			}
		}
	}
}

// following is the body of a stream that tells of a process's end.
type following struct {
	io.ReadCloser
	unfollow func(ended bool)
	ended    bool
	once     sync.Once
}

// Close implements io.Closer.
func (f *following) Close() error {
	err := f.ReadCloser.Close()
	f.once.Do(func() { f.unfollow(f.ended) })
	return err
}

// of returns what is known of a sandbox.
func (ps *processes) of(sandbox string) *sandboxProcesses {
	sb, ok := ps.sandboxes.Get(sandbox)
	if !ok {
		sb = &sandboxProcesses{byPID: make(map[uint32]*process), streams: make(map[uint32]int)}
		ps.sandboxes.Add(sandbox, sb)
	}
	return sb
}

// add remembers a process; another with the same pid is gone.
func (ps *processes) add(sb *sandboxProcesses, p *process) {
	ps.drop(sb, sb.byPID[p.pid])
	if len(sb.order) >= processesKept {
		ps.drop(sb, sb.order[0])
	}
	sb.byPID[p.pid] = p
	sb.order = append(sb.order, p)
}

// forget forgets all processes of a sandbox that is gone.
func (ps *processes) forget(sandbox string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.sandboxes.Remove(sandbox)
}

func (ps *processes) drop(sb *sandboxProcesses, p *process) {
	if p == nil {
		return
	}
	delete(sb.byPID, p.pid)
	sb.order = slices.DeleteFunc(sb.order, func(other *process) bool { return other == p })
	ps.forgetInput(p)
}

// find returns the process that a selector means; of several with one tag, the one
// that became known last. It may have ended unnoticed unless it is trusted.
func (ps *processes) find(sandbox string, sel *processpb.ProcessSelector) (p *process, trusted bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	sb, ok := ps.sandboxes.Get(sandbox)
	if !ok {
		return nil, false
	}
	if tag, byTag := sel.GetSelector().(*processpb.ProcessSelector_Tag); byTag {
		for _, other := range sb.order {
			if other.tag == tag.Tag {
				p = other
			}
		}
	} else {
		p = sb.byPID[sel.GetPid()]
	}
	return p, p != nil && p.trusted
}

// listed brings what is known of a sandbox in line with envd's own list, whose
// commands are as clients asked for them.
func (ps *processes) listed(sandbox string, list *processpb.ListResponse) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	sb := ps.of(sandbox)
	running := make(map[uint32]bool, len(list.GetProcesses()))
	for _, info := range list.GetProcesses() {
		running[info.GetPid()] = true
		p := sb.byPID[info.GetPid()]
		if p == nil || !p.trusted && !p.sameAs(info) {
			p = newProcess(sandbox, &processpb.StartRequest{Process: info.GetConfig(), Tag: info.Tag})
			p.pid, p.seen = info.GetPid(), false
			ps.add(sb, p)
		}
		p.trusted = p.trusted || sb.streams[p.pid] > 0
	}
	for _, p := range slices.Clone(sb.order) {
		if !running[p.pid] && !p.trusted {
			ps.drop(sb, p)
		}
	}
}

// findProcess returns the process that a selector means, asking envd for its list
// where what is known may be out of date. The call must then name the process by
// its pid, so that no other with the same tag takes its place.
func (c *call) findProcess(sel *processpb.ProcessSelector) (*process, *refusal.Refusal) {
	if p, trusted := c.g.state.processes.find(c.target.Sandbox, sel); trusted {
		return p, nil
	}
	list := new(processpb.ListResponse)
	if err := c.askEnvd(c.r.Context(), "/process.Process/List", new(processpb.ListRequest), list); err != nil {
		ref := refusal.New(refusal.CodeUpstream, "e2bguard could not ask the sandbox which process this input is for, so it was not sent. Try again in a moment.")
		ref.Err, ref.Retryable = err, true
		return nil, ref
	}
	for _, info := range list.GetProcesses() {
		envd.Unwrap(info.GetConfig())
	}
	c.g.state.processes.listed(c.target.Sandbox, list)
	if p, _ := c.g.state.processes.find(c.target.Sandbox, sel); p != nil {
		return p, nil
	}
	if tag, byTag := sel.GetSelector().(*processpb.ProcessSelector_Tag); byTag {
		return nil, refusal.New(refusal.CodeNoProcess, fmt.Sprintf("process with tag %s not found", tag.Tag))
	}
	return nil, refusal.New(refusal.CodeNoProcess, fmt.Sprintf("process with pid %d not found", sel.GetPid()))
}
