package envd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// learn finds what has an effect on the script as a whole.
func (w *scriptWalk) learn(file *syntax.File) {
	assigned := map[string]int{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				w.funcs[n.Name.Value] = n
			}
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			assigned[n.Name.Value]++
			w.separator = w.separator || n.Name.Value == "IFS" && n.Value != nil
			w.renamed = w.renamed || w.redirects(n)
		case *syntax.CallExpr:
			w.learnCall(n)
		case *syntax.ForClause, *syntax.ArithmCmd, *syntax.LetClause:
			syntax.Walk(n, func(n syntax.Node) bool {
				if lit, ok := n.(*syntax.Lit); ok {
					assigned[lit.Value] += 2
				}
				return true
			})
		}
		return true
	})
	for _, s := range file.Stmts {
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) > 0 || s.Background || s.Negated {
			continue
		}
		for _, a := range call.Assigns {
			if a.Name == nil || a.Append || a.Index != nil || a.Array != nil || assigned[a.Name.Value] != 1 {
				continue
			}
			value := word{known: true}
			if a.Value != nil {
				value = w.literal(a.Value)
			}
			if temporary(a.Value) {
				value = word{"/tmp/tmp.0", true}
			}
			if value.known {
				w.consts[a.Name.Value] = constant{value.text, s.End().Offset()}
			}
		}
	}
}

// redirects reports whether an assignment makes programs load or start others.
func (w *scriptWalk) redirects(a *syntax.Assign) bool {
	switch name := a.Name.Value; {
	case name == "BASH_CMDS" || name == "BASH_ALIASES":
		return true
	case name == "PATH":
		value := ""
		if a.Value != nil {
			value = literal(a.Value).text
		}
		value = strings.ReplaceAll(strings.ReplaceAll(value, "${PATH}", "$PATH"), `"`, "")
		for dir := range strings.SplitSeq(value, ":") {
			if dir == "$PATH" {
				return false // what comes behind it stands in for nothing
			}
			if !slices.Contains([]string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}, dir) {
				return true
			}
		}
		return false
	default:
		return codeVariable(name)
	}
}

func (w *scriptWalk) learnCall(call *syntax.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	switch literal(call.Args[0]).text {
	case "hash", "enable":
		w.renamed = w.renamed || len(call.Args) > 1
	case "alias":
		for _, a := range call.Args[1:] {
			name, _, is := strings.Cut(literal(a).text, "=")
			if is {
				w.funcs[name] = nil
			}
		}
	case "cd", "pushd":
		if len(call.Args) == 2 {
			if dir := w.literal(call.Args[1]); dir.known {
				w.dirs = append(w.dirs, dir.text)
			}
		}
	}
}

// temporary reports whether a word is the name of a new temporary file.
func temporary(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	text := strings.Trim(literal(w).text, `"`)
	return strings.HasPrefix(text, "$(mktemp") && !strings.ContainsAny(text[2:len(text)-1], "$;|&()<>/`")
}
