package gateway

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/e2bguard/e2bguard/internal/redact"
)

// sandboxesKept bounds what is remembered about sandboxes; the oldest unused
// are forgotten first, which costs a forgotten one nothing but its traffic
// token.
const sandboxesKept = 100_000

// State is what must outlive a reload of the configuration: what is known about
// running sandboxes. It is safe for concurrent use.
type State struct {
	sandboxes *lru.Cache[string, sandbox]
	contexts  *lru.Cache[contextKey, string]
}

// contextKey names a context of the code interpreter.
type contextKey struct{ sandbox, id string }

// sandbox is what the gateway keeps of one it saw being created or connected.
type sandbox struct {
	// client is the name of the client that created or connected it.
	client string
	// trafficToken opens its ports; the gateway supplies it, because every
	// sandbox is created with public traffic off.
	trafficToken redact.Secret
	// started is when it was created or woken; zero if that was not seen.
	started time.Time
}

// NewState returns an empty State.
func NewState() *State {
	return &State{sandboxes: newCache[string, sandbox](), contexts: newCache[contextKey, string]()}
}

func newCache[K comparable, V any]() *lru.Cache[K, V] {
	cache, err := lru.New[K, V](sandboxesKept)
	if err != nil {
		panic(err) // only for a size below one
	}
	return cache
}

func (s *State) remember(id string, sb sandbox) {
	if old, ok := s.sandboxes.Peek(id); ok && sb.trafficToken.IsZero() {
		sb.trafficToken = old.trafficToken // not every answer carries it
	}
	s.sandboxes.Add(id, sb)
}

func (s *State) lookup(id string) (sandbox, bool) { return s.sandboxes.Get(id) }

func (s *State) rememberContext(sandbox, id, language string) {
	s.contexts.Add(contextKey{sandbox, id}, language)
}

// contextLanguage is the language of a context; "" if it was made elsewhere.
func (s *State) contextLanguage(sandbox, id string) string {
	language, _ := s.contexts.Get(contextKey{sandbox, id})
	return language
}
