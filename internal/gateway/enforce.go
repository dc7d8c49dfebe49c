package gateway

import (
	"fmt"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// enforce edits the message so that it keeps to the policy, and writes the body
// to forward.
func (c *call) enforce() *refusal.Refusal {
	if c.op.enforce != nil {
		if ref := c.op.enforce(c); ref != nil {
			return ref
		}
	}
	if c.msg != nil {
		encoded, err := c.msg.Encode()
		if err != nil {
			ref := refusal.New(refusal.CodeInternalError, "e2bguard could not write the call it had judged, so it was not run. Report the request id to whoever runs the gateway.")
			ref.Err = err
			return ref
		}
		c.body = messageBody(encoded)
	}
	if c.op.admit != nil {
		return c.op.admit(c)
	}
	return nil
}

func (c *call) changed(field, to string) {
	c.changes = append(c.changes, policy.Change{Field: field, To: to})
}

// changedFields names what was edited, once each, for the client's header.
func (c *call) changedFields() string {
	var names []string
	seen := make(map[string]bool, len(c.changes))
	for _, change := range c.changes {
		if !seen[change.Field] {
			seen[change.Field] = true
			names = append(names, change.Field)
		}
	}
	return strings.Join(names, ",")
}

func (c *call) enforceControl() *refusal.Refusal {
	p := c.g.cfg.Policy
	p.Limits = c.limits()
	if ref := c.ageLifetime(&p.Limits); ref != nil {
		return ref
	}
	if c.g.vault() {
		if ref := c.msg.(controlMessage).Stamp(control.Stamp{Owner: c.client, Gateway: c.g.cfg.Seal.IDs()[0]}); ref != nil {
			return ref
		}
		if ref := c.settleNames(&p); ref != nil {
			return ref
		}
		if ref := c.msg.(controlMessage).NameVolumes(c.nameVolume); ref != nil {
			return ref
		}
	}
	changes, ref := c.msg.(controlMessage).Enforce(p)
	c.changes = append(c.changes, changes...)
	c.r.Header.Set("Content-Type", "application/json")
	return ref
}

// ageLifetime takes what a running sandbox has lived already off what it may ask
// for: otherwise a limit of one hour could be extended every hour.
func (c *call) ageLifetime(limits *policy.Limits) *refusal.Refusal {
	switch c.target.Row.Operation {
	case route.SandboxConnect, route.SandboxTimeout, route.SandboxRefresh:
	default:
		return nil
	}
	sb, _ := c.g.state.lookup(c.target.Params["sandboxID"])
	if limits.LifetimeMax == 0 || sb.started.IsZero() {
		return nil
	}
	left := limits.LifetimeMax - time.Since(sb.started)
	if left < time.Second {
		return refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: this sandbox has lived as long as a sandbox may here (%s) and cannot be extended. Save what you need and create a new one.", limits.LifetimeMax))
	}
	limits.LifetimeMax = left
	return nil
}

// enforceRPC makes the headers of a procedure safe; policy has no word on its
// message.
func (c *call) enforceRPC() *refusal.Refusal {
	limits := c.limits()
	changes, ref := envd.SanitiseHeaders(c.msg.(*envd.Message), c.r.Header, envd.Deadlines{
		WallClock:  limits.WallClock,
		Background: limits.BackgroundWallClock,
		PTY:        limits.LifetimeMax,
	})
	c.deadline = changes
	if changes.Clamped {
		c.changed("wall_clock", changes.Timeout.String())
	}
	return ref
}

// enforceStart puts the limits around a process. CPU seconds are for commands
// that said how long they would take: a shell on a PTY and a server in the
// background live long and must not die of their age.
func (c *call) enforceStart() *refusal.Refusal {
	if ref := c.enforceRPC(); ref != nil {
		return ref
	}
	start := c.msg.(*envd.Message).Proto.(*processpb.StartRequest)
	if start.GetPty() != nil && c.g.cfg.DenyPTY {
		return refuseTerminal()
	}
	c.starting = newProcess(c.target.Sandbox, start)
	c.enforceTerminal(start)
	c.starting.mark = envd.NewMark()
	c.tree = c.newTree(c.starting.mark)
	opts := envd.WrapOptions{Mark: c.starting.mark, MemoryBytes: c.limits().MemoryBytes}
	if start.GetPty() == nil && c.deadline.ClientTimeout > 0 {
		opts.CPUSeconds = int64(c.limits().CPUSeconds)
	}
	if envd.Wrap(start, opts) && (opts.CPUSeconds > 0 || opts.MemoryBytes > 0) {
		c.changed("limits", "")
	}
	if c.deadline.Timeout > 0 {
		c.tree.within(c.deadline.Timeout)
	}
	return nil
}

// enforceUpdate notes a terminal's new size.
func (c *call) enforceUpdate() *refusal.Refusal {
	update := c.msg.(*envd.Message).Proto.(*processpb.UpdateRequest)
	if p, _ := c.g.state.processes.find(c.target.Sandbox, update.GetProcess()); p != nil && update.GetPty() != nil {
		p.resize(update.GetPty().GetSize())
	}
	return c.enforceRPC()
}

func (c *call) enforceCompose() *refusal.Refusal {
	interpreter.CanonicalHeaders(c.r.Header)
	return nil
}

func (c *call) enforceInterpreter() *refusal.Refusal {
	interpreter.CanonicalHeaders(c.r.Header)
	return nil
}

func (c *call) enforcePort() *refusal.Refusal {
	if err := c.g.cfg.Policy.Ports.Check(c.target.Port); err != nil {
		return refusal.New(refusal.CodeDenied, "e2bguard refused "+string(c.target.Row.Operation)+": "+err.Error())
	}
	return nil
}
