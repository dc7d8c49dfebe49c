package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
)

const (
	// maxAnswer bounds an upstream answer that is read whole.
	maxAnswer = 16 << 20
	// resultBytes bounds the payloads (charts, tables) of one execution; they
	// have a cap of their own because a chart is not a runaway loop.
	resultBytes = 64 << 20
)

// filter treats the upstream's response. An error becomes a refusal.
func (c *call) filter(resp *http.Response) error {
	c.answered = resp.StatusCode
	if err := c.rewriteLocation(resp.Header); err != nil {
		return err
	}
	resp.Header.Del("Alt-Svc") // the way there would lead past the gateway
	if c.outcome.Upgraded = resp.StatusCode == http.StatusSwitchingProtocols; !c.outcome.Upgraded {
		c.clientBody.leave(c)
	}
	if c.target.Plane != route.Port {
		resp.Header.Set("E2b-Guard", c.guardHeader())
	}
	if resp.StatusCode >= http.StatusBadRequest {
		c.tree.over() // nothing was started
		if c.target.Plane == route.Port {
			return nil
		}
		return c.hideInAnswer(resp) // Errors quote paths, commands and output.
	}
	if c.op.vaultFilter != nil && c.g.vault() {
		return c.op.vaultFilter(c, resp)
	}
	if c.op.filter != nil {
		return c.op.filter(c, resp)
	}
	return nil
}

// filtered reports whether the response is looked at.
func (c *call) filtered() bool {
	return c.op.filter != nil || c.op.vaultFilter != nil && c.g.vault()
}

// guardHeader tells the client that the call passed the guard, under which id,
// and what policy changed in it.
func (c *call) guardHeader() string {
	h := c.outcome.Decision + "; id=" + c.id
	if c.outcome.WouldBlock {
		h += "; would_block"
	}
	if c.evidence.unrecorded {
		h += "; audit=failed"
	}
	if changed := c.changedFields(); changed != "" {
		h += "; changed=" + changed
	}
	return h
}

