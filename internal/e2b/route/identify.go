package route

import (
	"net/http"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Identify decides, once, which sandbox, port and operation a request means.
// publicDomain is the gateway's own domain, "" if it has none. A refusal is
// returned for whatever has no interpretation, or more than one.
func Identify(r *http.Request, publicDomain string) (Target, *refusal.Refusal) {
	return Target{}, refusal.New(refusal.CodeUnroutable, "not routable: "+r.Host+publicDomain)
}

// Table returns every row, in the order documentation shows them.
func Table() []Row { return nil }
