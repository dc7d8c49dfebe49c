package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// cellLanguages are the %%cells whose body is another language, and the lines
// that name it.
var cellLanguages = map[string]string{
	"bash": "bash", "sh": "bash", "system": "bash", "sx": "bash", "!": "bash", "python": "python",
	"python3": "python", "python2": "python", "pypy": "python", "perl": "perl", "ruby": "ruby",
	"javascript": "javascript", "js": "javascript", "R": "r", "sql": "sql",
}

// followMagic follows what a notebook adds to Python: !cmd, %magic, %%cell.
func followMagic(m *flow.Machine, id tree.ID) flow.Value {
	n := *m.T.At(id)
	text := m.T.Src[n.Start:n.End]

	if strings.HasPrefix(text, "%%") {
		return followCell(m, id, text)
	}

	// A continued line is one line.
	line := strings.NewReplacer("\\\r\n", " ", "\\\n", " ", "\\\r", " ").Replace(text)

	switch line[0] {
	case '!':
		line = strings.TrimPrefix(line[1:], "!")
		embedMagic(m, id, "bash", line, "!")

		return flow.Tainted(effect.TaintOutput, "")
	case '%':
		return lineMagic(m, id, strings.TrimSpace(line[1:]))
	case ';', ',', '/':
		// ;f text, ,f a b, /f a: a call.
		name, rest, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
		f := m.EvalText(parse(name))

		var args []flow.Value

		switch line[0] {
		case ';':
			args = append(args, flow.Text(strings.TrimSpace(rest)))
		case ',':
			for w := range strings.FieldsSeq(rest) {
				args = append(args, flow.Text(w))
			}

			m.Copied(len(args))
		default:
			for w := range strings.FieldsSeq(rest) {
				if m.Over() {
					break
				}

				args = append(args, m.EvalText(parse(w)))
			}
		}

		return m.CallValue(f, id, args...)
	default: // a magic that nothing marks
		return lineMagic(m, id, line)
	}
}

// embedMagic reports a magic's text as code; {expression} and $name in shell
// text are the notebook's.
func embedMagic(m *flow.Machine, id tree.ID, lang, text, via string) {
	v := flow.Text(text)
	if lang == "bash" {
		v = interpolate(m, text)
	}

	n := m.T.At(id)
	e := effect.Embedded{
		Lang: lang, Text: v.Value(), Offset: -1, Via: via,
		Span: effect.Span{Start: int(n.Start), End: int(n.End)},
	}

	if i := strings.Index(m.T.Src[n.Start:n.End], e.Text.Text); i >= 0 && e.Text.Text != "" {
		e.Offset = int(n.Start) + i
	}

	m.R.Embed(e)
}

// interpolate puts Python variables into shell text.
func interpolate(m *flow.Machine, text string) flow.Value {
	if !strings.ContainsAny(text, "{$") {
		return flow.Text(text)
	}

	out := flow.Text("")

	for text != "" {
		i := strings.IndexAny(text, "{$")
		if i < 0 {
			break
		}

		out = m.Operate('+', out, flow.Text(text[:i]), 0)
		text = text[i:]

		if text[0] == '{' {
			end := strings.IndexByte(text, '}')
			if end < 2 || strings.HasPrefix(text, "{{") {
				out = m.Operate('+', out, flow.Text(text[:1]), 0)
				text = text[1:]

				continue
			}

			expr := text[1:end]

			v := m.EvalText(parse(expr))
			if !v.IsText() && v.Kind != flow.Int {
				// Braces may well be the shell's own.
				v = flow.Text(text[:end+1])
			}

			out = m.Operate('+', out, v, 0)
			text = text[end+1:]

			continue
		}

		j := 1
		for j < len(text) && identByte[text[j]] {
			j++
		}

		v := flow.Text(text[:j])
		if w := m.Name(text[1:j]); w.IsText() || w.Kind == flow.Int {
			v = w
		}

		out = m.Operate('+', out, v, 0)
		text = text[j:]
	}

	return m.Operate('+', out, flow.Text(text), 0)
}

