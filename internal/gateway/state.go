package gateway

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/redact"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// sandboxesKept bounds what is remembered about sandboxes; the oldest unused
// are forgotten first, and looked up again where that is possible.
const sandboxesKept = 100_000

// sandboxesSearched bounds the search for the sandbox that a signature is from:
// it costs about 6 µs for each.
const sandboxesSearched = 10_000

// State is what must outlive a reload of the configuration: what is known about
// running sandboxes. It is safe for concurrent use.
type State struct {
	sandboxes *lru.Cache[string, sandbox]
	contexts  *lru.Cache[contextKey, interpreter.Context]
	// limited are the contexts whose kernels have their limits, by id or, for the one
	// that a language has by default, by language.
	limited *lru.Cache[contextKey, struct{}]
	// missing holds until when a sandbox is taken for none of this gateway's
	// without asking E2B again.
	missing  *lru.Cache[string, time.Time]
	suspects *suspects
	// wallets are the secrets of sandboxes, sets those of the busy ones, ready to be
	// searched for.
	wallets *lru.Cache[string, *wallet]
	sets    *lru.Cache[string, readySet]
	// processes are the running processes of the sandboxes.
	processes *processes
	// files are the files of the sandboxes that came through the gateway.
	files *fileMemory
	usage *lru.Cache[string, *usage]
	// templates are the owners of templates, by id or name.
	templates *lru.Cache[string, templateOwner]
	// volumes are by id.
	volumes *lru.Cache[string, volume]
	endings *endings
	lives   *lives
	// archives are the files that clients uploaded for builds.
	archives *archiveMemory
	// ownSeal seals upload URLs where the configuration has no key: clients hold
	// nothing else that is sealed, and an upload URL does not outlive the process.
	ownSeal *seal.Sealer
}

// missingFor is short, so that a client that is added, or a sandbox that another
// replica has made, is soon known.
const missingFor = 10 * time.Second

// contextKey names a context of the code interpreter.
type contextKey struct{ sandbox, id string }

// sandbox is what the gateway keeps of one it saw being created or connected.
type sandbox struct {
	// client is the name of the client that created or connected it.
	client string
	// envdToken is E2B's token for envd, if envdKnown; it may be known that there
	// is none.
	envdToken redact.Secret
	envdKnown bool
	// trafficToken opens its ports; the gateway supplies it, because every
	// sandbox is created with public traffic off.
	trafficToken redact.Secret
	// domain is the domain whose hosts it is reached at, if domainKnown; "" for
	// sandbox_url.
	domain      string
	domainKnown bool
	// started is when it was created or woken; zero if that was not seen.
	started time.Time
	// volumes are those mounted in it, as E2B knows them, if volumesKnown.
	volumes      []string
	volumesKnown bool
}

// NewState returns an empty State.
func NewState() *State {
	memory := newFileMemory()
	s := &State{
		sandboxes: newCache[string, sandbox](sandboxesKept), contexts: newCache[contextKey, interpreter.Context](sandboxesKept),
		limited: newCache[contextKey, struct{}](sandboxesKept), missing: newCache[string, time.Time](sandboxesKept),
		suspects: newSuspects(), wallets: newCache[string, *wallet](sandboxesKept), sets: newCache[string, readySet](setsKept),
		processes: newProcesses(memory), files: memory, usage: newUsage(),
		templates: newCache[string, templateOwner](sandboxesKept), volumes: newCache[string, volume](sandboxesKept), endings: newEndings(), lives: newLives(),
		archives: newArchiveMemory(), ownSeal: newOwnSeal(),
	}
	memory.volumesOf = s.volumesOf
	return s
}

// volumesOf are the keys of the volumes that are mounted in a sandbox, as far as is
// known.
func (s *State) volumesOf(id string) []string {
	sb, _ := s.sandboxes.Peek(id)
	keys := make([]string, len(sb.volumes))
	for i, name := range sb.volumes {
		keys[i] = volumeKey(name)
	}
	return keys
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // only for a size below one
	}
	return cache
}

// remember adds to what is known of a sandbox: no source of knowledge has all of
// it.
func (s *State) remember(id string, sb sandbox) {
	if old, known := s.sandboxes.Peek(id); known {
		if sb.trafficToken.IsZero() {
			sb.trafficToken = old.trafficToken
		}
		if !sb.envdKnown {
			sb.envdToken, sb.envdKnown = old.envdToken, old.envdKnown
		}
		if !sb.domainKnown {
			sb.domain, sb.domainKnown = old.domain, old.domainKnown
		}
		if sb.started.IsZero() {
			sb.started = old.started
		}
		if !sb.volumesKnown {
			sb.volumes, sb.volumesKnown = old.volumes, old.volumesKnown
		}
	}
	s.sandboxes.Add(id, sb)
}

func (s *State) forget(id string) {
	s.sandboxes.Remove(id)
	s.processes.forget(id)
	s.files.forget(id)
}

// find returns the sandbox that is the one, searching those used last.
func (s *State) find(is func(id string, sb sandbox) bool) (string, sandbox, bool) {
	ids := s.sandboxes.Keys() // the latest used last
	for i := len(ids) - 1; i >= max(0, len(ids)-sandboxesSearched); i-- {
		if sb, known := s.sandboxes.Peek(ids[i]); known && is(ids[i], sb) {
			return ids[i], sb, true
		}
	}
	return "", sandbox{}, false
}

func (s *State) miss(id string) { s.missing.Add(id, time.Now().Add(missingFor)) }

func (s *State) isMissing(id string) bool {
	until, ok := s.missing.Get(id)
	return ok && time.Now().Before(until)
}

func (s *State) lookup(id string) (sandbox, bool) { return s.sandboxes.Get(id) }

func (s *State) rememberContext(sandbox, id string, context interpreter.Context) {
	s.contexts.Add(contextKey{sandbox, id}, context)
}

// context is what is known of a context; nothing if it was made elsewhere.
func (s *State) context(sandbox, id string) interpreter.Context {
	context, _ := s.contexts.Get(contextKey{sandbox, id})
	return context
}
