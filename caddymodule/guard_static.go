package caddymodule

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
)

// Static is the embedded analyser: no key, no network, microseconds.
type Static struct {
	// Profile overrides the handler's profile for this guard: "strict",
	// "balanced" or "permissive".
	Profile string `json:"profile,omitempty"`
	// Disable lists ids of rules that are switched off; `e2bguard check --rules`
	// prints them all.
	Disable []string `json:"disable,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Static) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: guardNamespace + ".static", New: func() caddy.Module { return new(Static) }}
}

// Link implements Guard.
func (s *Static) Link(settings GuardSettings) (guard.Link, error) {
	profile := s.Profile
	if profile == "" {
		profile = settings.Profile
	}
	g, err := static.New(static.Options{Profile: static.Profile(profile), Disabled: s.Disable})
	if err != nil {
		return guard.Link{}, fmt.Errorf("guard static: %w", err)
	}
	return guard.Link{Name: "static", Guard: g}, nil
}

// UnmarshalCaddyfile sets up the guard from Caddyfile tokens. Syntax:
//
//	guard static {
//		profile strict|balanced|permissive
//		disable <rule...>
//	}
func (s *Static) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the guard's name
	if err := noArgs(d); err != nil {
		return err
	}
	return parseBlock(d, "guard static", staticOptions(s))
}

func staticOptions(s *Static) []option {
	return []option{
		{name: "profile", syntax: "strict | balanced | permissive", fallback: "the handler's", doc: "How much doubt blocks, for this guard alone.",
			set: func(d *caddyfile.Dispenser) (err error) {
				s.Profile, err = word(d, profileStrict, profileBalanced, profilePermissive)
				return err
			}},
		{name: "disable", syntax: "RULE…", fallback: "none", doc: "Rules that are switched off, by id; `e2bguard check --rules` lists them.",
			set: func(d *caddyfile.Dispenser) (err error) {
				if s.Disable, err = some(d, "become-root"); err != nil {
					return err
				}
				for _, id := range s.Disable {
					if _, known := static.RuleByID(id); !known {
						return d.Errf("disable %s: there is no such rule; `e2bguard check --rules` lists them", id)
					}
				}
				return nil
			}},
	}
}

// Interface guards.
var (
	_ Guard                 = (*Static)(nil)
	_ caddyfile.Unmarshaler = (*Static)(nil)
)
