package shell

import (
	"path"
	"sort"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

func sortedNames(m map[string]*function) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}

	sort.Strings(names)

	return names
}

// set gives a variable a value; maxVars bounds how many there are.
func (e *eval) set(name string, v effect.Value) {
	if e.vars == nil {
		e.vars = map[string]variable{}
	}

	if len(e.vars) < maxVars {
		e.vars[name] = variable{val: v}
	}
}

const maxVars = 4096

// pwd is the working directory as far as it is known.
func (e *eval) pwd() effect.Value {
	if e.m.Cwd != "" {
		return effect.Const(e.m.Cwd)
	}

	return effect.Value{Text: "/" + effect.HoleText, Ref: "PWD"}
}

// get is a variable's value; set says whether the script or the system
// defines it.
func (e *eval) get(name string) (v variable, set bool) {
	if v, ok := e.vars[name]; ok {
		return v, true
	}

	switch name {
	case "HOME":
		return variable{val: e.home()}, true
	case "PWD", "OLDPWD":
		return variable{val: e.pwd()}, true
	case "IFS":
		return variable{val: effect.Const(" \t\n")}, true
	case "PATH":
		return variable{val: effect.Const("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")}, true
	case "SHELL", "BASH":
		return variable{val: effect.Const("/bin/bash")}, true
	case "TMPDIR":
		return variable{val: effect.Const("/tmp")}, true
	case "HISTFILE":
		return variable{val: effect.Const("/home/user/.bash_history")}, true
	case "OSTYPE":
		return variable{val: effect.Const("linux-gnu")}, true
	case "USER", "LOGNAME", "HOSTNAME", "UID", "EUID":
		return variable{val: effect.Value{Text: effect.HoleText, Ref: name}.From(effect.TaintInfo, name)}, false
	case "RANDOM", "SRANDOM":
		return variable{val: effect.Value{Text: effect.HoleText, Ref: name, Taint: effect.TaintRandom}}, false
	case "@", "*":
		if len(e.args) > 0 {
			return variable{list: e.args, arr: true}, true
		}

		return variable{val: effect.Value{Text: effect.HoleText, Ref: "@", Taint: effect.TaintInput}}, false
	case "#", "?", "-", "$", "!", "_", "BASHPID", "PPID", "SECONDS", "LINENO":
		return variable{val: effect.Value{Text: effect.HoleText, Ref: name}}, false
	case "0":
		return variable{val: effect.Value{Text: effect.HoleText, Ref: "0"}}, false
	}

	if isNumber(name) {
		if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(e.args) {
			return variable{val: e.args[n-1]}, true
		}

		return variable{val: effect.Value{Text: effect.HoleText, Ref: name, Taint: effect.TaintInput}}, false
	}

	return variable{val: effect.Value{Text: effect.HoleText, Ref: name}.From(effect.TaintEnv, name)}, false
}

// param evaluates ${…} in all its forms.
func (e *eval) param(p *syntax.ParamExp) []effect.Value {
	if p.Param == nil {
		return []effect.Value{effect.Unknown(0)}
	}

	name := p.Param.Value
	v, set := e.get(name)

	if p.Excl && p.Names == 0 {
		if v.val.IsConst() && v.val.Text != "" && len(v.val.Text) < 64 {
			v, set = e.get(v.val.Text)
		}
	}

	values := e.index(v, p)

	if p.Length {
		if len(values) == 1 && values[0].IsConst() {
			return []effect.Value{effect.Const(strconv.Itoa(len(values[0].Text)))}
		}

		return []effect.Value{effect.Unknown(0)}
	}

	if p.Exp != nil {
		return e.expansion(name, p.Exp, values, set)
	}

	for i, val := range values {
		switch {
		case p.Slice != nil:
			values[i] = e.slice(val, p.Slice)
		case p.Repl != nil:
			values[i] = e.replace(val, p.Repl)
		}
	}

	return values
}

// index picks what ${a[i]} asks for.
func (e *eval) index(v variable, p *syntax.ParamExp) []effect.Value {
	if !v.arr {
		return []effect.Value{v.val}
	}

	all := append([]effect.Value(nil), v.list...)

	if p.Param.Value == "@" || p.Param.Value == "*" {
		if p.Slice != nil {
			return e.sliceList(all, p.Slice)
		}

		return all
	}

	w, isWord := p.Index.(*syntax.Word)
	if isWord && (w.Lit() == "@" || w.Lit() == "*") {
		if p.Slice != nil {
			return e.sliceList(all, p.Slice)
		}

		return all
	}

	i := 0

	if p.Index != nil {
		n, ok := e.arith(p.Index, 0)
		if !ok {
			return []effect.Value{effect.Concat(append(all, effect.Unknown(0))...)}
		}

		i = n
	}

	if i < 0 {
		i += len(all)
	}

	if i >= 0 && i < len(all) {
		return all[i : i+1]
	}

	return []effect.Value{{}}
}

