package pty

import (
	"slices"
	"strconv"
	"unicode"
)

// maxLine bounds the line that is being typed, in characters.
const maxLine = 64 << 10

// act is what a key does besides editing.
type act uint8

const (
	edits     act = iota
	accepts       // runs the line
	interrupt     // gives the line up, or takes it from a program that is stopped
	ends          // end of input, on an empty line
	expands       // may run what the line substitutes, before the line itself runs
	escapes       // makes something run that nobody typed
)

// editor is the line as readline holds it, in its emacs mode and as bash binds
// the keys. What a key does to the line that cannot be known from the keys alone
// (history, completion, undo) makes the line unknown, until it is run or given
// up: a completion may be asking a question that swallows the keys after it.
type editor struct {
	buf     []rune
	cur     int
	unknown bool
	// vi is readline's other mode: what its commands do is not followed.
	vi, viCommand bool
	viWait        string // keys that the next one completes to a command of vi's mode
	// wide says that what is typed is read as UTF-8; otherwise a character outside
	// ASCII is several keys, and commands.
	wide bool

	kill     []rune
	killed   bool // the last key cut text, so that the next cut adds to it
	killing  bool // only text was typed since: readline then forgets the cut or not, as fast as the keys come
	doubtful bool // what was cut is not known
	prefix   string
	arg      string // numeric argument
	hasArg   bool
	inPaste  bool
	wait     byte // what the next key is for: 'v' quoted insert, ']' or '[' character search
}

func (e *editor) clone() editor {
	c := *e
	c.buf, c.kill = slices.Clone(e.buf), slices.Clone(e.kill)
	return c
}

func (e *editor) text() string { return string(e.buf) }

// reset empties the line; what was cut stays.
func (e *editor) reset() {
	*e = editor{kill: e.kill, doubtful: e.doubtful, vi: e.vi, wide: e.wide}
}

func (e *editor) insert(r ...rune) {
	if len(e.buf)+len(r) > maxLine {
		e.unknown = true
		return
	}
	for _, c := range r {
		if c >= 0x80 && (!e.wide || unicode.Is(unicode.M, c) || unicode.Is(unicode.Cf, c)) {
			e.unknown = true // a character without a width moves together with the one before
		}
	}
	e.buf = slices.Insert(e.buf, e.cur, r...)
	e.cur += len(r)
}

// cut removes [from, to) and keeps it for a yank. Cuts one after the other add up.
func (e *editor) cut(from, to int, wasKill bool) {
	if from == to {
		return
	}
	text := slices.Clone(e.buf[from:to])
	switch {
	case wasKill && to <= e.cur && from < e.cur:
		e.kill = append(text, e.kill...)
	case wasKill:
		e.kill = append(e.kill, text...)
	default:
		e.kill, e.doubtful = text, e.killing
	}
	if len(e.kill) > maxLine {
		e.kill, e.unknown = nil, true
	}
	e.buf = slices.Delete(e.buf, from, to)
	e.cur = from
	e.killed = true
}

func (e *editor) wordForward(i int) int {
	for i < len(e.buf) && !alnum(e.buf[i]) {
		i++
	}
	for i < len(e.buf) && alnum(e.buf[i]) {
		i++
	}
	return i
}

func (e *editor) wordBack(i int) int {
	for i > 0 && !alnum(e.buf[i-1]) {
		i--
	}
	for i > 0 && alnum(e.buf[i-1]) {
		i--
	}
	return i
}

func alnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// press applies one key.
func (e *editor) press(k key) act {
	if len(k.seq) == 1 && signals(k.seq[0]) {
		return e.signal(k)
	}
	if e.inPaste {
		return e.pasted(k)
	}
	switch e.wait {
	case 'v':
		e.wait = 0
		if k.r < 0 {
			e.unknown = true // only its first byte is quoted, the others are keys
		} else {
			e.insert(k.r)
		}
		return edits
	case '[', ']':
		back := e.wait == '['
		e.wait = 0
		e.search(k, back)
		return edits
	}
	wasKill, wasKilling := e.killed, e.killing
	e.killing = (e.killing || wasKill) && (k.r >= 0x20 && k.r != 0x7f || cutters[emacsKeys[k.seq]])
	e.killed = false
	if e.prefix != "" {
		k = key{seq: e.prefix + k.seq, r: -1}
		e.prefix = ""
		return e.chord(k.seq)
	}
	if e.argKey(k) {
		e.killed, e.killing = wasKill, wasKilling
		return edits
	}
	n, ok := e.takeArg()
	if e.vi && k.seq != "\r" && k.seq != "\n" && e.viKey(k) {
		return e.viAct(k)
	}
	return e.command(k, n, ok, wasKill)
}