func followCell(m *flow.Machine, id tree.ID, text string) flow.Value {
	head, body := cutLine(text)
	head = strings.TrimSpace(strings.TrimPrefix(head, "%%"))
	name, args, _ := strings.Cut(head, " ")

	switch lang, ok := cellLanguages[name]; {
	case ok:
		embedMagic(m, id, lang, body, "%%"+name)

		if words := scriptWords(args); len(words) > 0 && name != "system" && name != "sx" && name != "!" {
			embedMagic(m, id, "bash", name+" "+strings.Join(words, " "), "%%"+name)
		}
	case name == "script":
		words := scriptWords(args)
		if len(words) == 0 {
			break
		}

		program := words[0][strings.LastIndexByte(words[0], '/')+1:]
		if lang, ok := cellLanguages[program]; ok {
			embedMagic(m, id, lang, body, "%%script")

			break
		}

		embedMagic(m, id, "bash", strings.Join(words, " ")+" <<'EOF'\n"+body+"\nEOF\n", "%%script")
	case name == "writefile" || name == "file":
		path := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(args), "-a"))
		m.EmitAt(id, effect.Effect{
			Kind: effect.Write, Target: effect.Const(path), Data: effect.Const(body), Via: "%%writefile",
		})
	case name == "html" || name == "HTML" || name == "latex" || name == "markdown" || name == "svg":
	default:
		// %%time, %%timeit, %%capture, %%prun and unknown ones: the body is Python.
		if name == "timeit" || name == "prun" || name == "time" {
			embedMagic(m, id, "python", dropOptions(args), "%%"+name)
		}

		embedMagic(m, id, "python", body, "%%"+name)

		if !pythonCells[name] {
			embedMagic(m, id, "bash", body, "%%"+name) // %alias_magic gives the shell's cells other names
		}
	}

	return flow.Value{}
}

// pythonCells are the cells whose body is Python for sure.
var pythonCells = map[string]bool{"time": true, "timeit": true, "prun": true, "capture": true, "debug": true, "memit": true, "mprun": true, "lprun": true}

// scriptWords are the words of a script cell's line after its options.
func scriptWords(args string) []string {
	words := strings.Fields(args)
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		option := words[0]
		words = words[1:]

		if (option == "--out" || option == "--err" || option == "--proc") && len(words) > 0 {
			words = words[1:]
		}
	}

	return words
}

func dropOptions(args string) string {
	args = strings.TrimSpace(args)

	for strings.HasPrefix(args, "-") {
		_, rest, _ := strings.Cut(args, " ")
		args = strings.TrimSpace(rest)
	}

	return args
}

func lineMagic(m *flow.Machine, id tree.ID, line string) flow.Value {
	name, args := cutName(line)

	switch name {
	case "sc":
		_, cmd, _ := strings.Cut(args, "=")
		embedMagic(m, id, "bash", cmd, "%sc")
	case "system", "sx", "bash", "sh":
		embedMagic(m, id, "bash", args, "%"+name)
	case "alias":
		_, cmd, _ := strings.Cut(args, " ")
		embedMagic(m, id, "bash", cmd, "%alias")
	case "time", "timeit", "prun", "memit", "mprun", "lprun", "debug":
		embedMagic(m, id, "python", dropOptions(args), "%"+name)
	case "matplotlib", "pylab", "load_ext", "reload_ext", "unload_ext", "autoreload", "config", "precision", "reset", "who", "whos":
	case "run":
		m.EmitAt(id, effect.Effect{
			Kind: effect.Exec, Target: effect.Const("python"), Args: words(dropOptions(args)), Via: "%run",
		})
	case "load", "loadpy":
		m.EmitAt(id, effect.Effect{Kind: effect.Read, Target: effect.Const(dropOptions(args)), Via: "%load"})
		m.EmitAt(id, effect.Effect{Kind: effect.Load, Target: effect.Const(dropOptions(args)), Lang: "python", Via: "%load"})
	case "env", "set_env":
		key, value, set := strings.Cut(args, "=")
		if !set {
			key, value, set = strings.Cut(args, " ")
		}

		e := effect.Effect{Kind: effect.Env, Target: effect.Const(strings.TrimSpace(key)), Via: "%env"}
		if set {
			e.Kind, e.Data = effect.SetEnv, effect.Const(strings.TrimSpace(value))
		}

		m.EmitAt(id, e)
	default:
		// These run the program of that name, as do those that %alias and %rehashx
		// make; %alias_magic gives the shell's magics other names.
		embedMagic(m, id, "bash", line, "%"+name)

		if !autoMagics[name] {
			embedMagic(m, id, "bash", args, "%"+name)
		}
	}

	return flow.Value{}
}

func words(s string) []effect.Value {
	var out []effect.Value
	for w := range strings.FieldsSeq(s) {
		out = append(out, effect.Const(w))
	}

	return out
}
