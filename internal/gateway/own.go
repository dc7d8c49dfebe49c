package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// The gateway's own endpoints are rows of the route table on the plane route.Own.
// They are off unless the configuration opens them, need a client's key, and are
// answered here: no call of theirs is forwarded as it is. What they share with
// every other call is identify before them, and refuse.

// operationOf is what the gateway does with a row. Its own endpoints are no part
// of the table operations, as they may make calls that go through it.
func operationOf(name route.Operation) operation {
	switch name {
	case route.GuardAsk:
		return operation{
			sees: "the text: an address, a path, a tool's input, code or a prompt",
			open: opens("guard_api", func(cfg Config) bool { return cfg.GuardAPI }), answer: (*call).answerGuard,
		}
	case route.ProgramRun:
		return operation{
			sees: "the program in its language, its files", enforced: "wall clock, CPU seconds, memory; the sandbox is made and ended for it", filtered: "secrets, output limit",
			open: opens("run", func(cfg Config) bool { return cfg.Run != nil }), answer: (*call).answerRun,
		}
	default:
		return operations[name]
	}
}

// ownMethods are what all of the gateway's own endpoints take.
const ownMethods = "POST, OPTIONS"

// opens returns the check that the configuration has an endpoint's option.
func opens(option string, has func(Config) bool) func(Config) *refusal.Refusal {
	return func(cfg Config) *refusal.Refusal {
		if has(cfg) {
			return nil
		}
		return refusal.New(refusal.CodeDenied, "this endpoint of e2bguard is not open. Its operator can open it with the option "+option+".")
	}
}

// ownKeyHeaders carry the key on the gateway's own endpoints: E2B's header, and
// that of Superagent's clients, which send it beside a bearer token.
var ownKeyHeaders = []string{"X-Api-Key", "X-Superagent-Api-Key"}

// ownKey is the key that a call of the gateway's own endpoints carries; "" if it
// carries none, or two that differ.
func ownKey(h http.Header) string {
	key := ""
	given := []string{}
	for _, name := range ownKeyHeaders {
		given = append(given, h.Values(name)...)
	}
	for _, value := range h.Values("Authorization") {
		if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			given = append(given, strings.TrimSpace(token))
		}
	}
	for _, value := range given {
		if value == "" || key != "" && value != key {
			return ""
		}
		key = value
	}
	return key
}

// answerJSON is the answer of an endpoint of the gateway's own, once the call is
// recorded.
func (c *call) answerJSON(status int, body []byte) {
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.answerHead(status, "application/json")
	_, _ = c.w.Write(body) // The client is gone: nobody is left to tell.
}

// answerHead begins the answer of an endpoint of the gateway's own.
func (c *call) answerHead(status int, contentType string) {
	c.clientBody.leave(c)
	c.letPagesRead()
	h := c.w.Header()
	h.Set(refusal.Header, c.guardHeader())
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if contentType == refusal.TypeEvents {
		leaveUntransformed(h)
	}
	c.w.WriteHeader(status)
}

// reasoning is why what was judged passed.
func (c *call) reasoning() string {
	for _, s := range c.rulings {
		if s.ruling.WouldBlock {
			return c.g.shown("Passed, because this gateway is in shadow mode. " + s.ruling.Reason)
		}
	}
	return c.g.shown(c.rulings[0].ruling.Verdict.Reasoning)
}
