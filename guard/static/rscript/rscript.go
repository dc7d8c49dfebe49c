// Package rscript is the static guard's front end for R.
package rscript

import (
	"sync"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/scan"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// Parse reports what R code does.
func Parse(text string, budget *effect.Budget) effect.Result {
	return flow.Run(scan.Parse(text, scan.R), language(), budget)
}

var _ effect.Parser = Parse

var language = sync.OnceValue(func() *flow.Language {
	l := &flow.Language{
		Name: "r", Root: &flow.Sym{}, Builtins: &flow.Sym{}, Keys: true, Base: 1,
		Unquote: func(t *tree.Tree, id tree.ID) string {
			if n := t.At(id); n.Flag&tree.FlagRaw != 0 {
				return t.Text(id)
			}

			return flow.Escapes(t.Text(id), false, false)
		},
		Attr:    attribute,
		SetAttr: func(*flow.Machine, flow.Value, string, flow.Value, tree.ID) {},
		Methods: map[string]flow.Handler{},
	}

	defineNames(l.Builtins)
	defineText(l.Builtins)
	defineSystem(l.Builtins)
	defineFiles(l.Builtins)
	defineNetwork(l.Builtins)
	l.Builtins.Freeze()

	return l
})

// attribute reads members of what is known; R6 and the like are not.
func attribute(*flow.Machine, flow.Value, string, tree.ID) (flow.Value, bool) {
	return flow.Value{}, false
}
