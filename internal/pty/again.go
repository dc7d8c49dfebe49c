package pty

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// ghost is a line that was given up by ^C. It may be on the terminal still: a shell
// that traps the signal, a program that has set other keys, and a key that comes
// too soon after it keep it there. So the next line is typed again.
type ghost struct {
	held    bool
	text    string
	unknown bool
	// feeds and prompt are screen.feeds and what stood before the line, by which a
	// new prompt is known.
	feeds  int
	prompt string
	// gone says that there was one before the first key of the next line.
	gone bool
}

// giveUp is ^C, ^Z or ^\, which the kernel turns into a signal. False ends the
// plan: what follows in the same input waits for the prompt.
func (s *Session) giveUp(p *Plan, b []byte, i, accepted int) bool {
	st := &p.next
	strict := s.strict(st)
	if b[i] != 'C'&0x1f && st.top().kind == shell && s.screen != nil && s.screen.pasting {
		st.line.unknown = true // a shell that reads a line ignores these, and may lose keys
		return true
	}
	text := st.pending + st.line.text()
	g := ghost{held: true, text: st.ghost.text + text, unknown: st.ghost.unknown || st.line.unknown, prompt: st.prompt}
	if !strict {
		g.text = text
	}
	if s.screen != nil {
		g.feeds = s.screen.feeds
	}
	st.pending = ""
	raw := st.raw
	st.newLine()
	if st.top().kind == screenful || s.screen != nil && s.screen.alternate {
		st.raw = raw // an editor keeps what was typed into it
	}
	st.ghost, st.interrupted = g, true
	if rest := b[i+1:]; st.top().kind != screenful && s.screen != nil && bytes.ContainsAny(rest, "\r\n\x0f") {
		if accepted > 0 {
			p.refuse(severalHint)
			return false
		}
		p.Look = &Look{Ask: b[:i+1], Rest: rest, until: fresh}
		return false
	}
	return true
}

// mayLinger reports whether a line that was given up may still be there: no new
// prompt was shown since.
func (s *Session) mayLinger(st *state) bool {
	g := &st.ghost
	if !g.held || s.screen == nil {
		return false
	}
	if s.screen.feeds == g.feeds {
		return true
	}
	if s.screen.pasting {
		return false
	}
	before, _ := s.screen.before()
	for _, prompt := range []string{g.prompt, st.shellPrompt} {
		if strings.TrimSpace(prompt) != "" && (strings.HasPrefix(before, prompt) || samePrompt(before, prompt)) {
			return false
		}
	}
	return true
}

// typeAgain puts the line in place of what may stand there instead: what is left
// of one that was given up, or what the keys are to a terminal that edits its lines
// in another way. False ends the plan.
func (s *Session) typeAgain(p *Plan, i, nth int, ahead []string) bool {
	st := &p.next
	text := st.line.text()
	other := func(reading string) bool { return reading != text }
	if !st.ghost.held && !slices.ContainsFunc(ahead, other) && !slices.ContainsFunc(st.cooked.lines(), other) {
		return true
	}
	switch {
	case nth == 1 && !strings.ContainsFunc(text, unicode.IsControl): // a newline would be an Enter
		// Where the kernel edits the line, the first key is text, and the next takes it away.
		if st.ghost.held && !st.ghost.gone && st.top().kind == shell {
			text = " " + text // bash drops the first character if it has not seen the signal yet
		}
		again := slices.Concat([]byte(ctrl('E')), []byte(eraseLine(st.line.vi)), []byte(text))
		at := i + p.added
		p.Send = slices.Concat(p.Send[:at], again, p.Send[at:])
		p.added += len(again)
		st.retype(text)
	case !st.ghost.held: // every reading is judged
	case nth > 1:
		p.refuse(severalHint)
		return false
	case !st.ghost.gone || st.ghost.unknown:
		p.refuse(lookHint)
		return false
	}
	return true
}

// typedAhead is the line if its keys came while no line editor was reading: the
// kernel obeys some of them, and hands the others to the editor later. ok is false
// if it cannot be known.
func (st *state) typedAhead() (lines []string, ok bool) {
	ok = true
	for _, typed := range st.cooked.lines() {
		e, keys := st.empty.clone(), decoder{}
		for _, c := range []byte(typed) {
			for _, k := range keys.next(c) {
				switch e.press(k) {
				case accepts:
					lines = append(lines, e.text())
					e.reset()
				case edits:
				default:
					ok = false
				}
			}
		}
		ok = ok && (!e.unknown || st.line.unknown)
		lines = append(lines, e.text())
	}
	return lines, ok
}

// eraseLine empties the line before the cursor.
func eraseLine(vi bool) string {
	if vi {
		return "\x1bS"
	}
	return "\x15"
}

// retype makes the line what is about to be typed in place of it.
func (st *state) retype(text string) {
	st.line.reset()
	st.line.doubtful = true // the line that is cleared could be yanked
	st.empty = st.line.clone()
	st.ghost = ghost{}
	st.line.insert([]rune(text)...)
	st.cooked.reset(text)
	st.raw = []byte(text)
}
