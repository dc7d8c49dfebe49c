package program

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"

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

func withText(v effect.Value, s string) effect.Value {
	v.Text = s

	return v
}

// input is what a filter reads: its file operands, or standard input.
func (m *Machine) input(c *Call, files []effect.Value) effect.Value {
	if len(files) == 0 {
		return c.Stdin
	}

	parts := make([]effect.Value, 0, len(files))

	for _, f := range files[:min(len(files), 64)] {
		if f.Text == "-" {
			parts = append(parts, c.Stdin)
		} else {
			parts = append(parts, m.Read(f, c.Span, c.Flags, Base(c.Name.Text)))
		}
	}

	return effect.Concat(parts...)
}

// opaque hides the text of a value and keeps its sources.
func opaque(v effect.Value) effect.Value {
	v.Text = effect.HoleText

	return v
}

// filter reads files or standard input and prints some of it. skip operands
// are not files (a pattern, a program).
func filter(short, long string, skip int) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, long)

		pos := o.pos
		if len(pos) < skip {
			pos = nil
		} else {
			pos = pos[skip:]
		}

		return opaque(m.input(c, pos))
	}
}

// grep is a filter; with -e or -f the first operand is a file.
func grep(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "efmABCdD", " regexp file max-count include exclude exclude-dir include-dir context after-context before-context color colour ")

	pos := o.pos
	if !o.has("e", "f", "regexp", "file") && len(pos) > 0 {
		pos = pos[1:]
	}

	if o.has("q", "quiet", "silent", "l", "L", "c", "count", "files-with-matches") {
		for _, p := range pos {
			m.Read(p, c.Span, c.Flags|effect.FlagQuiet, "grep")
		}

		return effect.Unknown(0)
	}

	return opaque(m.input(c, pos))
}

// cat prints whole files.
func cat(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "", "")

	return m.input(c, o.pos)
}

// tac and friends keep the text of one line.
func sameLine(short string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, " lines bytes key output ")

		v := m.input(c, o.pos)
		if strings.Contains(strings.TrimRight(v.Text, "\n"), "\n") && len(v.Text) > 4096 {
			return opaque(v)
		}

		return v
	}
}

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

// decoder turns an encoding back when its flags say so, and encodes otherwise.
func decoder(kind string, decode func(string) (string, bool), encode func(string) string, short, flags string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, short, " wrap ")

		v := m.input(c, o.pos)
		decoding := flags == ""

		for f := range strings.FieldsSeq(flags) {
			decoding = decoding || o.has(f)
		}

		if !decoding {
			if v.IsConst() && encode != nil {
				return withText(v, encode(v.Text)+"\n").With(effect.TaintEncoded)
			}

			return opaque(v).With(effect.TaintEncoded)
		}

		out := opaque(v)
		if v.IsConst() && decode != nil {
			if text, ok := decode(v.Text); ok {
				out.Text = text
			}
		}

		out.Taint |= effect.TaintDecoded
		m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(kind), Data: out})

		return out
	}
}

func decodeBase64(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '+', r == '/':
			return r
		case r == '-':
			return '+'
		case r == '_':
			return '/'
		}

		return -1
	}, s)

	b, err := base64.RawStdEncoding.DecodeString(s[:len(s)/4*4+min(len(s)%4, 3)])
	if err != nil {
		if b, err = base64.RawStdEncoding.DecodeString(s[:len(s)/4*4]); err != nil {
			return "", false
		}
	}

	return string(b), true
}

func encodeBase64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func decodeBase32(s string) (string, bool) {
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(s)

	return string(b), err == nil
}

func decodeHex(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'f', r >= 'A' && r <= 'F':
			return r
		}

		return -1
	}, strings.ReplaceAll(s, "0x", ""))
	b, err := hex.DecodeString(s[:len(s)/2*2])

	return string(b), err == nil
}

// xxd dumps, or with -r turns a dump back.
func xxd(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "cglosn", "")
	v := m.input(c, o.pos)

	if o.has("r", "revert") {
		out := opaque(v).With(effect.TaintDecoded)

		if v.IsConst() {
			if text, ok := decodeHex(v.Text); ok {
				out.Text = text
			}
		}

		m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const("hex"), Data: out})

		return out
	}

	if v.IsConst() && o.has("p", "ps", "plain") {
		return withText(v, hex.EncodeToString([]byte(v.Text))+"\n")
	}

	return opaque(v)
}

// opensslModel decodes, encrypts, connects.
func opensslModel(m *Machine, c *Call) effect.Value {
	if len(c.Args) == 0 {
		return effect.Unknown(0)
	}

	var in effect.Value = c.Stdin

	out := effect.Value{}
	decode, host := false, effect.Value{}

	for i, a := range c.Args {
		switch a.Text {
		case "-d", "-decrypt":
			decode = true
		case "-in":
			if i+1 < len(c.Args) {
				in = m.Read(c.Args[i+1], c.Span, c.Flags, "openssl")
			}
		case "-out":
			if i+1 < len(c.Args) {
				out = c.Args[i+1]
			}
		case "-connect":
			if i+1 < len(c.Args) {
				host = c.Args[i+1]
			}
		}
	}

	res := opaque(in)

	switch sub := c.Args[0].Text; {
	case sub == "s_client":
		m.connect(c, host, effect.Value{})

		if c.Piped {
			m.add(c, effect.Effect{Kind: effect.Send, Target: host, Data: c.Stdin})
		}

		return effect.Unknown(0).From(effect.TaintNetwork, host.Text)
	case (sub == "base64" || sub == "enc") && decode:
		if text, ok := decodeBase64(in.Text); ok && in.IsConst() && (sub == "base64" || hasWord(c.Args, "-base64") || hasWord(c.Args, "-a")) {
			res.Text = text
		}

		res.Taint |= effect.TaintDecoded
		m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(sub), Data: res})
	case sub == "base64" && in.IsConst():
		res.Text = encodeBase64(in.Text)
	case sub == "rand":
		res = effect.Unknown(effect.TaintRandom)
	case sub == "genrsa" || sub == "req" || sub == "x509" || sub == "version" || sub == "passwd":
		res = effect.Unknown(0)
	}

	if !out.IsEmpty() {
		m.Write(out, res, c.Span, c.Flags, "openssl")

		return effect.Unknown(0)
	}

	return res
}

func hasWord(args []effect.Value, word string) bool {
	for _, a := range args {
		if a.Text == word {
			return true
		}
	}

	return false
}

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

	return opaque(m.input(c, files))
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
