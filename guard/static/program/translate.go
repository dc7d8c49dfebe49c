package program

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// rev turns each line round.
func rev(m *Machine, c *Call) effect.Value {
	v := m.input(c, c.Args)
	if !v.IsConst() {
		return opaque(v).With(effect.TaintDecoded)
	}

	lines := strings.Split(v.Text, "\n")

	for i, l := range lines {
		r := []rune(l)
		for a, b := 0, len(r)-1; a < b; a, b = a+1, b-1 {
			r[a], r[b] = r[b], r[a]
		}

		lines[i] = string(r)
	}

	return withText(v, strings.Join(lines, "\n")).With(effect.TaintDecoded)
}

// tr maps characters.
// rot13 is the program of BSD's games, as tr would do it.
func rot13(m *Machine, c *Call) effect.Value {
	as := *c
	as.Args = []effect.Value{effect.Const("A-Za-z"), effect.Const("N-ZA-Mn-za-m")}

	return tr(m, &as)
}

func tr(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "", "")
	v := c.Stdin

	if !v.IsConst() || len(o.pos) == 0 {
		return opaque(v)
	}

	from := trSet(o.pos[0].Text)

	switch {
	case o.has("d", "delete"):
		return withText(v, strings.Map(func(r rune) rune {
			if strings.ContainsRune(from, r) != o.has("c", "C", "complement") {
				return -1
			}

			return r
		}, v.Text))
	case len(o.pos) < 2:
		return v
	}

	to := []rune(trSet(o.pos[1].Text))
	if len(to) == 0 || o.has("c", "C", "complement") {
		return opaque(v)
	}

	index := map[rune]rune{}

	for i, r := range []rune(from) {
		index[r] = to[min(i, len(to)-1)]
	}

	out := withText(v, strings.Map(func(r rune) rune {
		if t, ok := index[r]; ok {
			return t
		}

		return r
	}, v.Text))

	// A substitution of the alphabet hides text; one of separators does not.
	letters := 0

	for r, t := range index {
		if unicode.IsLetter(r) && unicode.IsLetter(t) && unicode.ToLower(r) != unicode.ToLower(t) {
			letters++
		}
	}

	if letters >= 8 || unicode.IsLetter(firstRune(v.Text)) && letters > 0 {
		out.Taint |= effect.TaintDecoded
	}

	return out
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}

	return 0
}

// trSet expands ranges and classes.
func trSet(s string) string {
	s = strings.NewReplacer("[:lower:]", "a-z", "[:upper:]", "A-Z", "[:digit:]", "0-9", "[:alpha:]", "A-Za-z", "[:alnum:]", "A-Za-z0-9",
		"[:space:]", " \t\n\r", "[:punct:]", "!-/:-@[-`{-~").Replace(s)
	s = Unescape(s)

	r := []rune(s)

	var b strings.Builder

	for i := 0; i < len(r); i++ {
		if i+2 < len(r) && r[i+1] == '-' && r[i] <= r[i+2] && r[i+2]-r[i] < 256 {
			for x := r[i]; x <= r[i+2]; x++ {
				b.WriteRune(x)
			}

			i += 2

			continue
		}

		b.WriteRune(r[i])
	}

	return b.String()
}

// cut keeps characters or fields.
func cut(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "cbfd", " characters bytes fields delimiter output-delimiter ")
	v := m.input(c, o.pos)

	if !v.IsConst() {
		return opaque(v)
	}

	delim := "\t"
	if d, ok := o.val("d", "delimiter"); ok {
		delim = d.Text
	}

	spec, chars := o.val("c", "b", "characters", "bytes")
	if !chars {
		spec, _ = o.val("f", "fields")
	}

	lines := strings.Split(strings.TrimSuffix(v.Text, "\n"), "\n")
	for i, l := range lines {
		if chars {
			lines[i] = pick(strings.Split(l, ""), spec.Text, "")
		} else if strings.Contains(l, delim) {
			lines[i] = pick(strings.Split(l, delim), spec.Text, delim)
		}
	}

	return withText(v, strings.Join(lines, "\n")+"\n")
}

func pick(parts []string, spec, sep string) string {
	var out []string

	for r := range strings.SplitSeq(spec, ",") {
		a, b, isRange := strings.Cut(r, "-")
		from, err := strconv.Atoi(a)

		if err != nil {
			from = 1
		}

		to, err := strconv.Atoi(b)

		switch {
		case !isRange:
			to = from
		case err != nil:
			to = len(parts)
		}

		for i := max(from, 1); i <= to && i <= len(parts); i++ {
			out = append(out, parts[i-1])
		}
	}

	return strings.Join(out, sep)
}

// seq prints numbers.
func seq(m *Machine, c *Call) effect.Value {
	var nums []int

	for _, a := range c.Args {
		if n, err := strconv.Atoi(a.Text); err == nil {
			nums = append(nums, n)
		}
	}

	from, step, to := 1, 1, 0

	switch len(nums) {
	case 1:
		to = nums[0]
	case 2:
		from, to = nums[0], nums[1]
	case 3:
		from, step, to = nums[0], nums[1], nums[2]
	default:
		return effect.Unknown(0)
	}

	if step <= 0 || (to-from)/step > 16 {
		return effect.Value{Text: effect.HoleText, Ref: ManyRef + strconv.Itoa(max((to-from)/max(step, 1), 0))}
	}

	var b strings.Builder

	for n := from; n <= to; n += step {
		b.WriteString(strconv.Itoa(n))
		b.WriteByte('\n')
	}

	return effect.Const(b.String())
}

// ManyRef starts the Ref of a value that stands for many numbers; how many
// follows in decimal.
const ManyRef = "many:"
