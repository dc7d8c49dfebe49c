package caddymodule

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/superagent"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// Superagent asks a service that speaks the Superagent Guard API.
type Superagent struct {
	// URL is the service. Default: https://app.superagent.sh/api/guard.
	// Placeholders are resolved when the configuration is loaded.
	URL string `json:"url,omitempty"`
	// APIKey is the service's key; best a placeholder. Required.
	APIKey string `json:"api_key,omitempty"`
	// Timeout bounds the review of one subject. Default: 5s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// For lists the kinds it is asked about: command, code, input, file, tool,
	// build. Default: all but input, for a call per line typed would be unusable.
	For []string `json:"for,omitempty"`
	// Wire is the name of the field the text is sent in: "text" (default), or
	// "prompt" for services of the first generation.
	Wire string `json:"wire,omitempty"`
	// SystemPrompt is sent along, for services that take one.
	SystemPrompt string `json:"system_prompt,omitempty"`

	guard guard.Guard
	kinds []guard.Kind
	key   redact.Secret
}

// CaddyModule returns the Caddy module information.
func (Superagent) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: guardNamespace + ".superagent", New: func() caddy.Module { return new(Superagent) }}
}

// Provision resolves placeholders and builds the client.
func (s *Superagent) Provision(caddy.Context) error {
	repl := caddy.NewReplacer()
	u, err := absoluteURL(repl, "guard superagent url", s.URL, superagent.DefaultURL)
	if err != nil {
		return err
	}
	key, err := secret(repl, "guard superagent api_key", s.APIKey)
	if err != nil {
		return err
	}
	if key.IsZero() {
		return errors.New("guard superagent has no api_key: add `api_key {env.SUPERAGENT_API_KEY}` to its block")
	}
	if s.Timeout < 0 {
		return errors.New("guard superagent timeout is negative; leave it out for the default")
	}
	if s.kinds, err = parseKinds(s.For); err != nil {
		return fmt.Errorf("guard superagent: %w", err)
	}
	s.key = key
	s.guard, err = superagent.New(superagent.Config{
		URL: u.String(), APIKey: key, Wire: superagent.Wire(s.Wire), SystemPrompt: s.SystemPrompt,
	})
	return err
}

// Link implements Guard.
func (s *Superagent) Link(settings GuardSettings) (guard.Link, error) {
	settings.HideSecret(s.key.Reveal())
	return guard.Link{
		Name: "superagent", Guard: s.guard, For: s.kinds, Remote: true, Window: superagent.DefaultWindow,
		Timeout: time.Duration(s.Timeout), MaskSecrets: settings.MaskSecrets,
	}, nil
}

// UnmarshalCaddyfile sets up the guard from Caddyfile tokens. Syntax:
//
//	guard superagent {
//		url           <url>
//		api_key       <key>
//		timeout       <duration>
//		for           <kind...>
//		wire          text|prompt
//		system_prompt <text>
//	}
func (s *Superagent) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the guard's name
	if err := noArgs(d); err != nil {
		return err
	}
	if err := parseBlock(d, "guard superagent", superagentOptions(s)); err != nil {
		return err
	}
	if s.APIKey == "" {
		return d.Errf("guard superagent has no api_key: add `api_key {env.SUPERAGENT_API_KEY}` to its block")
	}
	return nil
}

func superagentOptions(s *Superagent) []option {
	return []option{
		{name: "url", syntax: "URL", set: checked(&s.URL, superagent.DefaultURL, checkURL("url", superagent.DefaultURL)), fallback: superagent.DefaultURL, doc: "The service. Placeholders allowed."},
		{name: "api_key", syntax: "KEY", set: checked(&s.APIKey, "{env.SUPERAGENT_API_KEY}", checkSecret("api_key")), fallback: "required", doc: "The service's key. Write `{env.SUPERAGENT_API_KEY}`."},
		{name: "timeout", syntax: "DURATION", set: s.parseTimeout, fallback: "5s", doc: "The longest the review of one subject may take."},
		{name: "for", syntax: "KIND…", set: s.parseFor, fallback: "command code file tool build prompt", doc: "The kinds it is asked about; `input` besides."},
		{name: "wire", syntax: "text | prompt", set: s.parseWire, fallback: "text", doc: "The field the text is sent in; `prompt` for services of the first generation."},
		{name: "system_prompt", syntax: "TEXT", set: text(&s.SystemPrompt, `"Judge for a data science team."`), fallback: "none", doc: "Sent along, for services that take one."},
	}
}

func (s *Superagent) parseTimeout(d *caddyfile.Dispenser) error {
	var given *caddy.Duration
	if err := positiveDuration(&given)(d); err != nil {
		return err
	}
	s.Timeout = *given
	return nil
}

func (s *Superagent) parseFor(d *caddyfile.Dispenser) (err error) {
	if s.For, err = some(d, "command code tool"); err != nil {
		return err
	}
	_, err = parseKinds(s.For)
	return at(d, err)
}

func (s *Superagent) parseWire(d *caddyfile.Dispenser) (err error) {
	s.Wire, err = word(d, "text", "prompt")
	return err
}

// Interface guards.
var (
	_ Guard                 = (*Superagent)(nil)
	_ caddy.Provisioner     = (*Superagent)(nil)
	_ caddyfile.Unmarshaler = (*Superagent)(nil)
)
