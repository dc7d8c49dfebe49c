package gateway

import (
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

const (
	// sandboxesWatched bounds the sandboxes whose processes are remembered; the
	// least recently used are forgotten first.
	sandboxesWatched = 10_000
	// processesKept bounds the processes remembered of one sandbox that no stream is
	// open of; the oldest are forgotten first.
	processesKept = 1024
	// inputsOfOne bounds the bytes of input remembered of one sandbox's processes,
	// inputsOfAll those of all sandboxes.
	inputsOfOne, inputsOfAll = 32 << 20, 256 << 20
)

// processes are the running processes of all sandboxes. It is safe for concurrent
// use.
//
// What was sent to a process decides what the next message means, so that nothing
// of it may be forgotten unnoticed: a process of which it was forgotten takes no
// more input.
type processes struct {
	mu        sync.Mutex
	sandboxes *simplelru.LRU[string, *sandboxProcesses]
	// forgotten are the sandboxes whose processes had to be forgotten.
	forgotten *lru.Cache[string, struct{}]
	// files are the sandboxes' files.
	files *fileMemory
	// clock counts what became known.
	clock uint64
	// typed is how many bytes of input are remembered in all.
	typed int64
}

// sandboxProcesses are one sandbox's.
type sandboxProcesses struct {
	byPID map[uint32]*process
	order []*process // as they became known
	// waiting are, by pid, the open streams of processes that nobody has named yet.
	waiting map[uint32][]*processStream
	typed   int64
	// forgot says that some of its processes were forgotten, or never known as those
	// they are copies of. Any that is not known may be one of them.
	forgot bool
}

func newProcesses(memory *fileMemory) *processes {
	sandboxes, err := simplelru.NewLRU[string, *sandboxProcesses](2*sandboxesWatched, nil)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &processes{sandboxes: sandboxes, forgotten: newCache[string, struct{}](sandboxesKept), files: memory}
}

// now is a moment, to tell what became known after it.
func (ps *processes) now() uint64 {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.clock
}

// of returns what is known of a sandbox.
func (ps *processes) of(sandbox string) *sandboxProcesses {
	sb, ok := ps.sandboxes.Get(sandbox)
	if ok {
		return sb
	}
	for range ps.sandboxes.Len() - sandboxesWatched + 1 {
		ps.forgetOldest()
	}
	sb = &sandboxProcesses{byPID: make(map[uint32]*process), waiting: make(map[uint32][]*processStream), forgot: ps.forgotten.Contains(sandbox)}
	ps.sandboxes.Add(sandbox, sb)
	return sb
}

// forgetOldest forgets the sandbox that was not used for longest, but passes over
// some with open streams.
func (ps *processes) forgetOldest() {
	const passedOver = 64
	for range passedOver {
		id, sb, _ := ps.sandboxes.GetOldest()
		if !slices.ContainsFunc(sb.order, func(p *process) bool { return len(p.streams) > 0 }) {
			break
		}
		ps.sandboxes.Get(id)
	}
	id, sb, _ := ps.sandboxes.GetOldest()
	if sb.forgot || slices.ContainsFunc(sb.order, (*process).readsCode) {
		ps.forgotten.Add(id, struct{}{})
	}
	ps.remove(id)
}

// forget forgets all processes of a sandbox that is gone.
func (ps *processes) forget(sandbox string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.remove(sandbox)
}

// copied notes that a sandbox was made as a copy of another that runs, with its
// processes.
func (ps *processes) copied(sandbox, from string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.of(from).forgot || slices.ContainsFunc(ps.of(from).order, (*process).readsCode) {
		ps.of(sandbox).forgot = true
	}
}

func (ps *processes) remove(sandbox string) {
	sb, ok := ps.sandboxes.Peek(sandbox)
	if !ok {
		return
	}
	ps.sandboxes.Remove(sandbox)
	for _, p := range sb.order {
		ps.charge(sb, p, 0)
	}
}

// add remembers a process; another with the same pid is gone.
func (ps *processes) add(sb *sandboxProcesses, p *process) {
	ps.drop(sb, sb.byPID[p.pid])
	ps.clock++
	p.since, p.files = ps.clock, ps.files
	sb.byPID[p.pid] = p
	sb.order = append(sb.order, p)
	var oldest *process
	left := 0
	for _, other := range sb.order {
		if len(other.streams) > 0 {
			continue
		}
		if left++; oldest == nil {
			oldest = other
		}
	}
	if left > processesKept {
		sb.forgot = sb.forgot || oldest.readsCode()
		ps.drop(sb, oldest)
	}
}

func (ps *processes) drop(sb *sandboxProcesses, p *process) {
	if p == nil || sb.byPID[p.pid] != p {
		return
	}
	delete(sb.byPID, p.pid)
	sb.order = slices.DeleteFunc(sb.order, func(other *process) bool { return other == p })
	ps.charge(sb, p, 0)
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
	return p, p != nil && slices.ContainsFunc(p.streams, func(s *processStream) bool { return s.waits.Load() })
}

// listed brings what is known of a sandbox in line with envd's own list, which was
// asked for at that moment: of what became known later, it does not tell.
func (ps *processes) listed(sandbox string, list *processpb.ListResponse, asked uint64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	sb := ps.of(sandbox)
	running := make(map[uint32]bool, len(list.GetProcesses()))
	for _, info := range list.GetProcesses() {
		running[info.GetPid()] = true
		p, there := sb.byPID[info.GetPid()], listedProcess(sandbox, info)
		if p == nil || p.since <= asked && !p.sameStart(there) {
			p = there
			if sb.forgot {
				p.input.lost = "what was sent to this process before is not known: its sandbox is a copy of another, or more processes run in it than this gateway remembers."
			}
			ps.add(sb, p)
		}
		for _, s := range sb.waiting[p.pid] {
			s.p = p
			p.streams = append(p.streams, s)
		}
		delete(sb.waiting, p.pid)
	}
	for _, p := range slices.Clone(sb.order) {
		if !running[p.pid] && p.since <= asked {
			ps.drop(sb, p)
		}
	}
}

// keep notes that n bytes of the input of p are remembered, and forgets that of
// other processes if that is too much: the sandbox that has most goes first, and of
// one sandbox what became known first. The caller has the turn of p.
func (ps *processes) keep(p *process, n int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	sb, ok := ps.sandboxes.Peek(p.sandbox)
	if !ok || sb.byPID[p.pid] != p {
		return // it is gone, and nobody will find it
	}
	ps.charge(sb, p, int64(n))
	if sb.typed > inputsOfOne {
		ps.loseInputs(sb, p)
	}
	if ps.typed > inputsOfAll {
		for _, other := range ps.sandboxes.Values() {
			if other.typed > sb.typed {
				sb = other
			}
		}
		ps.loseInputs(sb, p)
	}
}

func (ps *processes) charge(sb *sandboxProcesses, p *process, n int64) {
	sb.typed += n - p.kept
	ps.typed += n - p.kept
	p.kept = n
}

// loseInputs forgets half of the input that is remembered of one sandbox.
func (ps *processes) loseInputs(sb *sandboxProcesses, own *process) {
	enough := sb.typed / 2
	for _, p := range sb.order {
		if sb.typed <= enough {
			return
		}
		if p.kept == 0 {
			continue
		}
		if p != own {
			select {
			case p.turn <- struct{}{}:
			default:
				continue // something is being sent to it
			}
		}
		p.input = input{lost: "more was sent to the processes of its sandbox than this gateway remembers, and what was sent to this one before is not known."}
		ps.charge(sb, p, 0)
		if p != own {
			<-p.turn
		}
	}
}
