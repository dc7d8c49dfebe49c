// Package flowtest has what the tests of all front ends share: a short way to
// write down effects.
package flowtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Case is a piece of code and the lines that Describe must give for it, among
// others.
type Case struct {
	Name string
	Code string
	Want []string
	// Quiet says that nothing but Want may be there.
	Quiet bool
}

// Run checks cases.
func Run(t *testing.T, parse effect.Parser, cases []Case) {
	t.Helper()

	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := Describe(parse(c.Code, effect.NewBudget(effect.DefaultSteps)))

			for _, want := range c.Want {
				require.True(t, slices.Contains(got, want), "want:\n%s\ngot:\n%s", want, strings.Join(got, "\n"))
			}

			if c.Quiet {
				require.Len(t, got, len(c.Want), "got:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// Together runs all cases at once, several times over: what a front end knows
// of its language is shared by all reviews.
func Together(t *testing.T, parse effect.Parser, cases []Case) {
	t.Helper()

	var g sync.WaitGroup

	for range 4 {
		g.Go(func() {
			for _, c := range cases {
				parse(c.Code, effect.NewBudget(effect.DefaultSteps))
			}
		})
	}

	g.Wait()
}

var flagNames = []struct {
	flag effect.Flag
	name string
}{
	{effect.FlagRecursive, "recursive"},
	{effect.FlagForce, "force"},
	{effect.FlagAppend, "append"},
	{effect.FlagTruncate, "truncate"},
	{effect.FlagCopy, "copy"},
	{effect.FlagBackground, "background"},
	{effect.FlagLoop, "loop"},
	{effect.FlagUnbounded, "unbounded"},
	{effect.FlagRecursing, "recursing"},
	{effect.FlagNetIO, "netio"},
	{effect.FlagManyHosts, "manyhosts"},
	{effect.FlagManyPorts, "manyports"},
	{effect.FlagRemote, "remote"},
	{effect.FlagHidden, "hidden"},
}

// Describe writes each effect and each piece of embedded code as a line, "_"
// for what is unknown: "send https://h | _ <file:/etc/passwd> +loop". Imports
// are left out.
func Describe(r effect.Result) []string {
	var out []string

	for _, e := range r.Effects {
		if e.Kind == effect.Import {
			continue
		}

		s := e.Kind.String()
		if e.Target.Text != "" {
			s += " " + text(e.Target)
		}

		for _, a := range e.Args {
			s += " " + text(a)
		}

		if e.Port.Text != "" {
			s += " :" + text(e.Port)
		}

		if e.Lang != "" {
			s += " (" + e.Lang + ")"
		}

		if e.Data.Text != "" {
			s += " | " + text(e.Data)
		}

		out = append(out, s+taint(e.Data.Taint|e.Target.Taint, e.Data.Origin)+flags(e.Flags))
	}

	for _, e := range r.Embedded {
		out = append(out, fmt.Sprintf("%s: %s%s%s", e.Lang, text(e.Text), taint(e.Text.Taint, e.Text.Origin), flags(e.Flags)))
	}

	return out
}

func text(v effect.Value) string {
	return strings.ReplaceAll(v.Text, effect.HoleText, "_")
}

func taint(t effect.Taint, origin string) string {
	if t == 0 {
		return ""
	}

	if origin != "" {
		return " <" + t.String() + ": " + strings.ReplaceAll(strings.ReplaceAll(origin, "\n", ", "), effect.HoleText, "_") + ">"
	}

	return " <" + t.String() + ">"
}

func flags(f effect.Flag) string {
	var s string

	for _, n := range flagNames {
		if f.Has(n.flag) {
			s += " +" + n.name
		}
	}

	return s
}
