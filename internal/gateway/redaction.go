package gateway

import (
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/redact"
)

// RedactMode says what is hidden from clients in answers.
type RedactMode string

// The modes. Logs and the audit are masked by pattern in all of them.
const (
	// RedactKnown hides the secrets that the gateway knows: keys and tokens, and
	// those of the environment that clients gave a sandbox or a command.
	RedactKnown RedactMode = "known"
	// RedactAll hides besides what has the format of a well-known secret.
	RedactAll RedactMode = "all"
	RedactOff RedactMode = "off"
)

// Bounds of what is remembered of a sandbox's secrets, and of all.
const (
	secretsKept     = 256
	secretBytesKept = 64 << 10
	setsKept        = 512
)

// wallet is the secrets of one sandbox.
type wallet struct {
	mu      sync.Mutex
	secrets []redact.Secret
	bytes   int
}

// add remembers secrets that are new, and reports whether there was room for all.
func (w *wallet) add(secrets []redact.Secret) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range secrets {
		value := s.Reveal()
		if s.IsZero() || slices.ContainsFunc(w.secrets, func(old redact.Secret) bool { return old.Reveal() == value }) {
			continue
		}
		if len(w.secrets) == secretsKept || w.bytes+len(value) > secretBytesKept {
			return false
		}
		w.secrets = append(w.secrets, s)
		w.bytes += len(value)
	}
	return true
}

// all is a view that later additions do not change.
func (w *wallet) all() []redact.Secret {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.secrets)
}

// readySet is a sandbox's secrets made ready for searching, by one gateway.
type readySet struct {
	by    *Gateway
	count int
	set   *redact.Set
}

func (s *State) addSecrets(sandbox string, secrets []redact.Secret) bool {
	if len(secrets) == 0 {
		return true
	}
	w, known := s.wallets.Get(sandbox)
	if !known {
		w = new(wallet)
		if before, raced, _ := s.wallets.PeekOrAdd(sandbox, w); raced {
			w = before
		}
	}
	return w.add(secrets)
}

func (s *State) secretsOf(sandbox string) []redact.Secret {
	if w, known := s.wallets.Get(sandbox); known {
		return w.all()
	}
	return nil
}

// environment is a message that gives a process or a sandbox variables.
type environment interface {
	Environment() map[string]string
}

// learnSecrets notes the secrets in what a call gives a sandbox, before anything is
// recorded or answered.
func (c *call) learnSecrets() {
	var found []redact.Secret
	if m, ok := c.msg.(environment); ok {
		found = redact.EnvSecrets(m.Environment())
	}
	if m, ok := c.msg.(interface{ Words() []string }); ok {
		for _, word := range m.Words() {
			found = append(found, redact.URLPasswords(word)...)
		}
	}
	for _, header := range []string{headerEnvdToken, headerTrafficToken, "X-Api-Key"} {
		found = append(found, redact.NewSecret(c.r.Header.Get(header)))
	}
	found = append(found, c.tokens.envd, c.tokens.traffic, c.sandbox.envdToken, c.sandbox.trafficToken)
	c.keepSecrets(found)
}

// keepSecrets adds to what is hidden in the answers of the call's sandbox; of a
// sandbox that is being made, once it has a name.
func (c *call) keepSecrets(found []redact.Secret) {
	found = slices.DeleteFunc(found, func(s redact.Secret) bool { return s.IsZero() })
	sandbox := c.outcome.Sandbox
	if sandbox == "" {
		c.secrets = append(c.secrets, found...)
		return
	}
	if sb, _ := c.g.state.lookup(sandbox); len(sb.volumes) > 0 {
		c.g.addVolumeSecrets(sb.volumes, found)
	}
	if !c.g.state.addSecrets(sandbox, found) {
		c.g.log.Warn("a sandbox was given more secrets than e2bguard remembers; those beyond are not hidden in its output",
			zap.String("request_id", c.id), zap.String("sandbox", sandbox))
	}
}

// hiding is what is hidden in this call's answer; nil for nothing.
func (c *call) hiding() *redact.Set {
	if c.g.cfg.Redact == RedactOff {
		return nil
	}
	wallet := c.wallet()
	own := c.secrets
	if wallet != "" {
		own = slices.Concat(own, c.g.state.secretsOf(wallet))
	}
	if len(own) == 0 {
		return c.g.secrets
	}
	if ready, ok := c.g.state.sets.Get(wallet); ok && wallet != "" && ready.by == c.g && ready.count == len(own) {
		return ready.set
	}
	set := redact.NewSet(c.g.cfg.Redact == RedactAll, slices.Concat(c.g.cfg.secrets(), own)...)
	if wallet != "" {
		c.g.state.sets.Add(wallet, readySet{c.g, len(own), set})
	}
	return set
}

// callMasker masks what is kept of a call: patterns, the gateway's secrets and the
// sandbox's.
type callMasker struct{ c *call }

func (m callMasker) Mask(text string) string {
	return m.c.g.masker.Mask(m.c.hiding().Replace(text))
}
