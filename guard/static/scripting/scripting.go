// Package scripting holds the static guard's small front ends: one tolerant
// scanner for Perl, Ruby, PHP, Lua and Tcl, which sandboxes run as one-liners,
// and readers for cron tables, systemd units and SQL.
//
// The scanner does not parse; it finds calls whose names it knows, with the
// string literals that follow, and tells whether the text works with sockets.
package scripting

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// scanner walks over one text.
type scanner struct {
	d      *dialect
	s      string
	r      effect.Result
	socket bool
	fetch  bool
	vars   map[string]string
	budget *effect.Budget
}

func scan(d *dialect, text string, b *effect.Budget) effect.Result {
	sc := &scanner{d: d, s: text, budget: b}

	for _, name := range d.sockets {
		if i := strings.Index(text, name); i >= 0 {
			sc.socket = true
			sc.r.Add(effect.Effect{Kind: effect.Connect, Span: effect.Span{Start: i, End: i + len(name)}, Target: effect.Unknown(0), Via: name})

			break
		}
	}

	for _, name := range d.fetches {
		sc.fetch = sc.fetch || strings.Contains(text, name)
	}

	for i := 0; i < len(text); {
		if !b.Spend(1) {
			sc.r.Note(effect.NoteBudget, i, "out of steps")

			return sc.r
		}

		i = sc.step(i)
	}

	return sc.r
}

// step handles what stands at i and returns where to go on.
func (sc *scanner) step(i int) int {
	c := sc.s[i]

	switch {
	case strings.HasPrefix(sc.s[i:], sc.d.comment) && (i == 0 || sc.s[i-1] == ' ' || sc.s[i-1] == '\n' || sc.s[i-1] == ';'):
		if j := strings.IndexByte(sc.s[i:], '\n'); j >= 0 {
			return i + j + 1
		}

		return len(sc.s)
	case c == '`' && sc.d.backquote:
		text, end := literal(sc.s, i)
		sc.shell(effect.Const(text), i, end, "`")

		return end
	case c == '"' || c == '\'':
		_, end := literal(sc.s, i)

		return end
	case isWord(c) && (i == 0 || !isWord(sc.s[i-1])):
		return sc.name(i)
	}

	return i + 1
}

// name handles a word, with the dots and colons that join names.
func (sc *scanner) name(i int) int {
	end := i
	for end < len(sc.s) && (isWord(sc.s[end]) || (sc.s[end] == '.' || sc.s[end] == ':') && end+1 < len(sc.s) && (isWord(sc.s[end+1]) || sc.s[end+1] == ':')) {
		end++
	}

	full := sc.s[i:end]
	last := full

	if j := strings.LastIndexAny(full, ".:"); j >= 0 {
		last = full[j+1:]
	}

	if i > 0 && sc.s[i-1] == '$' {
		sc.variable(full, end)

		return end
	}

	switch {
	case contains(sc.d.runs, full, last):
		return sc.runCall(i, end, full)
	case contains(sc.d.evals, full, last):
		sc.evalCall(i, end, full)
	case contains(sc.d.deleteTrees, full, last):
		sc.paths(i, end, effect.Delete, effect.FlagRecursive, full)
	case contains(sc.d.deletes, full, last):
		sc.paths(i, end, effect.Delete, 0, full)
	case contains(sc.d.reads, full, last):
		sc.paths(i, end, effect.Read, 0, full)
	case contains(sc.d.writes, full, last):
		sc.paths(i, end, effect.Write, 0, full)
	case contains(sc.d.forks, full, last):
		sc.fork(i, end)
	}

	return end
}

// variable remembers $name = "literal".
func (sc *scanner) variable(name string, end int) {
	rest := strings.TrimLeft(sc.s[end:], " \t")
	if !strings.HasPrefix(rest, "=") {
		return
	}

	rest = strings.TrimLeft(rest[1:], " \t")
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		text, _ := literal(rest, 0)

		if sc.vars == nil {
			sc.vars = map[string]string{}
		}

		if len(sc.vars) < 256 {
			sc.vars[name] = text
		}
	}
}

