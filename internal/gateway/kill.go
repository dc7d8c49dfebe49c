package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

const (
	// killTimeout bounds each way of ending what runs.
	killTimeout = 10 * time.Second
	// deadlineGrace is how much later than envd, which ends a command by itself, the
	// gateway acts.
	deadlineGrace = time.Second
)

// tree is a process with all that it has started, as the gateway can end it. envd
// itself ends the one process only, and its children live on.
type tree struct {
	c     *call // what is needed of it after its end
	mark  int64
	timer *later // nil without a deadline
	// doomed says that the sandbox ends when the call does, so that nothing in it
	// need be.
	doomed bool
}

// newTree describes the processes that the call is about to start.
func (c *call) newTree(mark int64) *tree {
	return &tree{c: c.afterwards(), mark: mark, doomed: c.errand != nil}
}

// afterwards is what is needed of the call to end what it started when it is over.
// The call itself would hold its body for as long.
func (c *call) afterwards() *call {
	r := (&http.Request{Header: http.Header{}}).WithContext(context.Background())
	for _, name := range []string{headerEnvdToken, "Authorization"} {
		if v := c.r.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	return &call{g: c.g, r: r, id: c.id, target: c.target, client: c.client, sandbox: c.sandbox, tokens: c.tokens}
}

// within ends the processes when the time is over. The client may have left by
// then: its process must end all the same.
func (t *tree) within(limit time.Duration) {
	if t.doomed {
		return
	}
	t.timer = t.c.g.background.after(limit+deadlineGrace, func() { t.end(0, endedByWallClock) })
}

// over is called when the process has ended by itself: what it has left running in
// the background may go on.
func (t *tree) over() {
	if t != nil && t.timer != nil {
		t.timer.cancel()
	}
}

// kill ends the process with all that it has started, in the background.
func (t *tree) kill(pid uint32, cause string) {
	t.over()
	if t.doomed {
		return
	}
	if end := func() { t.end(pid, cause) }; !t.c.g.background.start(end) {
		end()
	}
}

// end kills by the mark and, where that fails, the sandbox.
func (t *tree) end(pid uint32, cause string) {
	ctx, cancel := context.WithTimeout(t.c.g.background.ctx, killTimeout)
	defer cancel()
	var problems []error
	if pid != 0 { // so that envd stops reading its output
		problems = append(problems, t.c.sendKill(ctx, pid))
	}
	if t.mark != 0 {
		problems = append(problems, t.c.killMarked(ctx, t.mark))
	}
	if err := errors.Join(problems...); err != nil {
		t.c.killSandbox(cause, "a process would not end at its limit", err)
	}
}

func (c *call) sendKill(ctx context.Context, pid uint32) error {
	err := c.askEnvd(ctx, "/process.Process/SendSignal", &processpb.SendSignalRequest{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}},
		Signal:  processpb.Signal_SIGNAL_SIGKILL,
	}, new(processpb.SendSignalResponse))
	var status *envdStatusError
	if errors.As(err, &status) && (status.status == http.StatusNotFound || status.status == http.StatusBadGateway) {
		return nil // it has ended by itself, or its sandbox has
	}
	return err
}

// asRoot is the header by which envd runs a command as root.
var asRoot = "Basic " + base64.StdEncoding.EncodeToString([]byte("root:"))

// killMarked runs the end of the marked processes in their sandbox: as root, for
// the command may have become root, or where that is not given, as the client's
// user.
func (c *call) killMarked(ctx context.Context, mark int64) error {
	_, err := c.runIn(ctx, asRoot, envd.KillTree(mark))
	var status *envdStatusError
	if errors.As(err, &status) && (status.status == http.StatusBadGateway || status.status == http.StatusNotFound) {
		return nil // the sandbox does not run, and nothing in it
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	_, err = c.runIn(ctx, c.r.Header.Get("Authorization"), envd.KillTree(mark))
	return err
}

// runIn runs a command of the gateway's own in the sandbox, waits for its end and
// returns what it printed.
func (c *call) runIn(ctx context.Context, user string, start *processpb.StartRequest) (stdout []byte, err error) {
	b, err := envd.StartFrame(start)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.sandboxURL().JoinPath("/process.Process/Start").String(), bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	route.Target{Sandbox: c.target.Sandbox, Port: c.target.Port}.SetHeaders(req.Header)
	req.Header.Set("Content-Type", "application/connect+json")
	req.Header.Set("Connect-Protocol-Version", "1")
	req.Header.Set("Connect-Timeout-Ms", fmt.Sprint(killTimeout.Milliseconds()))
	if v := c.r.Header.Get(headerEnvdToken); v != "" {
		req.Header.Set(headerEnvdToken, v)
	}
	if user != "" {
		req.Header.Set("Authorization", user)
	}
	c.setTokens(req.Header)
	resp, err := c.g.fwd.data.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("calling envd: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &envdStatusError{status: resp.StatusCode}
	}
	return envd.ReadRun(resp.Body)
}

// killSandbox is the last resort. It takes E2B's key, which the gateway has in
// vault mode only; elsewhere the operator is told.
func (c *call) killSandbox(cause, why string, fault error) {
	c.g.log.Warn(why+", so its sandbox is killed", zap.String("request_id", c.id), zap.String("sandbox", c.target.Sandbox), zap.Error(fault))
	c.g.endSandbox(teardown{sandbox: c.target.Sandbox, client: c.owner(), cause: cause, request: c.id})
}

// treeOf is what the gateway can end of a process: all of what it started itself,
// or the one process.
func (c *call) treeOf(pid uint32) *tree {
	if c.tree != nil {
		return c.tree
	}
	var mark int64
	if p, _ := c.g.state.processes.find(c.target.Sandbox, selectPID(pid)); p != nil {
		mark = p.mark
	}
	return c.newTree(mark)
}

func selectPID(pid uint32) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}}
}

// refuseOverdue ends a stream that envd should have ended at its deadline.
func (c *call) refuseOverdue() *refusal.Refusal {
	c.logCut(refusal.CodeWallClock)
	ref := refusal.New(refusal.CodeDeadline, "The command ran for as long as its timeout says, and was stopped")
	if c.deadline.Clamped {
		ref = refusal.New(refusal.CodeWallClock, envd.WallClockReason(c.deadline.Timeout))
	}
	ref.RequestID = c.id
	return ref
}
