// Package body is the one bounded reader of request bodies: size cap, read
// deadline, spill to disk above a threshold, and a ceiling over all bytes
// buffered at once.
package body

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Config bounds what is read from clients. Zero fields take the defaults in
// their comments.
type Config struct {
	// TempDir is where bodies above SpillBytes go; "" is the system's. It must
	// be writable when the gateway starts.
	TempDir string
	// SpillBytes is the size above which a body goes to disk: 1 MiB.
	SpillBytes int64
	// CeilingBytes bounds all bytes buffered in memory and on disk at once;
	// beyond it calls get an overload answer: 2 GiB.
	CeilingBytes int64
	// MessageBytes caps a body that is decoded whole (RPC, REST), as sent and
	// again after decompression: 8 MiB.
	MessageBytes int64
	// UploadBytes caps an upload after decompression: 1 GiB.
	UploadBytes int64
	// ReadTimeout is how long a message may take to arrive, and how long an
	// upload may go without a byte: 30 s.
	ReadTimeout time.Duration
}

// The defaults of Config.
const (
	DefaultSpillBytes   = 1 << 20
	DefaultCeilingBytes = 2 << 30
	DefaultMessageBytes = 8 << 20
	DefaultUploadBytes  = 1 << 30
	DefaultReadTimeout  = 30 * time.Second
)

func (c Config) withDefaults() Config {
	set := func(field *int64, def int64) {
		if *field == 0 {
			*field = def
		}
	}
	set(&c.SpillBytes, DefaultSpillBytes)
	set(&c.CeilingBytes, DefaultCeilingBytes)
	set(&c.MessageBytes, DefaultMessageBytes)
	set(&c.UploadBytes, DefaultUploadBytes)
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	return c
}

// Errors of reading, told apart because each has its own answer to the client.
var (
	// ErrTooLarge means the body is longer than its cap.
	ErrTooLarge = errors.New("body is larger than its limit")
	// ErrOverload means all buffers together are at their ceiling.
	ErrOverload = errors.New("too many bytes are buffered at once")
	// ErrTimeout means the client did not send its body in time.
	ErrTimeout = errors.New("body did not arrive in time")
)

// Reader reads bodies within a Config and keeps the count of all bytes
// buffered. It is safe for concurrent use.
type Reader struct {
	cfg    Config
	held   atomic.Int64
	parent *Reader // which must have room, too
}

// NewReader checks that the temp folder is writable, so that a wrong one is a
// start-up error and not a failed upload a week later.
func NewReader(cfg Config) (*Reader, error) {
	cfg = cfg.withDefaults()
	if cfg.SpillBytes < 0 || cfg.CeilingBytes < 0 || cfg.MessageBytes < 0 || cfg.UploadBytes < 0 || cfg.ReadTimeout < 0 {
		return nil, errors.New("body limits must not be negative")
	}
	if cfg.MessageBytes > cfg.CeilingBytes {
		return nil, fmt.Errorf("one message may be %d bytes but all buffers together only %d: raise the ceiling", cfg.MessageBytes, cfg.CeilingBytes)
	}
	f, err := spillFile(cfg.TempDir)
	if err != nil {
		return nil, fmt.Errorf("checking that the temp folder is writable: %w", err)
	}
	return &Reader{cfg: cfg}, f.Close()
}

// Part returns a Reader that takes at most a share of r's ceiling, so that what it
// reads leaves room for the rest.
func (r *Reader) Part(ceiling int64) *Reader {
	part := &Reader{cfg: r.cfg, parent: r}
	part.cfg.CeilingBytes = ceiling
	return part
}

// Config returns the limits with defaults filled in.
func (r *Reader) Config() Config { return r.cfg }

// Held is the number of bytes buffered now, in memory and on disk.
func (r *Reader) Held() int64 { return r.held.Load() }

// spillFile makes a file without a name, so that nothing is left behind however
// the process ends.
func spillFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "e2bguard-body-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Buffer is a body that was read whole. Close gives its bytes back.
type Buffer struct {
	owner *Reader
	mem   []byte
	file  *os.File
	size  int64
}

// Spool reads src to its end, at most limit bytes. The error is ErrTooLarge,
// ErrOverload, ErrTimeout, io.ErrUnexpectedEOF for a body that broke off, or
// what src or the disk returned.
func (r *Reader) Spool(src io.Reader, limit int64) (*Buffer, error) {
	b := &Buffer{owner: r}
	if err := b.fill(src, limit); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// Create returns an empty buffer that is written to: for what is made of a body
// while that is read.
func (r *Reader) Create() *Buffer { return &Buffer{owner: r} }

// Write implements io.Writer. The error is ErrOverload or what the disk returned.
func (b *Buffer) Write(p []byte) (int, error) {
	if !b.owner.take(int64(len(p))) {
		return 0, ErrOverload
	}
	b.size += int64(len(p))
	if err := b.append(p); err != nil {
		return 0, fmt.Errorf("spilling a body to disk: %w", err)
	}
	return len(p), nil
}

func (b *Buffer) fill(src io.Reader, limit int64) error {
	chunk := make([]byte, 0, 4096)
	for {
		n, err := src.Read(chunk[:cap(chunk)])
		if n > 0 {
			if b.size+int64(n) > limit {
				return ErrTooLarge
			}
			if _, werr := b.Write(chunk[:n]); werr != nil {
				return werr
			}
			if n == cap(chunk) && cap(chunk) < 64<<10 {
				chunk = make([]byte, 0, 2*cap(chunk))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return ErrTimeout
		case err != nil:
			return err
		}
	}
}

func (b *Buffer) append(p []byte) error {
	if b.file == nil && b.size <= b.owner.cfg.SpillBytes {
		b.mem = append(b.mem, p...)
		return nil
	}
	if b.file == nil {
		f, err := spillFile(b.owner.cfg.TempDir)
		if err != nil {
			return err
		}
		b.file = f
		if _, err := f.Write(b.mem); err != nil {
			return err
		}
		b.mem = nil
	}
	_, err := b.file.Write(p)
	return err
}

// Size is the length of the body in bytes.
func (b *Buffer) Size() int64 { return b.size }

// Bytes returns the whole body, read back from disk if it was spilled. The
// slice is the buffer's own: it must not be changed.
func (b *Buffer) Bytes() ([]byte, error) {
	if b.file == nil {
		return b.mem, nil
	}
	all := make([]byte, b.size)
	if _, err := b.file.ReadAt(all, 0); err != nil {
		return nil, fmt.Errorf("reading a spilled body back: %w", err)
	}
	return all, nil
}

// Reader returns a new reader over the whole body. It must not outlive Close.
func (b *Buffer) Reader() io.Reader {
	if b.file == nil {
		return bytes.NewReader(b.mem)
	}
	return io.NewSectionReader(b.file, 0, b.size)
}

// Close gives the buffer's bytes back to the ceiling. It may be called twice.
func (b *Buffer) Close() error {
	b.owner.give(b.size)
	b.size, b.mem = 0, nil
	if b.file == nil {
		return nil
	}
	f := b.file
	b.file = nil
	return f.Close()
}

// take reserves n bytes under the ceiling.
func (r *Reader) take(n int64) bool {
	if r.held.Add(n) > r.cfg.CeilingBytes || r.parent != nil && !r.parent.take(n) {
		r.held.Add(-n)
		return false
	}
	return true
}

func (r *Reader) give(n int64) {
	r.held.Add(-n)
	if r.parent != nil {
		r.parent.give(n)
	}
}
