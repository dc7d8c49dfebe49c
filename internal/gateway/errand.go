package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// errand is a call that the gateway itself makes on behalf of a client. It goes
// through the house as the client's own calls do, so that policy, ownership,
// limits, sealed tokens and redaction are theirs; only what was settled before is
// not asked again: who the client is, and what the guard says of the text.
type errand struct {
	client string
	// id is the request id of the call it is a part of, whose record tells of it;
	// "" for one with an id and a record of its own.
	id     string
	limits policy.Limits

	method, path string
	header       http.Header
	body         []byte
	// sandbox and token say where it goes on the data plane.
	sandbox, token string

	// refused is why there is no answer, and cut the limit of ours that ended it.
	refused *refusal.Refusal
	cut     atomic.Value
}

// cutBy is the limit of the gateway's that ended the answer; "" for none.
func (e *errand) cutBy() refusal.Code {
	code, _ := e.cut.Load().(refusal.Code)
	return code
}

// send makes the call and writes E2B's answer, as a client gets it, to w. It
// returns why there is none.
func (g *Gateway) send(ctx context.Context, e *errand, w *errandAnswer) *refusal.Refusal {
	ctx, _ = WithOutcome(ctx)
	r, err := http.NewRequestWithContext(ctx, e.method, "http://localhost"+e.path, bytes.NewReader(e.body))
	if err != nil {
		return refuseErrand(fmt.Errorf("writing a call: %w", err))
	}
	for name, values := range e.header {
		r.Header[name] = values
	}
	if e.sandbox != "" {
		route.Target{Sandbox: e.sandbox, Port: route.PortEnvd}.SetHeaders(r.Header)
		r.Header.Set(headerEnvdToken, e.token)
	}
	c := g.newCall(w, r)
	c.errand = e
	c.quiet = e.id != ""
	if e.id != "" {
		c.id, c.outcome.RequestID = e.id, e.id
	}
	if lost := serveErrand(c); lost && e.refused == nil {
		return refuseErrand(fmt.Errorf("%s %s: the answer broke off: %w", e.method, e.path, context.Cause(ctx)))
	}
	return e.refused
}

// serveErrand takes the call through the house; there is no server above it that
// would take the panic that ends a lost answer.
func serveErrand(c *call) (lost bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // recover returns the value itself
				panic(p)
			}
			lost = true
		}
	}()
	c.serve()
	return false
}

func refuseErrand(err error) *refusal.Refusal {
	ref := refusal.New(refusal.CodeUpstream, "e2bguard could not reach E2B, or its answer was lost. Check the upstream settings and E2B's status, then try again.")
	ref.Err, ref.Retryable = err, true
	return ref
}

// errandAnswer is what the answer to an errand is written to. It implements
// http.ResponseWriter and http.Flusher.
type errandAnswer struct {
	header http.Header
	status int
	// body takes a successful answer; any other is kept in fault.
	body  io.Writer
	fault bytes.Buffer
}

func newErrandAnswer(body io.Writer) *errandAnswer {
	return &errandAnswer{header: http.Header{}, body: body}
}

func (a *errandAnswer) Header() http.Header { return a.header }

func (a *errandAnswer) Flush() {}

func (a *errandAnswer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK { // what comes before is no answer
		a.status = status
	}
}

// maxFault is how much is kept of an answer that is an error.
const maxFault = 64 << 10

func (a *errandAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.ok() {
		return a.body.Write(p)
	}
	a.fault.Write(p[:min(len(p), maxFault-a.fault.Len())])
	return len(p), nil
}

func (a *errandAnswer) ok() bool { return a.status/100 == 2 }
