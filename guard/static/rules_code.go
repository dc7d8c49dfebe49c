package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

var shellRules = []row{
	{
		Rule: Rule{
			ID: "reverse-shell", Category: "reverse_shell", Severity: Critical, CWE: "CWE-506",
			Seen: "it gives a shell to a network connection ({}).", Fine: "A server that answers requests of your own program would be fine.",
		},
		match: finding(reverseShell, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "beacon", Category: "reverse_shell", Severity: High, CWE: "CWE-506",
			Seen: "it leaves {} running, an unknown program that reports to a bare address.", Fine: "Running your own program against a named host would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			t := e.Target.Text
			if !e.Flags.Has(effect.FlagBackground) || !strings.HasPrefix(t, "./") && !place.IsTemp(t) {
				return "", false
			}

			for i := range e.Args {
				a := e.Args[i].Text
				if c := place.ClassifyHost(a); strings.Contains(a, "://") && c.Has(place.Literal) && !c.Has(place.Loopback|place.Internal) {
					return show(t), true
				}
			}

			return "", false
		}, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "remote-command", Category: "reverse_shell", Severity: Critical, CWE: "CWE-506",
			Seen: "it runs what it reads from a network connection ({}).", Fine: "Reading data from a connection and not running it would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), e.Data.Has(effect.TaintNetwork)
		}, effect.Eval),
	},
}

func reverseShell(f *facts) []hit {
	out := matching(func(f *facts, e *fact) (string, bool) {
		if !e.Flags.Has(effect.FlagNetIO) {
			return "", false
		}

		n := e.name()

		return show(e.Via), shells[n] || e.Target.IsUnknown() || strings.HasPrefix(n, "python") || oneOf(n, "perl", "ruby", "php", "node", "script", "pty.spawn", "login")
	}, effect.Exec).find(f)

	// A standard stream bound to a socket, and a shell started: the classic.
	bound := false

	f.each(func(e *fact) {
		bound = bound || e.Data.Has(effect.TaintNetwork|effect.TaintSocket)
	}, effect.Dup)

	if bound {
		f.each(func(e *fact) {
			if shells[e.name()] || e.Target.IsUnknown() {
				out = append(out, hit{e.Span, show(e.Via)})
			}
		}, effect.Exec)
	}

	return out
}
