package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// makeTimeout bounds the making of a sandbox. What E2B makes after that, it ends
// at the end of its lifetime.
const makeTimeout = time.Minute

// disposable is a sandbox for one program. Whoever makes one must end it.
type disposable struct {
	g      *Gateway
	client string
	// made is closed when the sandbox is there, or will not be: then the fields below
	// are settled.
	made chan struct{}
	id   string
	// token is what a client would have of it.
	token string
	ref   *refusal.Refusal // why there is none
	// use says that it is used, even while it waits.
	use func()

	// warm says that it has waited for its program.
	warm bool
}

// newDisposable begins to make a sandbox of a client's, which may wait for its
// program for so long. If ctx ends meanwhile, E2B may make one that nobody knows of.
func (g *Gateway) newDisposable(ctx context.Context, client, template string, wait time.Duration, header http.Header) *disposable {
	d := &disposable{g: g, client: client, made: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	go func() {
		defer cancel()
		defer close(d.made)
		defer func() { // nobody else recovers here
			if p := recover(); p != nil {
				d.ref = refuseDisposable(refusal.New(refusal.CodeInternalError, "e2bguard failed while making the sandbox"))
				g.log.Error("recovered from a panic while a sandbox was made", zap.String("panic", fmt.Sprintf("%T", p)), zap.Stack("stack"))
			}
		}()
		d.make(ctx, template, g.cfg.Run.Timeout+runLifetime+wait, header)
	}()
	return d
}

func (d *disposable) make(ctx context.Context, template string, lifetime time.Duration, header http.Header) {
	var body bytes.Buffer
	answer := newErrandAnswer(&body)
	ref := d.g.send(ctx, &errand{
		client: d.client, limits: d.g.runLimits(), method: http.MethodPost, path: "/v2/sandboxes", header: header,
		body: control.NewSandbox(template, lifetime),
	}, answer)
	if ref == nil && !answer.ok() {
		ref = refuseAnswered("E2B made no sandbox", answer)
	}
	if ref != nil {
		d.ref = refuseDisposable(ref)
		return
	}
	made, err := control.DecodeAnswer(body.Bytes())
	if err == nil && len(made.Sandboxes()) != 1 {
		err = errors.New("the answer does not name one sandbox")
	}
	if err != nil {
		d.ref = refuseDisposable(refuseAnswer(err))
		return
	}
	d.id, d.token = made.Sandboxes()[0].ID, made.Sandboxes()[0].EnvdToken
	d.use = d.g.useSandbox(d.id, d.client)
}

// refuseDisposable is why a program was not run for want of a sandbox. It was not
// the program that policy was against.
func refuseDisposable(ref *refusal.Refusal) *refusal.Refusal {
	out := *ref
	out.Reason = "no sandbox could be had for the program, so it was not run: " + ref.Reason
	if out.Code == refusal.CodePolicy {
		out.Code = refusal.CodeDenied
	}
	return &out
}

// refuseAnswered is an answer of E2B's that is an error.
func refuseAnswered(what string, a *errandAnswer) *refusal.Refusal {
	if message := control.Fault(a.fault.Bytes()); message != "" {
		what += ": " + message
	}
	ref := refusal.New(refusal.CodeUpstream, fmt.Sprintf("%s (E2B answered %d).", what, a.status))
	if a.status == http.StatusTooManyRequests {
		ref.Status, ref.Retryable, ref.RetryAfter = a.status, true, time.Second
	}
	return ref
}

// runLimits are those of sandboxes of POST /run, and of the programs in them.
func (g *Gateway) runLimits() policy.Limits {
	l, run := g.cfg.Policy.Limits, g.cfg.Run
	l.WallClock, l.BackgroundWallClock = run.Timeout, run.Timeout
	l.CPUSeconds, l.MemoryBytes = run.CPUSeconds, run.MemoryBytes
	return l
}

// wait returns when the sandbox is there, or why it is not.
func (d *disposable) wait(ctx context.Context) *refusal.Refusal {
	select {
	case <-d.made:
		return d.ref
	case <-ctx.Done():
		ref := refusal.New(refusal.CodeUpstream, "the call ended before its sandbox was there, so nothing was run.")
		ref.Err = context.Cause(ctx)
		return ref
	}
}

// end destroys the sandbox, once it is there, and returns whether that is
// confirmed. If it is not, it is tried again behind the call.
func (d *disposable) end(request string) (confirmed bool) {
	<-d.made
	if d.id == "" {
		return false // there is none, or E2B did not tell of it
	}
	defer d.use()
	d.free()
	return d.g.endSandbox(teardown{sandbox: d.id, client: d.client, cause: endedByRun, request: request})
}

// free gives back the place that the sandbox, if it is there, has among its
// client's: it is about to end.
func (d *disposable) free() {
	select {
	case <-d.made:
		if d.id != "" {
			d.g.uncount(d.client, d.id)
		}
	default:
	}
}
