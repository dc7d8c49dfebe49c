package scripting

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// maxMakeText bounds what one line of a Makefile may expand to, in bytes, and
// maxMakeDepth how deeply variables may name each other.
const (
	maxMakeText  = 64 << 10
	maxMakeDepth = 16
)

// makefile is a Makefile while it is read.
type makefile struct {
	r    effect.Result
	b    *effect.Budget
	vars map[string]string
	// span is that of the line being read.
	span effect.Span
	// recipe are the lines of one rule.
	recipe strings.Builder
	start  int
}

// ParseMake reads the recipes of a Makefile, and what it runs while it is read:
// $(shell …) and "!=".
func ParseMake(text string, b *effect.Budget) effect.Result {
	m := &makefile{b: b, vars: map[string]string{"MAKE": "make", "RM": "rm -f"}}
	prefix, define := "\t", ""

	for at := 0; at < len(text); {
		start := at
		if !b.Spend(1) {
			m.r.Note(effect.NoteBudget, start, "out of steps")

			return m.r
		}

		var line string

		line, at = logicalLine(text, at)
		m.span = effect.Span{Start: start, End: at}

		switch name, isDefine := strings.CutPrefix(strings.TrimSpace(line), "define "); {
		case define != "" && strings.TrimSpace(line) == "endef":
			define = ""
		case define != "":
			m.vars[define] += strings.TrimLeft(line, "\t") + "\n"
		case isDefine:
			define, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			m.vars[define] = ""
		case strings.HasPrefix(line, prefix):
			m.command(line[len(prefix):], start)
		case strings.TrimSpace(line) == "", strings.HasPrefix(strings.TrimSpace(line), "#"):
		default:
			m.flush(start)
			m.statement(line, start)

			if p := m.vars[".RECIPEPREFIX"]; p != "" {
				prefix = p[:1]
			}
		}
	}

	m.flush(len(text))

	return m.r
}

// logicalLine is the line at a position with those that continue it.
func logicalLine(text string, at int) (string, int) {
	start := at

	for at < len(text) {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text[start:], len(text)
		}

		at += i + 1
		if !strings.HasSuffix(strings.TrimRight(text[start:at], "\r\n"), `\`) {
			break
		}
	}

	return strings.TrimRight(text[start:at], "\r\n"), at
}

// command takes a line of a recipe.
func (m *makefile) command(line string, start int) {
	line = strings.TrimLeft(m.expand(line, 0), "@-+ \t")
	if line == "" {
		return
	}

	if m.recipe.Len() == 0 {
		m.start = start
	}

	// Each line has a shell of its own: where one goes is forgotten.
	if strings.Contains(line, "cd ") {
		line = "(" + line + "\n)"
	}

	m.recipe.WriteString(line + "\n")
}

// flush embeds the recipe that ends.
func (m *makefile) flush(end int) {
	embedBuild(&m.r, m.recipe.String(), effect.Span{Start: m.start, End: end}, -1, "make")
	m.recipe.Reset()
}

// statement reads an assignment or the head of a rule.
func (m *makefile) statement(line string, start int) {
	line = strings.ReplaceAll(line, "\\\n", " ")
	eq, colon := strings.IndexByte(line, '='), strings.IndexByte(line, ':')

	if eq > 0 && (colon < 0 || colon > eq || strings.Trim(line[colon:eq], ":") == "") {
		op := strings.TrimRight(line[:eq], ":?+!")
		m.assign(op, line[len(op):eq], strings.TrimLeft(line[eq+1:], " \t"))

		return
	}

	if semi := strings.IndexByte(line, ';'); colon >= 0 && semi > colon {
		m.expand(line[:semi], 0)
		m.command(line[semi+1:], start)

		return
	}

	m.expand(line, 0)
}

func (m *makefile) assign(name, op, value string) {
	fields := strings.Fields(name)
	if len(fields) == 0 {
		return
	}

	name = fields[len(fields)-1]

	switch op {
	case "!":
		embedBuild(&m.r, m.expand(value, 0), m.span, -1, "make")
		m.vars[name] = effect.HoleText
	case "+":
		if len(m.vars[name])+len(value) < maxMakeText {
			m.vars[name] += " " + value
		}
	case "?":
		if _, ok := m.vars[name]; !ok {
			m.vars[name] = value
		}
	default:
		// A value that names itself is expanded once; others when they are used.
		if op != "" {
			value = strings.ReplaceAll(m.expand(value, 0), "$", "$$")
		}

		m.vars[name] = value
	}

	// What a value runs is judged whether or not a recipe uses it.
	if strings.Contains(value, "$(shell") || strings.Contains(value, "${shell") {
		m.expand(value, 0)
	}
}

// expand puts in the values of variables; what is not known is a hole.
func (m *makefile) expand(s string, depth int) string {
	if !strings.Contains(s, "$") {
		return s
	}

	if depth > maxMakeDepth || !m.b.Spend(1+len(s)/64) {
		return effect.HoleText
	}

	var out strings.Builder

	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			out.WriteByte(s[i])

			continue
		}

		i++

		switch s[i] {
		case '$':
			out.WriteByte('$')
		case '(', '{':
			end := closing(s, i)
			out.WriteString(m.reference(s[i+1:end], depth))
			i = end
		default:
			out.WriteString(m.reference(s[i:i+1], depth))
		}

		if out.Len() > maxMakeText {
			m.r.Note(effect.NoteBudget, m.span.Start, "out of steps")

			return effect.HoleText
		}
	}

	return out.String()
}

// reference is the value of $(…): a variable or a function.
func (m *makefile) reference(ref string, depth int) string {
	name, args, isCall := strings.Cut(ref, " ")

	if isCall {
		args = m.expand(args, depth+1)

		if name == "shell" {
			embedBuild(&m.r, args, m.span, -1, "make")
		}

		return effect.HoleText
	}

	if v, ok := m.vars[name]; ok {
		return m.expand(v, depth+1)
	}

	// A variable that is not set here is the environment's.
	if name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" && strings.Trim(name[:1], "0123456789") != "" {
		return "${" + name + "}"
	}

	m.expand(name, depth+1)

	return effect.HoleText
}

// closing is the position of the bracket that closes the one at a position, or
// the end.
func closing(s string, at int) int {
	open, shut := s[at], byte(')')
	if open == '{' {
		shut = '}'
	}

	level := 0

	for i := at; i < len(s); i++ {
		switch s[i] {
		case open:
			level++
		case shut:
			level--
		}

		if level == 0 {
			return i
		}
	}

	return len(s)
}
