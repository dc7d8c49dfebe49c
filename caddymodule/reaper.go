package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

const (
	exitKeep = "keep"
	exitKill = "kill"

	reapEvery = time.Minute
	// minReap keeps E2B from being asked all the time, and sandboxes from ending
	// between two calls of an agent that thinks.
	minReap = time.Second
)

// Reaper ends sandboxes that nobody else ends: those that outlived their lifetime,
// after a crash for example, and if wanted those that nobody uses. It goes by E2B's
// own list, and needs client keys.
type Reaper struct {
	// Interval is the time between two looks at E2B's list; 0 for never. Default:
	// 1m.
	Interval *caddy.Duration `json:"interval,omitempty"`
	// IdleGrace ends sandboxes that no call was for, and no stream open, for so long,
	// as far as this process knows: it needs one replica, or calls for a sandbox that
	// always go to the same. Default: 0, off.
	IdleGrace *caddy.Duration `json:"idle_grace,omitempty"`
	// OnExit is what becomes of sandboxes that were made through this process when
	// it stops: "keep" (default) or "kill".
	OnExit string `json:"on_exit,omitempty"`
}

func reaperOptions(r *Reaper) []option {
	return []option{
		{name: "interval", syntax: "DURATION | off", set: duration(&r.Interval), fallback: "1m", doc: "How often E2B's list is looked at, to end what outlived its lifetime and to note what is gone."},
		{name: "idle_grace", syntax: "DURATION | off", set: duration(&r.IdleGrace), fallback: "off",
			doc: "Ends sandboxes that no call was for, and no stream open, for so long. Each process knows of its own calls only: with replicas, all calls for a sandbox must go to the same one."},
		{name: "on_exit", syntax: "keep | kill", set: r.parseOnExit, fallback: exitKeep,
			doc: "What becomes of the sandboxes that were made through this process when it is stopped, or this E2B account is taken out of its configuration. A reload is no stop."},
	}
}

func (h *Handler) parseReaper(d *caddyfile.Dispenser) error {
	h.Reaper = new(Reaper)
	if err := noArgs(d); err != nil {
		return err
	}
	if err := parseBlock(d, "reaper", reaperOptions(h.Reaper)); err != nil {
		return err
	}
	_, err := h.Reaper.config(true)
	return at(d, err)
}

func (r *Reaper) parseOnExit(d *caddyfile.Dispenser) (err error) {
	r.OnExit, err = word(d, exitKeep, exitKill)
	return err
}

// config is the reaper of a gateway that has client keys, or has none.
func (r *Reaper) config(vault bool) (gateway.Reaper, error) {
	if r == nil {
		if !vault {
			return gateway.Reaper{}, nil
		}
		return gateway.Reaper{Interval: reapEvery}, nil
	}
	g := gateway.Reaper{Interval: reapEvery, EndOnExit: r.OnExit == exitKill}
	set(&g.Interval, (*time.Duration)(r.Interval))
	set(&g.IdleGrace, (*time.Duration)(r.IdleGrace))
	problems := []error{oneOf("reaper on_exit", r.OnExit, exitKeep, exitKill)}
	if !vault {
		problems = append(problems, errors.New("reaper needs client keys: without an E2B key of its own the gateway can neither list nor end sandboxes, and E2B ends them at the end of their lifetime; add upstream api_key and a client, or leave the block out"))
	}
	for name, d := range map[string]time.Duration{"interval": g.Interval, "idle_grace": g.IdleGrace} {
		if d != 0 && d < minReap {
			problems = append(problems, fmt.Errorf("reaper: %s %s is too short; write at least %s, or off", name, d, minReap))
		}
	}
	if g.Interval == 0 && (g.IdleGrace != 0 || g.EndOnExit) {
		problems = append(problems, errors.New("reaper: idle_grace and on_exit kill need the look at E2B's list that interval off turns off; write an interval, as in: interval 1m"))
	}
	return g, errors.Join(problems...)
}

// startReaper has the reaper begin once the server has started: a configuration
// that is only validated ends nothing.
func (h *Handler) startReaper(ctx caddy.Context) error {
	reaping, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	h.stopReaper = func() {
		stop()
		running.Wait()
	}
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("waiting for the start: %w", err)
	}
	return app.(*caddyevents.App).On("started", onStart(func(context.Context) error {
		running.Go(func() { h.gw.Reap(reaping) })
		return nil
	}))
}

// hold keeps what the handler owns until it is released.
func (h *Handler) hold() (release func()) {
	if h.lease.take() {
		return h.lease.give
	}
	return func() {}
}