// signal is a key that does not reach the line editor, unless that has just told the
// kernel to leave it alone: a quoted insert does, if it was quick enough.
func (e *editor) signal(k key) act {
	if k.seq == ctrl('S') || k.seq == ctrl('Q') {
		e.unknown = true
		return edits
	}
	e.unknown = e.unknown || e.wait == 'v' || e.inPaste
	e.wait, e.inPaste, e.prefix, e.viWait = 0, false, "", ""
	return interrupt
}

// argKey takes the keys of a numeric argument.
func (e *editor) argKey(k key) bool {
	if e.vi {
		return false
	}
	switch {
	case len(k.seq) == 2 && k.seq[0] == esc && (k.seq[1] >= '0' && k.seq[1] <= '9' || k.seq[1] == '-'):
		if k.seq[1] == '-' && e.hasArg {
			e.unknown = true
		}
		e.arg, e.hasArg = e.arg+k.seq[1:], true
	case e.hasArg && len(k.seq) == 1 && k.seq[0] >= '0' && k.seq[0] <= '9':
		e.arg += k.seq
	default:
		return false
	}
	if len(e.arg) > 6 {
		e.unknown, e.arg = true, ""
	}
	return true
}

// takeArg gives the numeric argument of the key that is about to act.
func (e *editor) takeArg() (n int, given bool) {
	if !e.hasArg {
		return 1, false
	}
	n, err := strconv.Atoi(e.arg)
	if e.arg == "-" {
		n, err = -1, nil
	}
	if err != nil {
		e.unknown = true
	}
	e.arg, e.hasArg = "", false
	return n, true
}

// command is what the keys of the emacs mode do.
func (e *editor) command(k key, n int, hasArg, wasKill bool) act {
	if k.r >= 0x20 && k.r != 0x7f {
		return e.typed(k.r, n)
	}
	name, bound := emacsKeys[k.seq]
	if !bound {
		return e.unbound()
	}
	if hasArg && n < 1 && name != "accept" && name != "abort" {
		e.unknown = true // most commands then do the opposite
	}
	n = max(n, 1)
	switch name {
	case "accept":
		return accepts
	case "abort": // it also ends a search, and gives back what was there before
		return edits
	case "start":
		e.cur = 0
	case "end":
		e.cur = len(e.buf)
	case "left":
		e.cur = max(0, e.cur-n)
	case "right":
		e.cur = min(len(e.buf), e.cur+n)
	case "word-left":
		for range min(n, len(e.buf)+1) {
			e.cur = e.wordBack(e.cur)
		}
	case "word-right":
		for range min(n, len(e.buf)+1) {
			e.cur = e.wordForward(e.cur)
		}
	case "rubout":
		from := max(0, e.cur-n)
		if hasArg {
			e.cut(from, e.cur, wasKill)
			break
		}
		e.buf = slices.Delete(e.buf, from, e.cur)
		e.cur = from
	case "eof":
		if len(e.buf) == 0 && !e.unknown {
			return ends
		}
		fallthrough
	case "delete":
		if hasArg {
			e.cut(e.cur, min(len(e.buf), e.cur+n), wasKill)
			break
		}
		e.buf = slices.Delete(e.buf, e.cur, min(len(e.buf), e.cur+1))
	case "kill-line":
		e.cut(e.cur, len(e.buf), wasKill)
		e.unknown = e.unknown || hasArg
	case "discard":
		if e.cur > 0 {
			e.cut(0, e.cur, wasKill)
		}
		e.unknown = e.unknown || hasArg
	case "word-rubout":
		e.wordRubout(n, wasKill)
	case "kill-word":
		to := e.cur
		for range min(n, len(e.buf)+1) {
			to = e.wordForward(to)
		}
		e.cut(e.cur, to, wasKill)
	case "backward-kill-word":
		from := e.cur
		for range min(n, len(e.buf)+1) {
			from = e.wordBack(from)
		}
		e.cut(from, e.cur, wasKill)
	case "yank":
		if hasArg || e.doubtful {
			e.unknown = true
		}
		e.insert(e.kill...)
	case "transpose":
		e.transpose(hasArg)
	case "quote":
		e.wait = 'v'
		e.unknown = e.unknown || hasArg
	case "search", "search-back":
		e.wait = map[string]byte{"search": ']', "search-back": '['}[name]
		e.unknown = e.unknown || hasArg
	case "redraw", "mark":
	case "chord":
		e.prefix = k.seq
	case "paste":
		e.inPaste = true
	case "complete":
		e.unknown = true
		return expands
	case "unknown":
		e.unknown = true
	case "escapes":
		return escapes
	}
	return edits
}