// maxCall is how far, in bytes, the arguments of a call are looked for.
const maxCall = 32 << 10

// arguments are the literals that follow a call's name, up to the end of the
// statement; open says that something else was among them.
func (sc *scanner) arguments(i int) (args []effect.Value, end int, open bool) {
	depth, limit := 0, min(len(sc.s), i+maxCall)

	for i < limit && len(args) < 16 && sc.budget.Spend(1) {
		c := sc.s[i]

		switch {
		case c == '(' || c == '[' || c == '{':
			depth++
			i++
		case c == ')' || c == ']' || c == '}':
			depth--
			i++

			if depth <= 0 {
				return args, i, open
			}
		case c == '"' || c == '\'' || c == '`':
			text, e := literal(sc.s, i)
			v := effect.Const(text)

			if c != '\'' && (strings.Contains(text, "#{") || strings.ContainsRune(text, '$')) && sc.d != &lua {
				v = sc.interpolate(text)
			}

			args = append(args, v)
			i = e
		case c == ';' || c == '\n' && depth == 0:
			return args, i, open
		case c == '$' || c == '@' && sc.d != &php:
			e := i + 1
			for e < len(sc.s) && isWord(sc.s[e]) {
				e++
			}

			if text, ok := sc.vars[sc.s[i+1:e]]; ok {
				args = append(args, effect.Const(text))
			} else if e > i+1 {
				open = true
			}

			i = max(e, i+1)
		case isWord(c):
			e := i
			for e < len(sc.s) && (isWord(sc.s[e]) || sc.s[e] == '.' || sc.s[e] == ':') {
				e++
			}

			if sc.s[i:e] == "while" || sc.s[i:e] == "if" || sc.s[i:e] == "unless" || sc.s[i:e] == "or" {
				return args, i, open
			}

			open = open || len(args) == 0
			i = e
		default:
			i++
		}
	}

	return args, i, open
}

// interpolate makes holes of what a string interpolates.
func (sc *scanner) interpolate(text string) effect.Value {
	var b strings.Builder

	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "#{"):
			e := strings.IndexByte(text[i:], '}')
			if e < 0 {
				e = len(text) - i - 1
			}

			b.WriteString(effect.HoleText)

			i += e + 1
		case text[i] == '$' && i+1 < len(text) && isWord(text[i+1]):
			e := i + 1
			for e < len(text) && isWord(text[e]) {
				e++
			}

			if v, ok := sc.vars[text[i+1:e]]; ok {
				b.WriteString(v)
			} else {
				b.WriteString(effect.HoleText)
			}

			i = e
		default:
			b.WriteByte(text[i])
			i++
		}
	}

	v := effect.Const(b.String())
	if !v.IsConst() {
		v.Taint |= sc.source()
	}

	return v
}

// source is where an unknown value of this text may come from.
func (sc *scanner) source() effect.Taint {
	var t effect.Taint

	if sc.socket {
		t |= effect.TaintNetwork
	}

	if sc.fetch {
		t |= effect.TaintDownload
	}

	return t
}

func (sc *scanner) runCall(i, end int, name string) int {
	args, stop, open := sc.arguments(end)
	if len(args) == 0 && strings.HasPrefix(sc.s[end:], "{") {
		text, e := bracketed(sc.s[:min(len(sc.s), end+maxCall)], end)
		sc.budget.Spend(len(text) / 16)

		sc.shell(effect.Const(text), i, e, name)

		return e
	}

	span := effect.Span{Start: i, End: stop}
	if origin := sc.hidden(sc.s[end:stop]); origin != 0 {
		sc.r.Add(effect.Effect{Kind: effect.Eval, Span: span, Lang: "bash", Data: effect.Unknown(origin), Via: name})

		return stop
	}

	switch {
	case len(args) == 0 || startsWithName(sc.s[end:stop]):
		if (open || len(args) > 0) && sc.socket {
			sc.r.Add(effect.Effect{Kind: effect.Eval, Span: span, Lang: "bash", Data: effect.Unknown(effect.TaintNetwork), Via: name})
		}

		return end
	case len(args) > 1 && !strings.ContainsAny(args[0].Text, " \t;|&"):
		flags := effect.Flag(0)
		if sc.socket {
			flags = effect.FlagNetIO
		}

		sc.r.Add(effect.Effect{Kind: effect.Exec, Span: span, Target: args[0], Args: args[1:], Flags: flags, Via: name})
	default:
		sc.shell(args[0], i, stop, name)
	}

	return stop
}

