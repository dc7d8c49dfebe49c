package program

import (
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// echo prints its arguments.
func echo(m *Machine, c *Call) effect.Value {
	args := c.Args
	escapes, newline := false, true

	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' && strings.Trim(args[0].Text[1:], "neE") == "" {
		for _, b := range args[0].Text[1:] {
			switch b {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}

		args = args[1:]
	}

	parts := make([]effect.Value, 0, 2*len(args)+1)

	for i, a := range args {
		if i > 0 {
			parts = append(parts, effect.Const(" "))
		}

		if escapes {
			a = unescapeValue(a)
		}

		parts = append(parts, a)
	}

	if newline {
		parts = append(parts, effect.Const("\n"))
	}

	if len(parts) == 0 {
		return effect.Value{}
	}

	return effect.Concat(parts...)
}

func unescapeValue(v effect.Value) effect.Value {
	if !strings.Contains(v.Text, `\`) {
		return v
	}

	out := v
	out.Text = Unescape(v.Text)

	if spellsText(v.Text) {
		out.Taint |= effect.TaintDecoded
	}

	return out
}

// spellsText says whether numeric escapes stand for letters, which plain text
// has no need of: "\\x72\\x6d" does, the escape of a colour does not.
func spellsText(s string) bool {
	n := 0

	for i := 0; i+3 < len(s) && n < 2; i++ {
		if s[i] != '\\' {
			continue
		}

		var code uint64

		switch c := s[i+1]; {
		case c == 'x':
			code, _ = strconv.ParseUint(s[i+2:i+4], 16, 8)
		case c >= '0' && c <= '7':
			end := i + 1
			for end < len(s) && end < i+5 && s[end] >= '0' && s[end] <= '7' {
				end++
			}

			code, _ = strconv.ParseUint(s[i+1:end], 8, 16)
		}

		if b := byte(code) | 0x20; b >= 'a' && b <= 'z' || code == '/' {
			n++
		}

		i++
	}

	return n >= 2
}

// Unescape resolves the backslash escapes of echo -e, printf and $'…'.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}

	var b strings.Builder

	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])

			continue
		}

		i++

		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a', 'b', 'f', 'v':
			b.WriteByte(' ')
		case 'e', 'E':
			b.WriteByte(0x1b)
		case '\\', '\'', '"', '?':
			b.WriteByte(s[i])
		case 'c':
			return b.String()
		case 'x':
			i += number(&b, s[i+1:], 16, 2)
		case 'u':
			i += number(&b, s[i+1:], 16, 4)
		case 'U':
			i += number(&b, s[i+1:], 16, 8)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			digits := 3
			if s[i] == '0' {
				digits = 4
			}

			i += number(&b, s[i:], 8, digits) - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}

	return b.String()
}

// number writes the character whose code stands at the start of s and returns
// how many digits it has.
func number(b *strings.Builder, s string, base, maxDigits int) int {
	n := 0
	for n < len(s) && n < maxDigits {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}

		n++
	}

	v, err := strconv.ParseUint(s[:n], base, 32)
	if err != nil {
		return n
	}

	if v < 256 && maxDigits <= 4 && base == 8 || v < 256 && maxDigits == 2 {
		if v != 0 {
			b.WriteByte(byte(v))
		}
	} else {
		b.WriteRune(rune(v))
	}

	return n
}

// printf formats its arguments: %s, %d, %b, %q, %x and %c are filled in, the
// format is used again while arguments are left.
func printf(m *Machine, c *Call) effect.Value {
	args := c.Args
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}

	if len(args) > 1 && args[0].Text == "-v" {
		args = args[2:]
	}

	if len(args) == 0 {
		return effect.Value{}
	}

	return Format(m.Budget, args[0], args[1:])
}

// Format is what printf prints.
func Format(budget *effect.Budget, format effect.Value, args []effect.Value) effect.Value {
	var parts []effect.Value

	for round := 0; round == 0 || len(args) > 0; round++ {
		used := 0
		f := format.Text

		for f != "" {
			if !budget.Spend(1) {
				return effect.Unknown(0)
			}

			i := strings.IndexByte(f, '%')
			if i < 0 {
				parts = append(parts, unescapeValue(withText(format, f)))

				break
			}

			if i > 0 {
				parts = append(parts, unescapeValue(withText(format, f[:i])))
			}

			j := i + 1
			for j < len(f) && strings.IndexByte("-+ #0123456789.*'l", f[j]) >= 0 {
				j++
			}

			if j >= len(f) {
				break
			}

			if f[j] == '%' {
				parts = append(parts, effect.Const("%"))
				f = f[j+1:]

				continue
			}

			var arg effect.Value
			if used < len(args) {
				arg = args[used]
				used++
			}

			parts = append(parts, formatOne(f[j], arg))
			f = f[j+1:]
		}

		if used == 0 {
			break
		}

		args = args[min(used, len(args)):]
	}

	if len(parts) == 0 {
		return effect.Value{}
	}

	return effect.Concat(parts...)
}

func formatOne(verb byte, arg effect.Value) effect.Value {
	switch verb {
	case 'b':
		return unescapeValue(arg)
	case 'c':
		if arg.IsConst() && arg.Text != "" {
			return withText(arg, arg.Text[:1])
		}
	case 'x', 'X', 'o':
		if n, err := strconv.ParseInt(arg.Text, 0, 64); err == nil {
			base := 16
			if verb == 'o' {
				base = 8
			}

			return withText(arg, strconv.FormatInt(n, base))
		}
	}

	return arg
}
