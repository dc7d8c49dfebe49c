package caddymodule

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// Builds is what clients may build templates from. At least one of FromImage and
// FromTemplate must be given.
type Builds struct {
	// FromImage lists container images: "python:3.12-slim" for that tag, "python"
	// for all its tags, "ghcr.io/acme/*" for all images below.
	FromImage []string `json:"from_image,omitempty"`
	// FromTemplate lists E2B templates by id or name. Clients with keys may build
	// from their own besides.
	FromTemplate []string `json:"from_template,omitempty"`
	// CPU is the most processors that a template's sandboxes get. Default: what
	// E2B allows.
	CPU *int `json:"cpu,omitempty"`
	// Memory is the most memory, in bytes, counted by E2B in whole MiB. Default:
	// what E2B allows.
	Memory int64 `json:"memory,omitempty"`
}

func buildOptions(b *Builds) []option {
	return []option{
		{name: "from_image", syntax: "IMAGE…", set: words(&b.FromImage, "python:3.12-slim"), fallback: "none",
			doc: "Images: `python:3.12-slim`, `python` for all its tags, `ghcr.io/acme/*` for all below."},
		{name: "from_template", syntax: "ID…", set: words(&b.FromTemplate, "base"), fallback: "none; with client keys, the client's own", doc: "Templates of E2B."},
		{name: "cpu", syntax: "N", set: count(&b.CPU, "2"), fallback: "what E2B allows", doc: "The most processors of a template's sandboxes."},
		{name: "memory", syntax: "SIZE", set: byteSize(&b.Memory, "2GiB"), fallback: "what E2B allows", doc: "The most memory of a template's sandboxes."},
	}
}

func (h *Handler) parseBuilds(d *caddyfile.Dispenser) error {
	h.Builds = new(Builds)
	if err := noArgs(d); err != nil {
		return err
	}
	if err := parseBlock(d, "builds", buildOptions(h.Builds)); err != nil {
		return err
	}
	return at(d, h.Builds.validate())
}

// minBuildMemory is the least that E2B gives a sandbox.
const minBuildMemory = 128 << 20

func (b *Builds) validate() error {
	if b == nil {
		return nil
	}
	if b.Memory != 0 && b.Memory < minBuildMemory {
		return fmt.Errorf("builds: memory %d bytes is less than any sandbox gets; write at least 128MiB", b.Memory)
	}
	p := b.policy()
	if !p.Open() {
		return errors.New("builds needs from_image, from_template or both, as in: from_image python:3.12-slim")
	}
	return wrap("builds", p.Validate())
}

func (b *Builds) policy() policy.Builds {
	if b == nil {
		return policy.Builds{}
	}
	p := policy.Builds{Images: b.FromImage, Templates: b.FromTemplate, MemoryMB: b.Memory >> 20}
	if b.CPU != nil {
		p.CPU = int64(*b.CPU)
	}
	return p
}

// words reads one or more words.
func words(to *[]string, example string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		*to, err = some(d, example)
		return err
	}
}
