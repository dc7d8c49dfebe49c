package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options is how a Log keeps its records.
type Options struct {
	// Async answers Append before the record is on disk.
	Async bool
	// RotateBytes is the size from which the log goes on in a new file; 0 for
	// never.
	RotateBytes int64
	// KeepFiles and KeepFor bound the old files, by number and by age; 0 keeps all.
	KeepFiles int
	KeepFor   time.Duration
	// Key, if it is one, is what MACs are made with.
	Key Key
	// Logger is told of checkpoints, which say elsewhere how far the log has come,
	// and of faults; nil for nobody.
	Logger *zap.Logger
	// Written, if set, is called after records were written, from the writer: it
	// must not block.
	Written func()
}

const (
	// queued bounds the records that wait for the disk.
	queued = 8192
	// queuedBytes bounds them by their size.
	queuedBytes = 256 << 20
	// batchBytes bounds what is written at once.
	batchBytes = 4 << 20
	// waitMax is how long Append waits for a disk that does not answer.
	waitMax = 10 * time.Second
	// flushEvery is how long a record that nobody waits for may stay off the disk.
	flushEvery = time.Second
	// A checkpoint comes after this many records, or this long, if there are any.
	checkpointRecords = 10_000
	checkpointEvery   = time.Minute
)

// ErrFull says that the disk is too slow for the calls: the queue is full.
var ErrFull = errors.New("the audit log's queue is full: the disk does not keep up")

var errClosed = errors.New("the audit log is closed")

// Log is a log on disk. It is safe for concurrent use. The file is opened by
// Start or the first Append, and again after a fault.
type Log struct {
	path string
	opts atomic.Pointer[Options]

	queue   chan *entry
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
	failing atomic.Pointer[error] // of an asynchronous log: what keeps it from writing

	written, lost, syncs, failures atomic.Uint64
	held                           atomic.Int64 // bytes of entries that are not written yet

	// The rest belongs to the writer's goroutine.
	file       *file
	open       func(*Log) (*file, error)
	openHandle func(path string, flag int) (handle, error)
	pending    []*entry // of an asynchronous log, to be tried again
	unsynced   bool
	sinceMark  int
	lostBefore uint64 // that a record has told of
}

// entry is a record on its way.
type entry struct {
	body []byte
	wait chan error // nil: nobody waits
}

// Stats is what a Log has done since it was made.
type Stats struct {
	// Written and Lost count records, Syncs the times the disk was waited for,
	// Failures the times it could not be written.
	Written, Lost, Syncs, Failures uint64
}

// New returns a Log that is not open yet; Close must be called in the end.
func New(path string, opts Options) *Log {
	l := &Log{path: path, queue: make(chan *entry, queued), closing: make(chan struct{}), done: make(chan struct{}), open: openFile, openHandle: openHandle}
	l.Configure(opts)
	go l.run()
	return l
}

// Configure changes the options of a log that is in use.
func (l *Log) Configure(opts Options) {
	if opts.Logger == nil {
		opts.Logger = zap.NewNop()
	}
	l.opts.Store(&opts)
}

// Path is the file's.
func (l *Log) Path() string { return l.path }

// Stats returns the counts.
func (l *Log) Stats() Stats {
	return Stats{Written: l.written.Load(), Lost: l.lost.Load(), Syncs: l.syncs.Load(), Failures: l.failures.Load()}
}

// Start opens the file, so that a fault is known before the first call.
func (l *Log) Start(ctx context.Context) error { return l.put(ctx, &entry{wait: make(chan error, 1)}) }

// Append writes a record. Unless the log is asynchronous it returns when the
// record is on disk; an error says that it is not. An asynchronous log returns an
// error while it cannot write, or when the queue is full; then the record is lost
// and counted.
func (l *Log) Append(ctx context.Context, r Record) error {
	e, err := encode(r)
	if err != nil {
		return err
	}
	if !l.opts.Load().Async {
		e.wait = make(chan error, 1)
		return l.put(ctx, e)
	}
	if failing := l.failing.Load(); failing != nil {
		l.lost.Add(1)
		return *failing
	}
	return l.put(ctx, e)
}