// shell runs text as shell. With a socket open, a shell gets it as its streams.
func (sc *scanner) shell(text effect.Value, i, end int, via string) {
	sc.budget.Spend(16)

	span := effect.Span{Start: i, End: end}
	sc.r.Embed(effect.Embedded{Lang: "bash", Text: text, Span: span, Offset: -1, Via: via})

	if !sc.socket {
		return
	}

	word, _, _ := strings.Cut(strings.TrimSpace(text.Text), " ")
	word = word[strings.LastIndexByte(word, '/')+1:]

	switch word {
	case "sh", "bash", "dash", "zsh", "ksh", "ash":
		sc.r.Add(effect.Effect{Kind: effect.Exec, Span: span, Target: effect.Const(word), Flags: effect.FlagNetIO, Via: via})
	}
}

// hidden is where a call's argument comes from, if it is decoded or fetched in
// place.
func (sc *scanner) hidden(call string) effect.Taint {
	for _, d := range sc.d.decodes {
		if strings.Contains(call, d) {
			return effect.TaintDecoded
		}
	}

	for _, f := range sc.d.fetches {
		if strings.Contains(call, f) {
			return effect.TaintDownload
		}
	}

	return 0
}

// startsWithName says whether a call's first argument is a variable.
func startsWithName(call string) bool {
	first := strings.TrimLeft(call, " \t(")

	return first != "" && first[0] >= 'a' && first[0] <= 'z' && strings.IndexByte(call, '(') == 0
}

func (sc *scanner) evalCall(i, end int, name string) {
	args, stop, _ := sc.arguments(end)
	span := effect.Span{Start: i, End: stop}

	if origin := sc.hidden(sc.s[end:stop]); origin != 0 {
		sc.r.Add(effect.Effect{Kind: effect.Eval, Span: span, Lang: sc.d.name, Data: effect.Unknown(origin), Via: name})

		return
	}

	if len(args) == 1 {
		sc.r.Embed(effect.Embedded{Lang: sc.d.name, Text: args[0], Span: span, Offset: -1, Via: name})
	}
}

func (sc *scanner) paths(i, end int, kind effect.Kind, flags effect.Flag, via string) {
	args, stop, _ := sc.arguments(end)

	if kind != effect.Delete && len(args) > 1 {
		args = args[:1]
	}

	for _, a := range args {
		sc.r.Add(effect.Effect{Kind: kind, Span: effect.Span{Start: i, End: stop}, Target: a, Flags: flags, Via: via})
	}
}

// fork finds forks that nothing ends.
func (sc *scanner) fork(i, end int) {
	sc.budget.Spend(8)

	before := strings.TrimRight(sc.s[:i], " \t({")
	after := strings.TrimLeft(sc.s[end:], " \t();")

	endless := strings.HasPrefix(after, "while fork") || strings.HasPrefix(after, "while true") || strings.HasPrefix(after, "while 1") || strings.HasPrefix(after, "while(1)") ||
		strings.HasSuffix(before, "while") || strings.HasSuffix(before, "while(1)") || strings.HasSuffix(before, "loop") || strings.HasSuffix(before, "while true do") ||
		strings.HasSuffix(before, "loop do") || strings.HasSuffix(before, "while 1 do") || strings.HasSuffix(before, "while (1)") || strings.HasSuffix(before, "for(;;)") || strings.HasSuffix(before, "while(true)")

	flags := effect.Flag(0)
	if endless {
		flags = effect.FlagUnbounded
	}

	sc.r.Add(effect.Effect{Kind: effect.Spawn, Span: effect.Span{Start: i, End: end}, Flags: flags, Via: "fork"})
}
