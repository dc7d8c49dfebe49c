package gateway

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// processStream is an open answer of Start or Connect, which will tell of the end
// of its process.
type processStream struct {
	ps *processes
	sb *sandboxProcesses
	// pid is what the stream says of its process, p which that is: the one that has
	// been started, or for Connect the one that envd has listed since.
	pid    uint32
	p      *process
	starts bool
	// waits says that all it has told so far was heard. While its client does not
	// read, the end of its process may have gone unnoticed.
	waits atomic.Bool
}

// follow notes an open stream of the process with that pid, which is p where it
// has just been started. It is called where the stream is read.
func (ps *processes) follow(sandbox string, pid uint32, p *process) *processStream {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	s := &processStream{ps: ps, sb: ps.of(sandbox), pid: pid, p: p, starts: p != nil}
	s.waits.Store(true)
	if p == nil {
		s.sb.waiting[pid] = append(s.sb.waiting[pid], s)
		return s
	}
	p.pid = pid
	if old := s.sb.byPID[pid]; old != nil && !old.seen && old.sameStart(p) {
		old.tty.Store(p.tty.Load())
		s.p = old // input may have been sent to it already
		old.streams = append(old.streams, s)
		return s
	}
	// Streams that were opened before are of another process that had the pid.
	delete(s.sb.waiting, pid)
	p.streams = append(p.streams, s)
	ps.add(s.sb, p)
	return s
}

// close says that the stream is over, and whether it has told of an end.
func (s *processStream) close(ended bool) {
	s.ps.mu.Lock()
	defer s.ps.mu.Unlock()
	s.waits.Store(false)
	is := func(other *processStream) bool { return other == s }
	if s.p == nil {
		s.sb.waiting[s.pid] = slices.DeleteFunc(s.sb.waiting[s.pid], is)
		if len(s.sb.waiting[s.pid]) == 0 {
			delete(s.sb.waiting, s.pid)
		}
		return
	}
	s.p.streams = slices.DeleteFunc(s.p.streams, is)
	if ended && s.starts {
		s.ps.drop(s.sb, s.p)
	}
}

// following is the body of a stream that tells of a process's end.
type following struct {
	io.ReadCloser
	stream *processStream // nil until it has named its process
	view   *processView
	ended  bool
	once   sync.Once
}

// Read implements io.Reader.
func (f *following) Read(b []byte) (int, error) {
	if f.stream != nil {
		f.stream.waits.Store(true)
	}
	n, err := f.ReadCloser.Read(b)
	if f.stream != nil {
		f.stream.waits.Store(false)
	}
	return n, err
}

// Close implements io.Closer.
func (f *following) Close() error {
	err := f.ReadCloser.Close()
	f.once.Do(func() {
		if f.stream == nil {
			return
		}
		f.view.end()
		f.stream.close(f.ended)
	})
	return err
}
