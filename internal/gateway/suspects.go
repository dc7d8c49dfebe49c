package gateway

import (
	"context"
	"net"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

const (
	// sourcesKept bounds the sources whose failures are counted; the least
	// recently seen are forgotten first.
	sourcesKept = 16_384

	// A source that has failed this often waits: an unknown one a second for each
	// further failure, a client, which may be many workers, a twentieth.
	strangerFailures = 30
	clientFailures   = 600
	clientRate       = 20
)

// suspects counts, by source, the calls that named an unknown key, token or
// sandbox. What is in order is never counted and never held up. It is safe for
// concurrent use.
type suspects struct {
	sources *lru.Cache[source, *rate.Limiter]
}

// source is who a failure is counted against: a network address, or a client by
// name.
type source struct {
	addr   string
	client string
}

func newSuspects() *suspects {
	cache, err := lru.New[source, *rate.Limiter](sourcesKept)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &suspects{cache}
}

func (s *suspects) limiter(from source) *rate.Limiter {
	if l, ok := s.sources.Get(from); ok {
		return l
	}
	l := rate.NewLimiter(rate.Every(time.Second), strangerFailures)
	if from.client != "" {
		l = rate.NewLimiter(clientRate, clientFailures)
	}
	if old, ok, _ := s.sources.PeekOrAdd(from, l); ok {
		return old
	}
	return l
}

// count counts one failure; false says that there were too many.
func (s *suspects) count(from source) bool { return s.limiter(from).Allow() }

// exhausted reports whether there were too many failures already.
func (s *suspects) exhausted(from source) bool { return s.limiter(from).Tokens() < 1 }

// suspect counts a call that failed to show whose it is, and answers it.
func (c *call) suspect(ref *refusal.Refusal) *refusal.Refusal {
	if c.g.state.suspects.count(c.source()) {
		return ref
	}
	return c.refuseSuspect()
}

func (c *call) refuseSuspect() *refusal.Refusal {
	c.quiet = true // a flood must not fill the log
	return refusal.New(refusal.CodeOverload, "too many calls from here named keys, tokens or sandboxes that this gateway does not know. Check E2B_API_KEY and the sandbox ids, and try again in a moment.")
}

// source is whom the call's failures are counted against.
func (c *call) source() source {
	if c.client != "" && c.target.Sandbox == "" {
		return source{client: c.client}
	}
	addr, ok := c.r.Context().Value(clientIPKey{}).(string)
	if !ok {
		addr = c.r.RemoteAddr
		if host, _, err := net.SplitHostPort(addr); err == nil {
			addr = host
		}
	}
	if ip, err := netip.ParseAddr(addr); err == nil && ip.Is6() && !ip.Is4In6() {
		// Whoever has one address of IPv6 has 2^64 of them.
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			addr = network.String()
		}
	}
	return source{addr: addr}
}

type clientIPKey struct{}

// WithClientIP returns a context that says where a call comes from, for callers
// that know better than its connection: behind a trusted proxy.
func WithClientIP(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, clientIPKey{}, ip)
}