func (e *eval) sliceList(list []effect.Value, s *syntax.Slice) []effect.Value {
	from, ok := e.arith(s.Offset, 0)
	if !ok {
		return list
	}

	from = max(from-1, 0)
	if from >= len(list) {
		return nil
	}

	list = list[from:]

	if s.Length != nil {
		if n, ok := e.arith(s.Length, 0); ok && n >= 0 && n < len(list) {
			list = list[:n]
		}
	}

	return list
}

// expansion is ${x:-word} and its kin.
func (e *eval) expansion(name string, x *syntax.Expansion, values []effect.Value, set bool) []effect.Value {
	switch x.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if set {
			return values
		}

		d := e.word(x.Word)
		if x.Op == syntax.AssignUnset || x.Op == syntax.AssignUnsetOrNull {
			e.set(name, d)
		}

		return []effect.Value{d}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		alt := e.word(x.Word)
		if set {
			return []effect.Value{alt}
		}

		return []effect.Value{{}}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return values
	}

	pattern := e.word(x.Word)

	for i, v := range values {
		values[i] = trim(v, x.Op, pattern.Text)
	}

	return values
}

func trim(v effect.Value, op syntax.ParExpOperator, pattern string) effect.Value {
	switch op {
	case syntax.UpperFirst, syntax.UpperAll:
		return withText(v, strings.ToUpper(v.Text))
	case syntax.LowerFirst, syntax.LowerAll:
		return withText(v, strings.ToLower(v.Text))
	case syntax.OtherParamOps:
		return v
	}

	if !v.IsConst() {
		return v
	}

	s := v.Text
	if len(s) > 4096 {
		return v
	}

	match := func(part string) bool {
		ok, err := path.Match(pattern, part)

		return err == nil && (ok || pattern == "*") || matchAnySlash(pattern, part)
	}

	switch op {
	case syntax.RemSmallPrefix:
		for i := 0; i <= len(s); i++ {
			if match(s[:i]) {
				return withText(v, s[i:])
			}
		}
	case syntax.RemLargePrefix:
		for i := len(s); i >= 0; i-- {
			if match(s[:i]) {
				return withText(v, s[i:])
			}
		}
	case syntax.RemSmallSuffix:
		for i := len(s); i >= 0; i-- {
			if match(s[i:]) {
				return withText(v, s[:i])
			}
		}
	case syntax.RemLargeSuffix:
		for i := 0; i <= len(s); i++ {
			if match(s[i:]) {
				return withText(v, s[:i])
			}
		}
	}

	return v
}

// matchAnySlash matches as the shell does here: "*" takes slashes too.
func matchAnySlash(pattern, s string) bool {
	if !strings.Contains(s, "/") {
		return false
	}

	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(s, "/", "\x01"))

	return err == nil && ok
}

func (e *eval) slice(v effect.Value, s *syntax.Slice) effect.Value {
	from, ok := e.arith(s.Offset, 0)
	if !ok {
		return withText(v, effect.HoleText)
	}

	text := v.Text
	if !v.IsConst() {
		text = v.Prefix()
		if from < 0 || s.Length == nil {
			return withText(v, effect.HoleText)
		}
	}

	if from < 0 {
		from = max(len(text)+from, 0)
	}

	if from > len(text) {
		return effect.Value{}
	}

	text = text[from:]

	if s.Length != nil {
		n, ok := e.arith(s.Length, 0)

		switch {
		case !ok:
			return withText(v, effect.HoleText)
		case n < 0:
			n = max(len(text)+n, 0)
		}

		if n > len(text) && !v.IsConst() {
			return withText(v, text+effect.HoleText)
		}

		text = text[:min(n, len(text))]
	}

	return withText(v, text)
}

func (e *eval) replace(v effect.Value, r *syntax.Replace) effect.Value {
	orig, with := e.word(r.Orig), effect.Value{}
	if r.With != nil {
		with = e.word(r.With)
	}

	if !orig.IsConst() || strings.ContainsAny(orig.Text, "*?[") {
		if strings.ContainsAny(orig.Text, "*?[") && v.IsConst() && r.With == nil {
			return withText(v, effect.HoleText)
		}

		return withText(v, effect.HoleText)
	}

	n := 1
	if r.All {
		n = -1
	}

	if orig.Text == "" {
		return v
	}

	out := withText(v, strings.Replace(v.Text, orig.Text, with.Text, n))
	out.Taint |= with.Taint

	return out
}
