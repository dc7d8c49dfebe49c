package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

const (
	// readBackTimeout bounds one try to read a sandbox back; there are two.
	readBackTimeout = 5 * time.Second
	// readsAtOnce bounds how many forks of one call are read back at a time.
	readsAtOnce = 8
)

// verify reads new and woken sandboxes back from E2B and ends those that do not
// keep to what was asked for: an API that ignores a field it does not know must
// not mean an open network.
func (c *call) verify(infos []control.SandboxInfo) *refusal.Refusal {
	if !c.g.cfg.Verify {
		return nil
	}
	terms := control.Terms{Network: c.g.cfg.Policy.Network}
	woken := !c.makesSandboxes()
	if !woken {
		terms = c.msg.(controlMessage).Terms(c.g.cfg.Policy.Network)
	}
	terms.Legacy = c.g.cfg.Upstream.Legacy

	problems := make([]error, len(infos))
	c.each(len(infos), func(i int) { problems[i] = c.readBack(infos[i].ID, terms) })
	err := errors.Join(problems...)
	if err == nil {
		return nil
	}
	ended := make([]bool, len(infos))
	c.each(len(infos), func(i int) { ended[i] = c.endMade(infos[i].ID, endedByVerify, woken) })
	what := "it was killed"
	if woken {
		what = "it was paused again"
	}
	for _, ok := range ended {
		if !ok {
			what = "e2bguard is trying to end it"
		}
	}
	c.g.log.Error("a sandbox is not what was asked for", zap.String("request_id", c.id), zap.Error(err), zap.Bools("ended", ended))
	ref := refusal.New(refusal.CodeUpstream, fmt.Sprintf("Blocked: E2B did not make the sandbox as it was asked to, or does not say so, and %s: %s. "+
		"Its network or lifetime might not be limited. Whoever runs the gateway can mark an old self-hosted API with `upstream legacy`.", what, strings.ReplaceAll(err.Error(), "\n", "; ")))
	ref.Status, ref.Err = http.StatusForbidden, err
	return ref
}

// endMade ends a sandbox that the call has made or woken, and reports whether that
// is confirmed.
func (c *call) endMade(id, cause string, pause bool) bool {
	return c.g.endSandbox(teardown{sandbox: id, client: c.owner(), cause: cause, request: c.id, pause: pause, header: c.r.Header})
}

// makesSandboxes reports whether what the call's answer names is new.
func (c *call) makesSandboxes() bool {
	return c.target.Row.Operation == route.SandboxCreate || c.target.Row.Operation == route.SandboxFork
}

// each calls do for 0 to n-1, some at a time.
func (c *call) each(n int, do func(int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, readsAtOnce)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	wg.Wait()
}

// readBack asks E2B about a sandbox and compares. A client that leaves must not
// keep its sandbox from being looked at.
func (c *call) readBack(id string, terms control.Terms) error {
	ask := func() (apiAnswer, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), readBackTimeout)
		defer cancel()
		got, err := c.g.askAPI(ctx, http.MethodGet, "sandboxes/"+id, "", c.r.Header)
		if err == nil && got.status != http.StatusOK {
			err = fmt.Errorf("E2B answered %d", got.status)
		}
		return got, err
	}
	got, err := ask()
	if err != nil {
		got, err = ask()
	}
	switch {
	case err == nil:
		return terms.Check(got.body, id)
	case terms.Legacy:
		c.g.log.Warn("could not read a sandbox back", zap.String("request_id", c.id), zap.String("sandbox", id), zap.Error(err))
		return nil
	default:
		return fmt.Errorf("reading the sandbox back: %w", err)
	}
}
