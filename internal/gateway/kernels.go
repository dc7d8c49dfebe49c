package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// The interpreter's kernels live longer than a piece of code, so they cannot be
// given limits when they start, as commands are. Memory is limited once for each
// kernel, from outside. CPU time is limited for each piece of code, by looking now
// and then how much its kernel has used: a limit on the process would be on its
// whole life.

// limitKernels sees to it that the kernel that is about to run code has its limit
// of memory. That is one more question for each context, before its first code.
func (c *call) limitKernels() *refusal.Refusal {
	limit := c.limits().MemoryBytes
	key := c.contextKey()
	if limit == 0 || c.g.state.limited.Contains(key) {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), killTimeout)
	defer cancel()
	contexts, err := c.afterwards().contexts(ctx)
	if err != nil || len(contexts) == 0 {
		// Nobody is there who could run code, which the client is about to be told.
		c.g.log.Debug("the interpreter's contexts are not known", zap.String("request_id", c.id), zap.Error(err))
		return nil
	}
	out, err := c.inEnvd().runIn(ctx, asRoot, envd.LimitKernels(limit, slices.Collect(maps.Keys(contexts))))
	if err != nil {
		ref := refusal.New(refusal.CodeUpstream, "e2bguard could not limit the memory of the interpreter's kernels, so the code was not run. Try again; if it stays so, the sandbox's image may lack prlimit or grep, which whoever runs the gateway can tell from its log.")
		ref.Err, ref.Retryable = fmt.Errorf("limiting kernels: %w", err), true
		return ref
	}
	for _, id := range envd.LimitedKernels(out) {
		context, known := contexts[id]
		if !known {
			continue
		}
		c.g.state.limited.Add(contextKey{c.target.Sandbox, id}, struct{}{})
		c.g.state.limited.Add(defaultContext(c.target.Sandbox, context.Language), struct{}{})
	}
	c.changed("memory", "")
	return nil
}

// forgetKernel is called when a context has a new kernel.
func (c *call) forgetKernel(*http.Response) error {
	id := c.target.Params["contextID"]
	c.g.state.limited.Remove(contextKey{c.target.Sandbox, id})
	c.g.state.limited.Remove(defaultContext(c.target.Sandbox, c.g.state.context(c.target.Sandbox, id).Language))
	return nil
}

// contextKey names the context of the call's code.
func (c *call) contextKey() contextKey {
	m := c.msg.(*interpreter.Execute)
	if m.ContextID != "" {
		return contextKey{c.target.Sandbox, m.ContextID}
	}
	return defaultContext(c.target.Sandbox, m.Language)
}

// defaultContext names the context that a language has from the beginning.
func defaultContext(sandbox, language string) contextKey {
	if language == "" {
		language = "python"
	}
	return contextKey{sandbox, "language " + language} // no id has a space
}

// inEnvd is what is needed of the call to ask its sandbox's envd.
func (c *call) inEnvd() *call {
	o := c.afterwards()
	o.target.Port = route.PortEnvd
	return o
}

// contexts are the interpreter's.
func (c *call) contexts(ctx context.Context) (map[string]interpreter.Context, error) {
	answer, err := c.askInterpreter(ctx, http.MethodGet, "/contexts", "")
	if err != nil {
		return nil, err
	}
	return interpreter.Contexts([]byte(answer))
}

// cpuWatch looks after the CPU time of one piece of code.
type cpuWatch struct {
	c     *call
	ids   []string
	limit time.Duration
	over  func(*refusal.Refusal)

	ctx    context.Context
	cancel context.CancelFunc
	base   map[string]time.Duration // nil before the first look
	failed bool

	mu    sync.Mutex
	timer *time.Timer
}

const (
	// firstLook is the part of its CPU time that code has before anybody looks: most
	// is over by then, and costs nothing.
	firstLook = 10
	// cores is how many the code is taken to use until the next look.
	cores = 2
	// leastLook is the least time between two looks.
	leastLook = 200 * time.Millisecond
)

// watchCPU is called when the kernel has begun with the code; before, it may have
// been busy with other code. It calls over once when the code has used more CPU time
// than it may.
func (c *call) watchCPU(over func(*refusal.Refusal)) {
	limit := time.Duration(c.limits().CPUSeconds) * time.Second
	if limit == 0 || c.cpu != nil {
		return
	}
	w := &cpuWatch{c: c, limit: limit, over: over}
	w.ctx, w.cancel = context.WithCancel(c.g.background.ctx)
	w.timer = time.AfterFunc(limit/firstLook, w.look)
	c.cpu = w
}

// stop ends the watch; nothing is called afterwards that was not running.
func (w *cpuWatch) stop() {
	if w == nil {
		return
	}
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// look asks for the time used. A kernel's time before the code came is not known:
// of what it had used at the first look, as much counts as one core could have used
// meanwhile.
func (w *cpuWatch) look() {
	used, err := w.used()
	switch {
	case w.ctx.Err() != nil:
		return
	case err != nil:
		if !w.failed {
			w.c.g.log.Warn("the CPU time of code could not be told; its wall clock still holds", zap.String("request_id", w.c.id), zap.Error(err))
		}
		w.failed = true
	case used >= w.limit:
		w.over(w.c.refuseCPU(w.limit))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() == nil {
		w.timer.Reset(max(leastLook, (w.limit-used)/cores))
	}
}

func (w *cpuWatch) used() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(w.ctx, killTimeout)
	defer cancel()
	if w.ids == nil {
		if err := w.find(ctx); err != nil {
			return 0, err
		}
	}
	out, err := w.c.inEnvd().runIn(ctx, asRoot, envd.KernelCPU(w.ids))
	if err != nil {
		return 0, err
	}
	times, err := envd.KernelCPUTimes(out)
	if err != nil {
		return 0, err
	}
	if w.base == nil {
		w.base = make(map[string]time.Duration)
		for id, t := range times {
			w.base[id] = max(0, t-w.limit/firstLook)
		}
	}
	var used time.Duration
	for id, t := range times {
		used = max(used, t-w.base[id])
	}
	return used, nil
}

// find tells which kernels may be running the code: one, unless a language has
// several contexts and the code names none.
func (w *cpuWatch) find(ctx context.Context) error {
	m := w.c.msg.(*interpreter.Execute)
	if m.ContextID != "" {
		w.ids = []string{m.ContextID}
		return nil
	}
	contexts, err := w.c.afterwards().contexts(ctx)
	if err != nil {
		return err
	}
	for id, context := range contexts {
		if defaultContext("", context.Language) == defaultContext("", m.Language) {
			w.ids = append(w.ids, id)
		}
	}
	if w.ids == nil {
		return errors.New("its language has no context")
	}
	return nil
}

// refuseCPU ends code that used more CPU time than it may.
func (c *call) refuseCPU(limit time.Duration) *refusal.Refusal {
	c.logCut(refusal.CodeCPUTime)
	ref := refusal.New(refusal.CodeCPUTime, fmt.Sprintf("The code used %s of CPU time, the most it may here, so it was interrupted. What it printed so far stands. Do the work in smaller steps.", limit))
	ref.RequestID = c.id
	return ref
}
