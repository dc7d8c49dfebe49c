package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// sed is a filter whose program may write and run; with -i it rewrites files.
func sed(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "efl", " expression file line-length ")

	scripts := o.vals("e", "expression")
	pos := o.pos

	if len(scripts) == 0 && !o.has("f", "file") && len(pos) > 0 {
		scripts, pos = pos[:1], pos[1:]
	}

	if o.has("i", "in-place") || hasInPlace(&o) {
		for _, p := range pos {
			data := effect.Unknown(0)
			if len(scripts) > 0 {
				data = scripts[0]
			}

			m.add(c, effect.Effect{Kind: effect.Write, Target: p, Data: data, Flags: effect.FlagAppend, Via: "sed -i"})
		}

		return effect.Value{}
	}

	v := m.input(c, pos)

	for _, s := range scripts {
		if strings.HasSuffix(strings.TrimSpace(s.Text), "/e") || s.Text == "e" || strings.HasPrefix(s.Text, "1e ") {
			if cmd, ok := strings.CutPrefix(s.Text, "1e "); ok {
				m.runText(c, withText(s, cmd), "bash", "sed e")
			} else {
				m.runText(c, v, "bash", "sed e")
			}
		}

		v = substitute(v, s.Text)
	}

	return v
}

func hasInPlace(o *options) bool {
	for _, f := range o.flags {
		if strings.HasPrefix(f.name, "in-place") {
			return true
		}
	}

	return false
}

// substitute applies s/a/b/g where a is plain text; else the text is unknown.
func substitute(v effect.Value, script string) effect.Value {
	if !v.IsConst() || len(script) < 4 || script[0] != 's' {
		return opaque(v)
	}

	parts := strings.Split(script[2:], script[1:2])
	if len(parts) != 3 || strings.ContainsAny(parts[0], `.*[]^$\+?(){}|`) || strings.ContainsAny(parts[1], `\&`) || parts[0] == "" {
		return opaque(v)
	}

	n := 1
	if strings.Contains(parts[2], "g") {
		n = -1
	}

	return withText(v, strings.Replace(v.Text, parts[0], parts[1], n))
}

// awk runs a program text that may start commands.
func awk(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "Fvf", " file field-separator assign ")

	pos := o.pos
	if !o.has("f", "file") && len(pos) > 0 {
		awkProgram(m, c, pos[0])
		pos = pos[1:]
	}

	files := pos[:0:0]

	for _, p := range pos {
		if !isAssignment(p.Text) {
			files = append(files, p)
		}
	}

	if len(files) == 0 && !c.Piped {
		return effect.Unknown(0)
	}

	v := opaque(m.input(c, files))
	if v.Ref == AllProcesses && len(o.pos) > 0 && strings.ContainsAny(o.pos[0].Text, "/=~<>") {
		v.Ref = ""
	}

	return v
}

// awkProgram finds what an awk program runs: system("…"), print | "…",
// "…" | getline, and its sockets.
func awkProgram(m *Machine, c *Call, prog effect.Value) {
	s := prog.Text

	if i := strings.Index(s, "/inet/"); i >= 0 {
		m.connect(c, effect.Const(strings.Trim(s[i:min(len(s), i+60)], `"`)), effect.Value{})

		if strings.Contains(s, "getline") {
			m.add(c, effect.Effect{Kind: effect.Eval, Lang: "bash", Data: effect.Unknown(effect.TaintNetwork), Via: "awk"})
		}
	}

	for i := 0; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}

		end := i + 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}

			end++
		}

		if end >= len(s) {
			return
		}

		before := strings.TrimRight(s[:i], " \t")
		after := strings.TrimLeft(s[end+1:], " \t")

		if strings.HasSuffix(before, "system(") || strings.HasSuffix(before, "|") && !strings.HasSuffix(before, "||") ||
			strings.HasPrefix(after, "| getline") || strings.HasPrefix(after, "|getline") {
			m.runText(c, effect.Const(Unescape(s[i+1:end])), "bash", "awk")
		}

		i = end
	}
}
