package pty

import (
	"slices"
	"strings"
)

// Look is a question to the screen: send Ask, Commit the plan, then call
// Session.Read with Rest until it has an answer.
type Look struct {
	// Ask is the input up to the Enter, and a mark at the end of the line.
	Ask []byte
	// Rest is the input from the Enter on.
	Rest []byte
	// Undo removes the mark, where the line is refused.
	Undo []byte

	until until
}

// until is what is waited for.
type until uint8

const (
	// shown: the screen shows the line up to the mark.
	shown until = iota
	// answered: the program that fills the screen has answered the keys before the
	// Enter, or it may be a shell that reads them.
	answered
	// fresh: there is a new prompt after a line was given up, for keys that come
	// earlier are lost, or go on with the line.
	fresh
)

// mark is typed at the end of a line to see that all keys before it were obeyed.
const mark = "~#~"

// Read plans the rest of the input of a Look, once what it waits for is there; ok
// is false as long as it is not. If late, it waits no more, and p is what is left
// to do. p may have a Look of its own.
func (s *Session) Read(l *Look, late bool) (p *Plan, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = &Plan{next: s.state.copy(), Send: l.Rest}
	switch l.until {
	case answered:
		if !s.answered() {
			return p.refuse(lookHint), late
		}
		if s.run(p, l.Rest, 0); p.Look != nil { // it was a shell after all
			p.refuse(lookHint)
		}
		return p, true
	case fresh:
		if s.mayLinger(&p.next) && !late {
			return nil, false
		}
		s.run(p, l.Rest, 0)
		return p, true
	}
	text, ok := s.read(&p.next)
	if !ok {
		return p.refuse(lookHint), late
	}
	if p.next.retype(text); p.next.line.unknown {
		return p.refuse("the line holds characters that the terminal's locale does not surely read. Type it without them, or start the terminal with LC_ALL=C.UTF-8."), true
	}
	p.Send = slices.Concat([]byte(eraseLine(p.next.line.vi)), []byte(text), l.Rest)
	s.run(p, l.Rest, 1)
	return p, true
}

func (p *Plan) refuse(why string) *Plan {
	p.Look, p.Refusal = nil, why
	return p
}

// answered reports whether the terminal showed something since the last input.
func (s *Session) answered() bool { return s.screen != nil && s.screen.frames > s.sent }

// read reads the line between the prompt and the mark.
func (s *Session) read(st *state) (string, bool) {
	if s.screen == nil {
		return "", false
	}
	before, exact := s.screen.before()
	line, marked := strings.CutSuffix(before, mark)
	if !marked || !exact {
		return "", false
	}
	for _, prompt := range []string{st.prompt, st.shellPrompt} {
		if text, ok := strings.CutPrefix(line, prompt); ok && strings.TrimSpace(prompt) != "" {
			return text, true
		}
	}
	return "", false
}

// look makes the plan ask the screen for the line.
func (s *Session) look(p *Plan, b []byte, i int, k key, nth, known int) bool {
	st := &p.next
	switch {
	case s.screen == nil:
		p.Refusal = unseenHint
	case nth > 1 || known > 0:
		p.Refusal = severalHint
	case k.seq == ctrl('O'):
		p.Refusal = "Control-O on a line from the history is not followed. Press Enter."
	case s.screen.alternate && st.top().kind != shell, st.line.wait != 0, st.line.inPaste:
		p.Refusal = lookHint
	default:
		end, undo := ctrl('E'), strings.Repeat("\x7f", len(mark))
		if st.line.vi {
			end = "\x1bA"
		}
		if st.top().language == "javascript" {
			end = "" // node takes a suggestion with it
		}
		p.Look = &Look{Ask: slices.Concat(b[:i], []byte(end+mark)), Rest: b[i:], Undo: []byte(undo)}
		// What was planned for the Enter itself is not part of what is sent.
		st.cooked.add(mark)
		st.line.unknown = true
	}
	return false
}

// wait makes the plan wait until the program that fills the screen has answered.
func (s *Session) wait(p *Plan, b []byte, i, nth int) bool {
	if nth > 1 {
		p.Refusal = severalHint
		return false
	}
	p.Look = &Look{Ask: slices.Clone(b[:i]), Rest: b[i:], until: answered}
	return false
}
