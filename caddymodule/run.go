package caddymodule

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// Run is how POST /run runs programs. A limit that is not given is its default, or
// that of the option limits if that is lower; 0 turns it off, where that is possible.
type Run struct {
	// Templates are the templates of the sandboxes, by language: "python", "node",
	// "bash", "r" or "java". Default: base; code-interpreter-v1 for r and java.
	Templates map[string]string `json:"templates,omitempty"`
	// Timeout is how long a program may run: as long as its client asks for, at most
	// this. Default: 20s. Cannot be off.
	Timeout *caddy.Duration `json:"timeout,omitempty"`
	// CPUSeconds is a program's CPU time. Default: 5.
	CPUSeconds *int `json:"cpu_seconds,omitempty"`
	// Memory is the data segment of each of a program's processes, in bytes. Default:
	// 512 MiB.
	Memory *int64 `json:"memory,omitempty"`
	// Output is how many bytes of stdout, and of stderr, an answer holds. Default: 1
	// MiB.
	Output int64 `json:"output,omitempty"`
	// Pool is how many sandboxes are kept ready for each client that runs programs,
	// and each template: the next program need not wait for one. They count among the
	// client's, of whose limit they take half at most. Default: none.
	Pool int `json:"pool,omitempty"`
}

func runOptions(r *Run) []option {
	return []option{
		{name: "template", syntax: "LANGUAGE ID", many: true, set: r.parseTemplate, fallback: "base (r, java: code-interpreter-v1)",
			doc: "The template of a language's sandboxes: python, node, bash, r, java. Once per language."},
		{name: "timeout", syntax: "DURATION", set: positiveDuration(&r.Timeout), fallback: "20s", doc: "How long a program may run: as long as its client asks for, at most this."},
		{name: "cpu_seconds", syntax: "SECONDS | off", set: count(&r.CPUSeconds, "5"), fallback: "5", doc: "A program's CPU time."},
		{name: "memory", syntax: "SIZE | off", set: size(&r.Memory, "512MiB"), fallback: "512MiB", doc: "Data segment of each process of a program."},
		{name: "output", syntax: "SIZE", set: byteSize(&r.Output, "1MiB"), fallback: "1MiB", doc: "Bytes of stdout, and of stderr, that an answer holds; what is beyond is cut, and the answer says so."},
		{name: "pool", syntax: "NUMBER", set: r.parsePool, fallback: "none",
			doc: "Sandboxes that are kept ready for each client that runs programs, and each template. They cost what others do."},
	}
}

func (h *Handler) parseRun(d *caddyfile.Dispenser) error {
	h.Run = new(Run)
	if err := noArgs(d); err != nil {
		return err
	}
	if err := parseBlock(d, "run", runOptions(h.Run)); err != nil {
		return err
	}
	_, err := h.Run.config(policy.Policy{})
	return at(d, err)
}

// checkRun refuses programs of whoever comes.
func (h *Handler) checkRun() error {
	if h.Run != nil && len(h.Clients) == 0 {
		return errors.New("run needs client keys, for whoever runs programs must be known: add a line such as `client team-a {env.TEAM_A_KEY}`")
	}
	return nil
}

func (r *Run) parseTemplate(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return d.Errf("template takes a language and a template, as in: template python base")
	}
	if _, again := r.Templates[args[0]]; again {
		return d.Errf("template %s is given twice; keep one", args[0])
	}
	if r.Templates == nil {
		r.Templates = map[string]string{}
	}
	r.Templates[args[0]] = args[1]
	return nil
}

func (r *Run) parsePool(d *caddyfile.Dispenser) error {
	v, err := one(d, "2")
	if err != nil {
		return err
	}
	if r.Pool, err = strconv.Atoi(v); err != nil || r.Pool <= 0 {
		return d.Errf("pool %s: write a number of sandboxes larger than zero, as in: pool 2", v)
	}
	return nil
}

// The defaults are those of the pattern that the endpoint is: a code runner for
// what a model has written.
const (
	defaultRunTimeout = 20 * time.Second
	defaultRunCPU     = 5
	defaultRunMemory  = 512 << 20
	defaultRunOutput  = 1 << 20
)

func (r *Run) config(p policy.Policy) (*gateway.Run, error) {
	if r == nil {
		return nil, nil
	}
	c := &gateway.Run{
		Templates: r.Templates, Timeout: lower(defaultRunTimeout, p.Limits.WallClock), CPUSeconds: lower(defaultRunCPU, p.Limits.CPUSeconds),
		MemoryBytes: lower(defaultRunMemory, p.Limits.MemoryBytes), OutputBytes: defaultRunOutput, Pool: r.Pool,
	}
	set(&c.Timeout, (*time.Duration)(r.Timeout))
	set(&c.CPUSeconds, r.CPUSeconds)
	set(&c.MemoryBytes, r.Memory)
	if r.Output != 0 {
		c.OutputBytes = r.Output
	}
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("run: "+format, args...)) }
	if c.MemoryBytes != 0 && c.MemoryBytes < minMemory {
		bad("memory %d bytes is too little for a shell to start; write at least 16MiB, or off", c.MemoryBytes)
	}
	if c.OutputBytes < minOutput || c.OutputBytes > maxRunOutput {
		bad("output %d bytes: write a size from 1KiB to 64MiB", c.OutputBytes)
	}
	return c, errors.Join(append(problems, wrap("run", c.Validate()))...)
}

// maxRunOutput bounds what is held of each program that runs.
const maxRunOutput = 64 << 20

// lower is the lower of two limits; 0 is none.
func lower[T int | int64 | time.Duration](a, b T) T {
	if b > 0 && b < a {
		return b
	}
	return a
}
