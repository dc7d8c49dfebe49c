package guard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// CacheOptions tunes a Cache. Zero fields take the defaults in their comments.
type CacheOptions struct {
	// Entries is how many verdicts are kept, the least recently used going first:
	// 4096.
	Entries int
	// TTL is how long a verdict holds: 10 minutes.
	TTL time.Duration
	// PolicyDigest is part of the key: verdicts given under another policy are not
	// found.
	PolicyDigest string
}

// Cache is a Guard that remembers the verdicts of another. Two subjects are the
// same only if all of them is the same, the client's name included, save the
// labels LabelSandbox and LabelRequest. Identical subjects that arrive while the
// first is being reviewed wait for its verdict: they are one review. Errors are
// not kept.
type Cache struct {
	inner         Guard
	ttl           time.Duration
	policy, chain string
	now           func() time.Time

	verdicts *lru.Cache[cacheKey, cached]

	mu      sync.Mutex
	flights map[cacheKey]*flight
}

type cacheKey = [sha256.Size]byte

type cached struct {
	verdict Verdict
	until   time.Time
}

// flight is one review that several callers may wait for. It ends early only
// when the last of them has left.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int // guarded by Cache.mu
	verdict Verdict
	err     error
}

// NewCache puts a cache before inner. If inner is a Digester, its digest is part
// of the key.
func NewCache(inner Guard, opts CacheOptions) (*Cache, error) {
	if inner == nil {
		return nil, errors.New("building verdict cache: no guard")
	}
	if opts.Entries < 0 || opts.TTL < 0 {
		return nil, fmt.Errorf("building verdict cache: negative size (%d entries) or lifetime (%v)", opts.Entries, opts.TTL)
	}
	if opts.Entries == 0 {
		opts.Entries = 4096
	}
	if opts.TTL == 0 {
		opts.TTL = 10 * time.Minute
	}
	verdicts, err := lru.New[cacheKey, cached](opts.Entries)
	if err != nil {
		return nil, fmt.Errorf("building verdict cache: %w", err)
	}
	// The expiring variant of the library keeps a goroutine that cannot be
	// stopped, one more for every reload of the configuration.
	return &Cache{
		inner:    inner,
		ttl:      opts.TTL,
		policy:   opts.PolicyDigest,
		chain:    digestOf(inner),
		now:      time.Now,
		verdicts: verdicts,
		flights:  make(map[cacheKey]*flight),
	}, nil
}

// Review implements Guard.
func (c *Cache) Review(ctx context.Context, s Subject) (Verdict, error) {
	start := c.now()
	if err := ctx.Err(); err != nil {
		return Verdict{}, failure(ctx, "", err)
	}
	key := c.key(s)
	c.mu.Lock()
	if hit, ok := c.verdicts.Get(key); ok && start.Before(hit.until) {
		c.mu.Unlock()
		return again(hit.verdict, c.now().Sub(start)), nil
	}
	f, joined := c.flights[key]
	if !joined {
		f = c.launch(ctx, key, s)
	}
	f.waiters++
	c.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
		c.leave(key, f)
		return Verdict{}, failure(ctx, "", ctx.Err())
	}
	switch {
	case f.err != nil:
		return Verdict{}, f.err
	case joined:
		return again(f.verdict, c.now().Sub(start)), nil
	default:
		return own(f.verdict), nil
	}
}

// launch starts the review; c.mu is held. It is not tied to the first caller's
// context, whose going away must not fail the others.
func (c *Cache) launch(ctx context.Context, key cacheKey, s Subject) *flight {
	detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[key] = f
	s.Labels = maps.Clone(s.Labels) // The first caller may leave, and change them.
	go func() {
		defer cancel()
		f.verdict, f.err = reviewSafely(detached, c.inner, s)
		c.land(key, f)
	}()
	return f
}

// land keeps the verdict and tells everyone who waits.
func (c *Cache) land(key cacheKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.err == nil {
		c.verdicts.Add(key, cached{f.verdict, c.now().Add(c.ttl)})
	}
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	close(f.done)
}

// leave counts a caller out. The last one ends the review, and nobody can join it
// any more.
func (c *Cache) leave(key cacheKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiters--
	if f.waiters == 0 {
		f.cancel()
		if c.flights[key] == f {
			delete(c.flights, key)
		}
	}
}

// again is a verdict as a later caller gets it.
func again(v Verdict, took time.Duration) Verdict {
	v = own(v)
	v.Cached = true
	v.Took = took
	return v
}

// own is a verdict whose parts the caller may change.
func own(v Verdict) Verdict {
	v.Violations = slices.Clone(v.Violations)
	return v
}

// Digest implements Digester.
func (c *Cache) Digest() string { return digestOf(c.inner) }

// key digests the whole subject, unambiguously: every field is preceded by its
// length, every list by its count.
func (c *Cache) key(s Subject) cacheKey {
	d := newDigest()
	d.field(c.policy)
	d.field(c.chain)
	d.field(string(s.Kind))
	d.field(s.Language)
	d.field(s.Target)
	d.field(s.Text)
	d.count(len(s.Files))
	for _, f := range s.Files {
		d.field(f.Path)
		d.field(f.Text)
	}
	names := make([]string, 0, len(s.Labels))
	for name := range s.Labels {
		if name != LabelSandbox && name != LabelRequest {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	d.count(len(names))
	for _, name := range names {
		d.field(name)
		d.field(s.Labels[name])
	}
	return d.sum()
}

// digest is a SHA-256 over fields of known length.
type digest struct {
	h   hash.Hash
	buf []byte
}

func newDigest() *digest { return &digest{h: sha256.New(), buf: make([]byte, 1024)} }

func (d *digest) count(n int) {
	binary.BigEndian.PutUint64(d.buf, uint64(n))
	d.h.Write(d.buf[:8])
}

func (d *digest) field(s string) {
	d.count(len(s))
	// In pieces: a conversion would copy a text of megabytes.
	for len(s) > 0 {
		n := copy(d.buf, s)
		d.h.Write(d.buf[:n])
		s = s[n:]
	}
}

func (d *digest) sum() (key cacheKey) {
	d.h.Sum(key[:0])
	return key
}
