package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// xargs runs a command on what it reads.
func xargs(m *Machine, c *Call) effect.Value {
	args := c.Args
	token := ""
	i := 0

	for i < len(args) {
		a := args[i].Text

		if len(a) < 2 || a[0] != '-' {
			break
		}

		switch {
		case a == "-I" || a == "--replace":
			token = "{}"

			if a == "-I" && i+1 < len(args) {
				i++
				token = args[i].Text
			}
		case strings.HasPrefix(a, "-I"), strings.HasPrefix(a, "-i") && len(a) > 2:
			token = a[2:]
		case a == "-i":
			token = "{}"
		case strings.HasPrefix(a, "--replace="):
			token = a[len("--replace="):]
		case a == "-n" || a == "-P" || a == "-d" || a == "-a" || a == "-L" || a == "-s" || a == "-E" || a == "-J" || a == "-R" ||
			a == "--max-args" || a == "--max-procs" || a == "--delimiter" || a == "--arg-file" || a == "--max-lines" || a == "--eof" || a == "--max-chars":
			i++
		}

		i++
	}

	if i >= len(args) {
		return c.Stdin
	}

	words := args[i:]
	in := m.items(c.Stdin)

	if token != "" {
		// With a token an item is a line.
		for line := range strings.SplitSeq(strings.TrimSuffix(c.Stdin.Text, "\n"), "\n") {
			if len(in) >= maxItems {
				break
			}

			if strings.ContainsAny(line, " \t") {
				in = append(in, withText(c.Stdin, line))
			}
		}

		for _, item := range in {
			m.runWith(c, words, token, item)
		}

		return effect.Unknown(effect.TaintOutput | c.Stdin.Taint)
	}

	flags := c.Flags
	if c.Stdin.Ref == everythingRef {
		flags |= effect.FlagLoop
	}

	return m.start(Call{
		Name: words[0], Args: append(append([]effect.Value{}, words[1:]...), in...), Stdin: effect.Unknown(0), Span: c.Span,
		Flags: flags,
	})
}

// maxItems bounds how many words of a list are run one by one.
const maxItems = 24

// items splits what a program reads into words.
func (m *Machine) items(v effect.Value) []effect.Value {
	if v.IsUnknown() {
		return []effect.Value{v}
	}

	fields := strings.FieldsFunc(v.Text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == 0 })
	out := make([]effect.Value, 0, min(len(fields), maxItems))

	for _, f := range fields[:min(len(fields), maxItems)] {
		w := v
		w.Text = strings.Trim(f, `"'`)
		out = append(out, w)
	}

	return out
}

// parallel runs a command on each of its inputs.
func parallel(m *Machine, c *Call) effect.Value {
	var words, inputs []effect.Value

	i := 0
	for i < len(c.Args) && strings.HasPrefix(c.Args[i].Text, "-") {
		switch c.Args[i].Text {
		case "-j", "-N", "-n", "-I", "-a", "--jobs", "--delay", "--timeout", "--colsep":
			i++
		}

		i++
	}

	for ; i < len(c.Args); i++ {
		if strings.HasPrefix(c.Args[i].Text, ":::") {
			inputs = c.Args[i+1:]

			break
		}

		words = append(words, c.Args[i])
	}

	if inputs == nil {
		inputs = m.items(c.Stdin)
	}

	for _, in := range inputs[:min(len(inputs), maxItems)] {
		if len(words) == 0 {
			m.runText(c, in, "bash", "parallel")

			continue
		}

		text := make([]effect.Value, 0, 2*len(words)+1)
		seen := false

		for _, w := range words {
			if strings.Contains(w.Text, "{}") {
				seen = true
				v := in
				v.Text = strings.ReplaceAll(w.Text, "{}", in.Text)
				w = v
			}

			text = append(text, w, effect.Const(" "))
		}

		if !seen {
			text = append(text, in)
		}

		m.runText(c, effect.Concat(text...), "bash", "parallel")
	}

	return effect.Unknown(effect.TaintOutput)
}

// joined runs the operands, joined by blanks, as shell text (watch, ssh host).
func joined(short, long string, skip int, flags effect.Flag) model {
	return func(m *Machine, c *Call) effect.Value {
		pos := operandsUntilCommand(c.Args, short, long)
		if len(pos) <= skip {
			return effect.Unknown(effect.TaintOutput)
		}

		parts := make([]effect.Value, 0, 2*len(pos))
		for i, p := range pos[skip:] {
			if i > 0 {
				parts = append(parts, effect.Const(" "))
			}

			parts = append(parts, p)
		}

		inner := *c
		inner.Flags |= flags

		return m.runText(&inner, effect.Concat(parts...), "bash", Base(c.Name.Text))
	}
}

// operandsUntilCommand drops leading options only.
func operandsUntilCommand(args []effect.Value, short, long string) []effect.Value {
	var pos []effect.Value

	for i := 0; i < len(args); i++ {
		a := args[i].Text

		switch {
		case len(pos) > 0:
			// An option after the first operand still belongs to ssh; after the
			// second it belongs to the command.
			if len(pos) == 1 && len(a) == 2 && a[0] == '-' && strings.IndexByte(short, a[1]) >= 0 {
				i++

				continue
			}

			return append(pos, args[i:]...)
		case a == "--":
		case strings.HasPrefix(a, "--"):
			if strings.Contains(long, " "+a[2:]+" ") {
				i++
			}
		case len(a) > 1 && a[0] == '-':
			if j := strings.IndexAny(a[1:], short); j >= 0 && j+2 == len(a) {
				i++
			}
		default:
			pos = append(pos, args[i])
		}
	}

	return pos
}

// codeOption runs the value of an option as shell text.
func codeOption(names string) model {
	return func(m *Machine, c *Call) effect.Value {
		for i, a := range c.Args {
			for name := range strings.FieldsSeq(names) {
				if a.Text == name && i+1 < len(c.Args) {
					return m.runText(c, c.Args[i+1], "bash", Base(c.Name.Text)+" "+name)
				}

				if len(name) == 2 && len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-' && a.Text[len(a.Text)-1] == name[1] && i+1 < len(c.Args) {
					return m.runText(c, c.Args[i+1], "bash", Base(c.Name.Text)+" "+name)
				}

				if v, ok := strings.CutPrefix(a.Text, name+"="); ok {
					w := a
					w.Text = v

					return m.runText(c, w, "bash", Base(c.Name.Text)+" "+name)
				}
			}
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// schedule is at and batch: what they read runs later.
func schedule(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "fqt", "")
	if file, ok := o.val("f"); ok {
		c.Stdin, c.Piped = m.Read(file, c.Span, c.Flags, "at"), true
	} else if o.has("l", "q", "r", "d", "c") || !c.Piped {
		return effect.Unknown(effect.TaintOutput)
	}

	m.add(c, effect.Effect{Kind: effect.Schedule, Target: effect.Const("at"), Data: c.Stdin})

	if !c.Stdin.IsUnknown() {
		m.runText(c, c.Stdin, "bash", "at")
	}

	return effect.Unknown(effect.TaintOutput)
}