func (e *editor) typed(r rune, n int) act {
	if n < 0 || n > 1000 {
		e.unknown = true
		return edits
	}
	for range n {
		e.insert(r)
	}
	return edits
}

// unbound is a key that may do anything; one of the terminal's own sequences may
// leave its tail in the line.
func (e *editor) unbound() act {
	e.unknown = true
	return edits
}

// wordRubout cuts back to a blank.
func (e *editor) wordRubout(n int, wasKill bool) {
	from := e.cur
	blank := func(i int) bool { return e.buf[i] == ' ' || e.buf[i] == '\t' }
	for range min(n, len(e.buf)+1) {
		for from > 0 && blank(from-1) {
			from--
		}
		for from > 0 && !blank(from-1) {
			from--
		}
	}
	if e.cur > 0 {
		e.cut(from, e.cur, wasKill)
	}
}

// transpose drags the character before the cursor over the one at it.
func (e *editor) transpose(hasArg bool) {
	if hasArg {
		e.unknown = true
	}
	if e.cur == 0 || len(e.buf) < 2 {
		return
	}
	if e.cur == len(e.buf) {
		e.cur--
	}
	e.buf[e.cur-1], e.buf[e.cur] = e.buf[e.cur], e.buf[e.cur-1]
	e.cur++
}

// search moves to the next, or the last, of a character.
func (e *editor) search(k key, back bool) {
	if k.r < 0 {
		e.unknown = true
		return
	}
	if back {
		for i := e.cur - 1; i >= 0; i-- {
			if e.buf[i] == k.r {
				e.cur = i
				return
			}
		}
		return
	}
	for i := e.cur + 1; i < len(e.buf); i++ {
		if e.buf[i] == k.r {
			e.cur = i
			return
		}
	}
}

// pasted is a key inside a bracketed paste: text, whatever it is.
func (e *editor) pasted(k key) act {
	if k.seq == pasteEnd {
		e.inPaste = false
		return edits
	}
	for _, r := range k.seq {
		switch {
		case r == '\r':
			r = '\n'
		case r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			e.unknown = true // a key for a program that does not know of pastes
		}
		e.insert(r)
	}
	return edits
}

// chord is a key after Control-X.
func (e *editor) chord(seq string) act {
	e.unknown = true
	switch seq[1:] {
	case ctrl('E'), ctrl('R'), "(", ")", "e", "E", "\r", "\n":
		return escapes // editor, init file, keyboard macros
	}
	return edits
}

// cutters are the commands that cut text.
var cutters = map[string]bool{
	"kill-line": true, "discard": true, "word-rubout": true, "kill-word": true, "backward-kill-word": true, "rubout": true, "delete": true, "eof": true,
}

// emacsKeys binds keys as readline and bash do, without an init file.
var emacsKeys = map[string]string{
	"\r": "accept", "\n": "accept", ctrl('O'): "accept",
	ctrl('A'): "start", "\x1b[H": "start", "\x1bOH": "start",
	ctrl('E'): "end", "\x1b[F": "end", "\x1bOF": "end",
	ctrl('B'): "left", "\x1b[D": "left", "\x1bOD": "left",
	ctrl('F'): "right", "\x1b[C": "right", "\x1bOC": "right",
	"\x1bb": "word-left", "\x1bf": "word-right",
	"\x7f": "rubout", ctrl('H'): "rubout", ctrl('D'): "eof", "\x1b[3~": "delete",
	ctrl('K'): "kill-line", ctrl('U'): "discard", ctrl('W'): "word-rubout",
	"\x1bd": "kill-word", "\x1b\x7f": "backward-kill-word", "\x1b\b": "backward-kill-word",
	ctrl('Y'): "yank", ctrl('T'): "transpose", ctrl('V'): "quote",
	ctrl(']'): "search", "\x1b\x1d": "search-back",
	ctrl('L'): "redraw", "\x00": "mark", "\x1b ": "mark", ctrl('X'): "chord", pasteBegin: "paste",
	ctrl('G'): "abort",
	"\t":      "complete", "\x1b?": "complete", "\x1b*": "complete", "\x1b=": "complete", "\x1b/": "complete", "\x1b~": "complete", "\x1b$": "complete",
	"\x1b@": "complete", "\x1b!": "complete", "\x1b{": "complete", "\x1bg": "complete",
	ctrl('P'): "unknown", ctrl('N'): "unknown", "\x1b[A": "unknown", "\x1b[B": "unknown", "\x1bOA": "unknown", "\x1bOB": "unknown",
	ctrl('R'): "unknown",
	"\x1b#":   "escapes", "\x1b\x05": "escapes", "\x1b\r": "escapes", "\x1b\n": "escapes", "\x1bx": "escapes",
}