// rewriteLocation makes a redirect of E2B's stay inside the gateway. A redirect
// elsewhere is an application's own on a user port; nothing else sends one.
func (c *call) rewriteLocation(h http.Header) error {
	location := h.Get("Location")
	if location == "" {
		return nil
	}
	u, err := url.Parse(location)
	if err == nil && u.Opaque == "" && (u.Host == "" && u.Scheme == "" || c.upstreamHost(u.Hostname())) {
		u.Scheme, u.Host, u.User = "", "", nil
		inside := u.String()
		if strings.HasPrefix(inside, "//") || strings.HasPrefix(inside, `/\`) {
			inside = "/" + strings.TrimLeft(inside, `/\`) // it would read as a host
		}
		h.Set("Location", inside)
		return nil
	}
	if err == nil && c.target.Plane == route.Port {
		return nil
	}
	return refusal.New(refusal.CodeUpstream, "E2B answered with a redirect to another host. e2bguard does not hand it on, because the call would leave the guard.")
}

// upstreamHost reports whether a name is one of E2B's own, in either form.
func (c *call) upstreamHost(name string) bool {
	for _, base := range []*url.URL{c.g.fwd.api, c.g.fwd.sandbox, c.sandboxURL()} {
		own := base.Hostname()
		if name == own {
			return true
		}
		if _, domain, ok := strings.Cut(own, "."); ok && strings.Contains(domain, ".") && strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	return false
}

// replaceBody puts a body that was read whole back on the response.
func replaceBody(resp *http.Response, b []byte) {
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(b))
	resp.ContentLength = int64(len(b))
	resp.Header.Set("Content-Length", fmt.Sprint(len(b)))
	resp.TransferEncoding = nil
}

// takeAnswer reads an answer whole and puts it back.
func takeAnswer(resp *http.Response) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading E2B's answer: %w", err)
	}
	if len(b) > maxAnswer {
		return nil, refusal.New(refusal.CodeUpstream, "E2B's answer is larger than e2bguard reads.")
	}
	replaceBody(resp, b)
	return b, nil
}

// learnSandboxes keeps what an answer says of sandboxes (who made them, the
// tokens that open them), seals the tokens, and points the client at the
// gateway's own domain, so that the host names its SDK builds stay inside.
func (c *call) learnSandboxes(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	answer, err := control.DecodeAnswer(b)
	made := c.makesSandboxes() || resp.StatusCode == http.StatusCreated // a connect that woke one
	if err == nil && c.makesSandboxes() && len(answer.Sandboxes()) == 0 && c.target.Row.Operation == route.SandboxCreate {
		err = errors.New("the answer to create names no sandbox")
	}
	if err != nil && (c.g.vault() || made && c.g.cfg.Verify) {
		return refuseAnswer(err)
	}
	if err != nil {
		// The sandbox may be running: its answer is the client's only handle on
		// it, so it is passed, and only the ports stay shut.
		c.g.log.Warn("E2B's answer was not understood; the traffic token of this sandbox is not kept",
			zap.String("request_id", c.id), zap.Error(err))
		return nil
	}
	if made {
		if ref := c.verify(answer.Sandboxes()); ref != nil {
			return ref
		}
	}
	if ref := c.settleDomains(answer.Sandboxes()); ref != nil {
		return ref
	}
	if c.target.Row.Operation != route.SandboxInfo {
		for _, info := range answer.Sandboxes() {
			c.learn(info, resp.StatusCode)
		}
	}
	changed := c.setDomain(answer)
	if c.g.vault() {
		answer.SetTokens(c.sealTokens)
		answer.HideStamp()
		answer.RenameVolumes(c.shownVolume)
	}
	if changed || c.g.vault() {
		replaceBody(resp, answer.Encode())
	}
	return nil
}

func (c *call) learn(info control.SandboxInfo, status int) {
	sb := sandbox{
		client: c.owner(), envdToken: redact.NewSecret(info.EnvdToken), envdKnown: true,
		trafficToken: redact.NewSecret(info.TrafficToken), started: time.Now(),
		domain: c.g.cfg.Upstream.ownDomain(info.Domain), domainKnown: true,
	}
	// A connect that answers 200 found the sandbox running; 201 woke it.
	if c.target.Row.Operation == route.SandboxConnect && status == http.StatusOK {
		sb.started = time.Time{}
	}
	sb.volumes, sb.volumesKnown = c.mounted(info)
	c.g.state.remember(info.ID, sb)
	if c.target.Row.Operation == route.SandboxFork {
		c.g.state.processes.copied(info.ID, c.target.Params["sandboxID"])
	}
	c.g.state.addSecrets(info.ID, c.secrets)
	c.g.addVolumeSecrets(sb.volumes, c.secrets)
	c.countSandbox(info.ID)
	if c.g.reaps() && !sb.started.IsZero() {
		c.g.state.lives.add(info.ID, c.owner())
	}
}

// filterProcess bounds the output of a process and notices a dead sandbox. A
// process that passed its output limit is killed: it would go on writing with
// nobody to read.
func (c *call) filterProcess(resp *http.Response) error {
	limits := envd.StreamLimits{OutputBytes: c.limits().OutputBytes, RequestID: c.id}
	if c.deadline.Clamped {
		limits.WallClock = c.deadline.Timeout // ours: the client's own is told in envd's words
	}
	var pid uint32
	view := new(processView)
	follow := &following{view: view}
	err := c.filterRPCStream(resp, limits, view, func(e envd.Event) {
		c.sawProcess(e)
		switch e.Kind {
		case envd.EventStart:
			if pid != 0 {
				return // a process starts once
			}
			pid = e.PID
			follow.stream = c.g.state.processes.follow(c.target.Sandbox, pid, c.starting)
			view.of(c, pid)
		case envd.EventEnd:
			follow.ended = true
			c.tree.over()
		case envd.EventLimit:
			c.logCut(refusal.CodeOutputLimit)
			c.treeOf(pid).kill(pid, endedByOutputLimit)
		case envd.EventWallClock:
			c.logCut(refusal.CodeWallClock)
			c.treeOf(pid).kill(pid, endedByWallClock)
		case envd.EventEndStream:
			switch {
			case c.tree == nil:
			case e.Code == "deadline_exceeded": // the client's own
				c.tree.kill(pid, endedByWallClock)
			case pid == 0:
				c.tree.over() // it did not start
			}
		case envd.EventAborted:
			c.logAborted(e.Err)
		}
	})
	follow.ReadCloser, resp.Body = resp.Body, follow
	return err
}

func (c *call) filterWatch(resp *http.Response) error {
	return c.filterRPCStream(resp, envd.StreamLimits{RequestID: c.id}, nil, nil)
}

func (c *call) filterRPCStream(resp *http.Response, limits envd.StreamLimits, watcher relay.Observer, onEvent func(envd.Event)) error {
	enc := c.msg.(*envd.Message).Encoding
	if !envd.IsStream(resp.StatusCode, resp.Header, enc) {
		return nil
	}
	leaveUntransformed(resp.Header)
	silent := newWatchdog(resp.Body, c.g.cfg.IdleTimeout)
	f := envd.NewStreamFilter(silent, enc, limits, onEvent)
	f.Hide(c.hiding())
	f.Observe(c.observer())
	f.Watch(watcher)
	silent.start(func() { f.Cut(c.refuseSilence()) })
	if c.tree != nil && c.deadline.Timeout > 0 {
		silent.within(c.deadline.Timeout+deadlineGrace-time.Since(c.started), func() { f.Cut(c.refuseOverdue()) })
	}
	resp.Body = f
	return nil
}

// leaveUntransformed tells handlers and proxies on the way to the client not to
// compress a stream: its client reads it piece by piece.
func leaveUntransformed(h http.Header) {
	h.Add("Cache-Control", "no-transform")
}

func (c *call) filterExecution(resp *http.Response) error {
	leaveUntransformed(resp.Header)
	silent := newWatchdog(resp.Body, c.g.cfg.IdleTimeout)
	lim := interpreter.StreamLimits{OutputBytes: c.limits().OutputBytes, ResultBytes: resultBytes, RequestID: c.id}
	var f *interpreter.StreamFilter
	f = interpreter.NewStreamFilter(silent, lim, func(e interpreter.Event) {
		c.sawExecution(e)
		switch e.Kind {
		case interpreter.EventStart:
			c.watchCPU(func(ref *refusal.Refusal) {
				f.Cut(ref)
				c.endCode(endedByCPU)
			})
		case interpreter.EventLimit:
			c.logCut(refusal.CodeOutputLimit)
			c.endCode(endedByOutputLimit)
		case interpreter.EventAborted:
			c.logAborted(e.Err)
		}
	})
	f.Observe(c.observer())
	f.Hide(c.hiding())
	silent.start(func() { f.Cut(c.refuseSilence()) })
	// The interpreter has no timeout of its own: the SDK's is its client leaving,
	// which nobody can see in the call. To the gateway it is code without one.
	silent.within(c.limits().BackgroundWallClock, func() {
		f.Cut(c.refuseLongRun())
		c.endCode(endedByWallClock)
	})
	resp.Body = f
	return nil
}

// refuseLongRun ends code that ran longer than it may; closing its stream
// interrupts it.
func (c *call) refuseLongRun() *refusal.Refusal {
	c.logCut(refusal.CodeWallClock)
	ref := refusal.New(refusal.CodeWallClock, fmt.Sprintf("The code ran for %s, the longest it may here, so it was interrupted. What it printed so far stands. Do the work in smaller steps.", c.limits().BackgroundWallClock))
	ref.RequestID = c.id
	return ref
}

// learnContexts keeps which language each context runs, and where, for the code
// that will be sent to it.
func (c *call) learnContexts(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	contexts, err := interpreter.Contexts(b)
	if err != nil { // code for these contexts is then judged as whatever it may be
		c.g.log.Warn("the interpreter's answer was not understood; its contexts are not known",
			zap.String("request_id", c.id), zap.Error(err))
	}
	for id, context := range contexts {
		c.g.state.rememberContext(c.target.Sandbox, id, context)
	}
	return nil
}

// refuseSilence ends a stream on which the upstream sent nothing, not even the
// keepalive it owes.
func (c *call) refuseSilence() *refusal.Refusal {
	c.logCut(refusal.CodeUpstreamIdle)
	ref := refusal.New(refusal.CodeUpstreamIdle, fmt.Sprintf("the sandbox sent nothing for %s, not even a keepalive; it is probably gone. The command may or may not have finished.", c.g.cfg.IdleTimeout))
	ref.RequestID = c.id
	return ref
}

// hideNames takes secrets out of what an answer tells of files.
func (c *call) hideNames(resp *http.Response) error {
	set := c.hiding()
	if set.Empty() {
		return nil
	}
	const most = 4 * maxAnswer // a folder may hold many files
	b, err := envd.HideNames(c.target.Path, resp.Header, resp.Body, most, set)
	if err != nil {
		return fmt.Errorf("reading what is told of files: %w", err)
	}
	replaceBody(resp, b)
	return nil
}

func (c *call) filterList(resp *http.Response) error {
	b, err := envd.ShowList(resp.Header, resp.Body, maxAnswer, c.hiding())
	if err != nil {
		return fmt.Errorf("reading the list of processes: %w", err)
	}
	replaceBody(resp, b)
	return nil
}
