package audit

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// file is the file that is written, and the chain it is part of.
type file struct {
	path  string
	open  func(path string, flag int) (handle, error)
	f     handle
	lock  *os.File
	size  int64
	state state
}

// handle is what is needed of an open file.
type handle interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// openHandle opens a file of a log.
func openHandle(path string, flag int) (handle, error) {
	f, err := os.OpenFile(path, flag, fileMode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

const (
	fileMode = 0o600
	// maxTail bounds the last record of a file that is gone on with.
	maxTail = 64 << 20
)

// openFile takes the lock, looks at the end of what is there, cuts a torn record
// off, and goes on with the chain.
func openFile(l *Log) (_ *file, err error) {
	lock, err := takeLock(l.path + ".lock")
	if err != nil {
		return nil, err
	}
	f := &file{path: l.path, open: l.openHandle, lock: lock}
	defer func() {
		if err != nil {
			f.abandon()
		}
	}()
	note, err := f.resume()
	if err != nil {
		return nil, err
	}
	created := f.size == 0
	if f.f, err = f.open(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE); err != nil {
		return nil, err
	}
	if created {
		f.state.File++
		if err := syncDir(l.path); err != nil {
			return nil, err
		}
	}
	opts := l.opts.Load()
	if err := f.mark(KindOpen, note, opts); err != nil {
		return nil, err
	}
	if err := f.sync(); err != nil {
		return nil, err
	}
	return f, f.saveHead()
}

// takeLock keeps a second process out: two chains in one file would be none.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another process writes this audit log (%s is locked): give each its own file, as in: audit /var/log/e2bguard/{system.hostname}.jsonl", path)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return lock, nil
}

// resume finds out where the chain stands: from the end of the file, from the
// newest old file, and from the head that was noted beside them.
func (f *file) resume() (Mark, error) {
	var note Mark
	head, err := loadHead(f.path)
	if err != nil {
		return note, err
	}
	last, size, torn, err := lastRecord(f.path)
	switch {
	case err == nil:
	case errors.Is(err, errDamaged):
		aside := f.path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000Z")
		if err := os.Rename(f.path, aside); err != nil {
			return note, fmt.Errorf("putting a damaged audit log aside: %w", err)
		}
		note.Damaged, last, size = filepath.Base(aside), Record{}, 0
	default:
		return note, err
	}
	if torn > 0 && note.Damaged == "" {
		if err := os.Truncate(f.path, size); err != nil {
			return note, fmt.Errorf("cutting a torn record off the audit log: %w", err)
		}
		note.Torn = torn
	}
	f.size = size
	old := f.files()
	if last.Seq == 0 && len(old) > 0 {
		if newest, _, _, err := lastRecord(old[len(old)-1].path); err == nil {
			last = newest
		}
	}
	note.Unclean = last.Seq > 0 && last.Kind != KindClose
	f.state = state{Chain: head.Chain, File: head.File, Seq: last.Seq, Hash: last.Hash}
	if last.Seq > 0 && size > 0 {
		first, err := firstRecord(f.path)
		if err != nil || first.Mark == nil {
			return note, fmt.Errorf("the audit log %s does not begin with a record of its chain", f.path)
		}
		f.state.Chain, f.state.File = first.Chain, first.File
	} else if last.Mark != nil {
		f.state.Chain, f.state.File = last.Chain, last.File
	}
	if head.Seq > f.state.Seq {
		// Records that were on disk are gone: the chain goes on behind them, so that
		// the gap shows.
		note.Missing = head.Seq
		f.state = state{head.Chain, max(head.File, f.state.File), head.Seq, head.Hash}
	}
	if f.state.Seq == 0 {
		var id [8]byte
		_, _ = rand.Read(id[:]) // never fails
		f.state = state{Chain: hex.EncodeToString(id[:]), Hash: genesis}
	}
	return note, nil
}

// append writes the entries' lines in one piece, in a new file if this one is
// full.
func (f *file) append(batch []*entry, opts *Options) error {
	if opts.RotateBytes > 0 && f.size >= opts.RotateBytes {
		if err := f.rotate(opts); err != nil {
			return err
		}
	}
	next := f.state
	var lines []byte
	for _, e := range batch {
		if len(e.body) > 0 {
			lines = next.seal(lines, e.body, opts.Key)
		}
	}
	return f.put(lines, next)
}

// put writes whole lines, or nothing: what was written of a piece that did not
// fit is taken back.
func (f *file) put(lines []byte, next state) error {
	if len(lines) == 0 {
		return nil
	}
	n, err := f.f.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		if n > 0 {
			err = errors.Join(err, f.f.Truncate(f.size))
		}
		return err
	}
	f.size += int64(n)
	f.state = next
	return nil
}

func (f *file) sync() error { return f.f.Sync() }

// mark writes a record about the log itself.
func (f *file) mark(kind Kind, m Mark, opts *Options) error {
	m.Chain, m.File, m.Key = f.state.Chain, f.state.File, opts.Key.ID()
	e, err := encode(Record{Kind: kind, Mark: &m})
	if err != nil {
		return err
	}
	next := f.state
	return f.put(next.seal(nil, e.body, opts.Key), next)
}

// rotate goes on in a new file. The old one gets a name that no other has.
func (f *file) rotate(opts *Options) error {
	if err := f.mark(KindClose, Mark{Why: "rotated"}, opts); err != nil {
		return err
	}
	if err := f.sync(); err != nil {
		return err
	}
	if err := f.saveHead(); err != nil {
		return err
	}
	old := f.oldName()
	if _, err := os.Lstat(old); err == nil {
		return fmt.Errorf("rotating the audit log: %s is there already", old)
	}
	if err := os.Rename(f.path, old); err != nil {
		return fmt.Errorf("rotating the audit log: %w", err)
	}
	next, err := f.open(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return fmt.Errorf("rotating the audit log: %w", err)
	}
	_ = f.f.Close() // it is on disk
	f.f, f.size = next, 0
	f.state.File++
	if err := syncDir(f.path); err != nil {
		return err
	}
	if err := f.mark(KindOpen, Mark{}, opts); err != nil {
		return err
	}
	return f.retain(opts)
}

