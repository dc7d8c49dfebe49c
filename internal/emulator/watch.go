package emulator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/fsnotify/fsnotify"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
)

// folderWatch reports what happens in a folder of a sandbox.
type folderWatch struct {
	sb        *sandbox
	at        string // the sandbox path
	host      string
	recursive bool
	entries   bool
	w         *fsnotify.Watcher
}

// watch begins to watch p, which must be a folder.
func (sb *sandbox) watch(p string, recursive, entries bool) (*folderWatch, error) {
	info, err := sb.fs.stat(p)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("path %s not found: %w", p, err))
		}
		return nil, internal("error statting path "+p, err)
	}
	if !info.IsDir() {
		return nil, invalid(fmt.Errorf("path %s not a directory: %w", p, err))
	}
	host, err := sb.fs.hostPath(p)
	if err != nil {
		return nil, internal("error statting path "+p, err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, internal("error creating watcher", err)
	}
	f := &folderWatch{sb: sb, at: p, host: host, recursive: recursive, entries: entries, w: w}
	if err := f.add(host); err != nil {
		_ = w.Close()
		return nil, internal("error adding path "+p+" to watcher", err)
	}
	return f, nil
}

// add watches a folder of the machine, and those below it if asked for.
func (f *folderWatch) add(dir string) error {
	if !f.recursive {
		return f.w.Add(dir)
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // Removed while we looked.
		}
		return f.w.Add(p)
	})
}

// operations are the event types, in the order in which envd reports several
// that came as one.
var operations = []struct {
	op        fsnotify.Op
	event     pb.EventType
	hasObject bool
}{
	{fsnotify.Create, pb.EventType_EVENT_TYPE_CREATE, true},
	{fsnotify.Rename, pb.EventType_EVENT_TYPE_RENAME, false},
	{fsnotify.Chmod, pb.EventType_EVENT_TYPE_CHMOD, true},
	{fsnotify.Write, pb.EventType_EVENT_TYPE_WRITE, true},
	{fsnotify.Remove, pb.EventType_EVENT_TYPE_REMOVE, false},
}

// events translates one event of the machine.
func (f *folderWatch) events(e fsnotify.Event) []*pb.FilesystemEvent {
	name, err := filepath.Rel(f.host, e.Name)
	if err != nil {
		return nil
	}
	if f.recursive && e.Op.Has(fsnotify.Create) {
		_ = f.add(e.Name) // A file, or gone already.
	}
	var out []*pb.FilesystemEvent
	for _, o := range operations {
		if !e.Op.Has(o.op) {
			continue
		}
		event := &pb.FilesystemEvent{Name: name, Type: o.event}
		if f.entries && o.hasObject {
			if entry, err := f.sb.entry(path.Join(f.at, name)); err == nil {
				event.Entry = entry
			}
		}
		out = append(out, event)
	}
	return out
}

func (sb *sandbox) watchDir(ctx context.Context, req *connect.Request[pb.WatchDirRequest], stream *connect.ServerStream[pb.WatchDirResponse]) error {
	p, _, err := pathOf(ctx, req.Msg.GetPath())
	if err != nil {
		return err
	}
	f, err := sb.watch(p, req.Msg.GetRecursive(), req.Msg.GetIncludeEntry())
	if err != nil {
		return err
	}
	defer f.w.Close()
	closed := sb.watchers.closing()
	if err := stream.Send(&pb.WatchDirResponse{Event: &pb.WatchDirResponse_Start{Start: &pb.WatchDirResponse_StartEvent{}}}); err != nil {
		return err
	}
	interval := sb.keepalive(req.Header())
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			sb.abortIfGone()
			return connect.NewError(connect.CodeInternal, errors.New("watcher event channel closed"))
		case <-ticker.C:
			if err := stream.Send(&pb.WatchDirResponse{Event: &pb.WatchDirResponse_Keepalive{Keepalive: &pb.WatchDirResponse_KeepAlive{}}}); err != nil {
				return err
			}
		case err := <-f.w.Errors:
			return internal("watcher error", err)
		case e := <-f.w.Events:
			for _, event := range f.events(e) {
				if err := stream.Send(&pb.WatchDirResponse{Event: &pb.WatchDirResponse_Filesystem{Filesystem: event}}); err != nil {
					return err
				}
				ticker.Reset(interval)
			}
		}
	}
}

// watcherTable holds the watchers that clients poll.
type watcherTable struct {
	mu     sync.Mutex
	closed chan struct{} // ends the streams
	done   bool
	all    map[string]*polledWatch
}

type polledWatch struct {
	f      *folderWatch
	ended  chan struct{}
	mu     sync.Mutex
	events []*pb.FilesystemEvent
}

func newWatcherTable() *watcherTable {
	return &watcherTable{closed: make(chan struct{}), all: make(map[string]*polledWatch)}
}

func (t *watcherTable) closing() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// closeAll ends all watches; unless final, new ones can be begun.
func (t *watcherTable) closeAll(final bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return
	}
	close(t.closed)
	for id, p := range t.all {
		p.close()
		delete(t.all, id)
	}
	if t.done = final; !final {
		t.closed = make(chan struct{})
	}
}

func (p *polledWatch) close() {
	_ = p.f.w.Close() // The watcher is given up.
	<-p.ended
}

func (t *watcherTable) get(id string) (*polledWatch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.all[id]
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("watcher with id %s not found", id))
	}
	return p, nil
}

func (p *polledWatch) collect() {
	defer close(p.ended)
	for e := range p.f.w.Events {
		events := p.f.events(e)
		p.mu.Lock()
		p.events = append(p.events, events...)
		p.mu.Unlock()
	}
}

func (sb *sandbox) createWatcher(ctx context.Context, req *connect.Request[pb.CreateWatcherRequest]) (*connect.Response[pb.CreateWatcherResponse], error) {
	at, _, err := pathOf(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	f, err := sb.watch(at, req.Msg.GetRecursive(), req.Msg.GetIncludeEntry())
	if err != nil {
		return nil, err
	}
	p, id := &polledWatch{f: f, ended: make(chan struct{})}, newID("w")
	t := sb.watchers
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return nil, errors.Join(connect.NewError(connect.CodeUnavailable, errSandboxEnded), f.w.Close())
	}
	t.all[id] = p
	go p.collect()
	return connect.NewResponse(&pb.CreateWatcherResponse{WatcherId: id}), nil
}

func (sb *sandbox) watcherEvents(_ context.Context, req *connect.Request[pb.GetWatcherEventsRequest]) (*connect.Response[pb.GetWatcherEventsResponse], error) {
	p, err := sb.watchers.get(req.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.events
	p.events = nil
	return connect.NewResponse(&pb.GetWatcherEventsResponse{Events: events}), nil
}

func (sb *sandbox) removeWatcher(_ context.Context, req *connect.Request[pb.RemoveWatcherRequest]) (*connect.Response[pb.RemoveWatcherResponse], error) {
	p, err := sb.watchers.get(req.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	sb.watchers.mu.Lock()
	delete(sb.watchers.all, req.Msg.GetWatcherId())
	sb.watchers.mu.Unlock()
	p.close()
	return connect.NewResponse(&pb.RemoveWatcherResponse{}), nil
}