// Note writes a record without waiting for the disk. One that cannot be written
// is lost and counted.
func (l *Log) Note(r Record) {
	e, err := encode(r)
	if err == nil {
		err = l.put(context.Background(), e)
	}
	if err != nil {
		l.opts.Load().Logger.Error("a record is missing from the audit log", zap.String("kind", string(r.Kind)), zap.String("request_id", r.ID), zap.Error(err))
	}
}

// Missed counts a record that the caller let go after Append had failed.
func (l *Log) Missed() { l.lost.Add(1) }

func encode(r Record) (*entry, error) {
	r.V, r.Time = Version, r.Time.UTC()
	if r.Time.IsZero() {
		r.Time = time.Now().UTC()
	}
	r.Seq, r.Prev, r.Hash, r.MAC = 0, "", "", ""
	body, err := json.Marshal(r)
	if err == nil && len(body) > maxLine-(4<<10) && r.Decision != nil {
		// A line that cannot be read again is no record: the digests stand for the
		// texts.
		short := *r.Decision
		short.Subjects = slices.Clone(short.Subjects)
		for i := range short.Subjects {
			short.Subjects[i].Text, short.Subjects[i].Cut = "", true
		}
		r.Decision = &short
		body, err = json.Marshal(r)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding an audit record: %w", err)
	}
	return &entry{body: body[len(`{"seq":0,`)-1:]}, nil
}

func (l *Log) put(ctx context.Context, e *entry) error {
	if err := l.enqueue(e); err != nil {
		if e.wait == nil {
			l.lost.Add(1)
		}
		return err
	}
	if e.wait == nil {
		return nil
	}
	late := time.NewTimer(waitMax)
	defer late.Stop()
	select {
	case err := <-e.wait:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return fmt.Errorf("the disk has not answered for %s", waitMax)
	case <-l.done:
		select {
		case err := <-e.wait:
			return err
		default:
			return errClosed
		}
	}
}

func (l *Log) enqueue(e *entry) error {
	size := int64(len(e.body))
	if l.held.Add(size) > queuedBytes {
		l.held.Add(-size)
		return ErrFull
	}
	select {
	case <-l.closing:
		l.held.Add(-size)
		return errClosed
	case l.queue <- e:
		return nil
	default:
		l.held.Add(-size)
		return ErrFull
	}
}

// Close writes what is queued, closes the log in order and returns when that is
// done.
func (l *Log) Close() error {
	l.once.Do(func() { close(l.closing) })
	<-l.done
	return nil
}

// run is the writer: it takes what has come while it waited for the disk, and
// writes it at once (group commit).
func (l *Log) run() {
	defer close(l.done)
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	mark := time.NewTicker(checkpointEvery)
	defer mark.Stop()
	for {
		select {
		case e := <-l.queue:
			l.commit(l.collect(e))
		case <-flush.C:
			if len(l.pending) > 0 {
				l.commit(nil)
			}
			l.flush()
		case <-mark.C:
			if l.sinceMark > 0 {
				l.checkpoint()
			}
		case <-l.closing:
			l.drain()
			return
		}
	}
}

// collect returns the entry and those that wait behind it.
func (l *Log) collect(e *entry) []*entry {
	batch := []*entry{e}
	for size := len(e.body); size < batchBytes; {
		select {
		case next := <-l.queue:
			batch = append(batch, next)
			size += len(next.body)
		default:
			return batch
		}
	}
	return batch
}

func (l *Log) drain() {
	for {
		select {
		case e := <-l.queue:
			l.commit(l.collect(e))
			continue
		default:
		}
		break
	}
	l.lose(l.pending)
	if l.file == nil {
		return
	}
	if err := l.file.end("stopped", l.opts.Load()); err != nil {
		l.opts.Load().Logger.Error("closing the audit log", zap.Error(err))
	}
	l.file = nil
}