// end closes the log in order.
func (f *file) end(why string, opts *Options) error {
	err := f.mark(KindClose, Mark{Why: why}, opts)
	if err == nil {
		err = f.sync()
	}
	if err == nil {
		err = f.saveHead()
	}
	f.abandon()
	return err
}

// abandon lets go of the file as it is.
func (f *file) abandon() {
	if f.f != nil {
		_ = f.f.Close()
	}
	_ = f.lock.Close() // and with it the lock
}

// oldFile is a file that was rotated away.
type oldFile struct {
	path string
	info fs.FileInfo
}

// oldName is <name>.<chain>.<number><ext>, for audit.jsonl: audit.<chain>.00000001.jsonl.
func (f *file) oldName() string {
	ext := filepath.Ext(f.path)
	return fmt.Sprintf("%s.%s.%08d%s", strings.TrimSuffix(f.path, ext), f.state.Chain, f.state.File, ext)
}

// files are the old files, oldest first.
func (f *file) files() []oldFile {
	ext := filepath.Ext(f.path)
	base := filepath.Base(strings.TrimSuffix(f.path, ext)) + "."
	entries, _ := os.ReadDir(filepath.Dir(f.path))
	var old []oldFile
	for _, e := range entries {
		chain, number, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(e.Name(), base), ext), ".")
		if !strings.HasPrefix(e.Name(), base) || !strings.HasSuffix(e.Name(), ext) || !ok || len(chain) != 16 || len(number) != 8 {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			old = append(old, oldFile{filepath.Join(filepath.Dir(f.path), e.Name()), info})
		}
	}
	slices.SortFunc(old, func(a, b oldFile) int {
		if c := a.info.ModTime().Compare(b.info.ModTime()); c != 0 {
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	return old
}

// retain removes old files, and says so in the log before it does: files that
// somebody else removed are missed.
func (f *file) retain(opts *Options) error {
	old := f.files()
	remove := 0
	if opts.KeepFiles > 0 {
		remove = max(0, len(old)-opts.KeepFiles)
	}
	for opts.KeepFor > 0 && remove < len(old) && time.Since(old[remove].info.ModTime()) > opts.KeepFor {
		remove++
	}
	for _, o := range old[:remove] {
		last, _, _, err := lastRecord(o.path)
		if err != nil || last.Seq == 0 {
			continue // no file of ours, or a damaged one: that is evidence
		}
		if err := f.mark(KindRemoved, Mark{Name: filepath.Base(o.path), Last: last.Seq, LastHash: last.Hash}, opts); err != nil {
			return err
		}
		if err := f.sync(); err != nil {
			return err
		}
		if err := os.Remove(o.path); err != nil {
			return fmt.Errorf("removing an old audit log: %w", err)
		}
	}
	return nil
}

// The head, beside the log, is how far it had come at the last checkpoint.
func headPath(path string) string { return path + ".head" }

func (f *file) saveHead() error {
	b, err := json.Marshal(f.state)
	if err != nil {
		return err
	}
	temp := headPath(f.path) + ".new"
	if err := writeSynced(temp, append(b, '\n')); err != nil {
		return fmt.Errorf("noting how far the audit log has come: %w", err)
	}
	if err := os.Rename(temp, headPath(f.path)); err != nil {
		return fmt.Errorf("noting how far the audit log has come: %w", err)
	}
	return syncDir(f.path)
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// loadHead reads the head of a log; none, or one that cannot be read, says
// nothing.
func loadHead(path string) (state, error) {
	var s state
	b, err := os.ReadFile(headPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if json.Unmarshal(b, &s) != nil || len(s.Hash) != hexSum || s.Seq == 0 {
		return state{}, nil
	}
	return s, nil
}

func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// errDamaged says that the last whole line of a file is no record, or a changed
// one: that is no work of a killed process.
var errDamaged = errors.New("the end of the audit log does not verify")

// lastRecord returns the last whole record of a file, where it ends, and how many
// bytes of an incomplete one follow. No file, and an empty one, have none.
func lastRecord(path string) (r Record, size, torn int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, 0, 0, nil
	}
	if err != nil {
		return r, 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return r, 0, 0, err
	}
	if !info.Mode().IsRegular() {
		return r, 0, 0, fmt.Errorf("the audit log %s is no regular file", path)
	}
	total := info.Size()
	for span := int64(64 << 10); ; span *= 4 {
		start := max(0, total-span)
		b := make([]byte, total-start)
		if _, err := f.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
			return r, 0, 0, err
		}
		end := bytes.LastIndexByte(b, '\n')
		from := bytes.LastIndexByte(b[:max(end, 0)], '\n') + 1
		if start > 0 && from == 0 {
			if span > maxTail {
				return r, 0, 0, errDamaged
			}
			continue
		}
		size = start + int64(end) + 1
		if end < 0 {
			return r, 0, total, nil // nothing but the beginning of a first record
		}
		r, err := open(b[from:end], nil)
		if err != nil {
			return r, 0, 0, errDamaged
		}
		return r, size, total - size, nil
	}
}

func firstRecord(path string) (Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return Record{}, err
	}
	defer f.Close()
	line, err := newLines(f).next()
	if err != nil {
		return Record{}, err
	}
	return open(line, nil)
}
