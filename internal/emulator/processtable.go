package emulator

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// processTable knows a sandbox's live processes, and for a while the ended.
type processTable struct {
	sb *sandbox

	mu    sync.Mutex
	live  map[uint32]*process
	ended map[uint32]*process
	order []uint32
}

func newProcessTable(sb *sandbox) *processTable {
	return &processTable{sb: sb, live: make(map[uint32]*process), ended: make(map[uint32]*process)}
}

// add registers a started process and reaps it when it ends; done is called
// after that.
func (t *processTable) add(p *process, done func()) {
	t.mu.Lock()
	delete(t.ended, p.pid)
	for pid, old := range t.ended {
		if p.tag != nil && old.tag != nil && *old.tag == *p.tag {
			delete(t.ended, pid)
		}
	}
	t.live[p.pid] = p
	t.order = append(t.order, p.pid)
	t.mu.Unlock()
	go func() {
		defer done()
		p.wait()
		t.sb.spawn.reaped(int(p.pid))
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.live[p.pid] == p {
			delete(t.live, p.pid)
			t.ended[p.pid] = p
			t.order = slices.DeleteFunc(t.order, func(pid uint32) bool { return pid == p.pid })
		}
		time.AfterFunc(retention, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.ended[p.pid] == p {
				delete(t.ended, p.pid)
			}
		})
	}()
}

// find gives the process a selector means, live ones only unless ended is set.
func (t *processTable) find(sel *pb.ProcessSelector, ended bool) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tables := []map[uint32]*process{t.live}
	if ended {
		tables = append(tables, t.ended)
	}
	switch s := sel.GetSelector().(type) {
	case *pb.ProcessSelector_Pid:
		for _, table := range tables {
			if p, ok := table[s.Pid]; ok {
				return p, nil
			}
		}
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with pid %d not found", s.Pid))
	case *pb.ProcessSelector_Tag:
		for _, table := range tables {
			for _, p := range table {
				if p.tag != nil && *p.tag == s.Tag {
					return p, nil
				}
			}
		}
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with tag %s not found", s.Tag))
	}
	return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid input type %T", sel))
}

func (t *processTable) list() []*pb.ProcessInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	var infos []*pb.ProcessInfo
	for _, pid := range t.order {
		p := t.live[pid]
		infos = append(infos, &pb.ProcessInfo{Pid: pid, Tag: p.tag, Config: p.config})
	}
	return infos
}

func (t *processTable) killAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.live {
		_ = p.signal(syscall.SIGKILL) // Ended already is as good.
	}
}

// wait returns when all processes that were live have been reaped.
func (t *processTable) wait() {
	t.mu.Lock()
	var exits []chan struct{}
	for _, p := range t.live {
		exits = append(exits, p.exited)
	}
	t.mu.Unlock()
	for _, exited := range exits {
		<-exited
	}
}