// commit writes a batch, waits for the disk if anybody waits for it, and tells
// them.
func (l *Log) commit(batch []*entry) {
	opts := l.opts.Load()
	batch = append(l.pending, batch...)
	l.pending = nil
	err := l.write(batch, opts)
	if err == nil {
		l.failing.Store(nil)
		l.sinceMark += len(batch)
		if l.sinceMark >= checkpointRecords {
			l.checkpoint()
		}
		if opts.Written != nil {
			opts.Written()
		}
	} else {
		l.failures.Add(1)
		err = fmt.Errorf("writing the audit log: %w", err)
		if l.failing.Swap(&err) == nil {
			opts.Logger.Error("the audit log cannot be written", zap.String("path", l.path), zap.Error(err))
		}
	}
	var again []*entry
	for _, e := range batch {
		if err != nil && e.wait == nil {
			again = append(again, e)
			continue
		}
		l.held.Add(-int64(len(e.body)))
		if e.wait != nil {
			e.wait <- err
		}
	}
	// What nobody waits for is tried again, as long as it is little.
	if keep := min(len(again), queued); keep > 0 {
		l.lose(again[keep:])
		l.pending = again[:keep]
	}
}

func (l *Log) lose(entries []*entry) {
	for _, e := range entries {
		l.held.Add(-int64(len(e.body)))
	}
	if n := uint64(len(entries)); n > 0 {
		l.lost.Add(n)
		l.opts.Load().Logger.Error("records are missing from the audit log", zap.Uint64("records", n))
	}
}

func (l *Log) write(batch []*entry, opts *Options) error {
	if l.file == nil {
		f, err := l.open(l)
		if err != nil {
			return err
		}
		l.file = f
	}
	lost := l.lost.Load()
	if lost > l.lostBefore {
		e, err := encode(Record{Kind: KindLost, Mark: &Mark{Chain: l.file.state.Chain, File: l.file.state.File, Lost: lost - l.lostBefore}})
		if err != nil {
			return err
		}
		batch = append([]*entry{e}, batch...)
	}
	err := l.file.append(batch, opts)
	waited := false
	for _, e := range batch {
		waited = waited || e.wait != nil
	}
	if err == nil {
		l.unsynced = true
		if waited {
			err = l.sync()
		}
	}
	if err != nil {
		// What the file holds is not known now: it is looked at again.
		l.file.abandon()
		l.file = nil
		return err
	}
	l.lostBefore = lost
	l.written.Add(uint64(len(batch)))
	return nil
}

func (l *Log) sync() error {
	if !l.unsynced || l.file == nil {
		return nil
	}
	l.syncs.Add(1)
	if err := l.file.sync(); err != nil {
		return err
	}
	l.unsynced = false
	return nil
}

// flush brings to the disk what nobody waited for.
func (l *Log) flush() {
	if err := l.sync(); err != nil {
		l.failures.Add(1)
		l.opts.Load().Logger.Error("the audit log cannot be written", zap.String("path", l.path), zap.Error(err))
		l.file.abandon()
		l.file = nil
	}
}

// checkpoint says in the log, beside it and in the Caddy log how far it has come,
// so that an end that is cut off is missed.
func (l *Log) checkpoint() {
	if l.file == nil {
		return
	}
	opts := l.opts.Load()
	err := l.file.mark(KindCheckpoint, Mark{}, opts)
	if err == nil {
		l.unsynced = true
		err = l.sync()
	}
	if err == nil {
		err = l.file.saveHead()
	}
	if err != nil {
		l.failures.Add(1)
		opts.Logger.Error("the audit log cannot be written", zap.String("path", l.path), zap.Error(err))
		l.file.abandon()
		l.file = nil
		return
	}
	l.sinceMark = 0
	opts.Logger.Info("audit checkpoint", zap.String("chain", l.file.state.Chain), zap.Uint64("seq", l.file.state.Seq), zap.String("hash", l.file.state.Hash))
}
