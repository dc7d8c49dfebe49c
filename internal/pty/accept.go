package pty

import (
	"regexp"
	"slices"
	"strings"
)

const (
	unseenHint  = "what is on this line cannot be known from its keys alone (history, completion or another editing key was used), and this terminal's output does not pass through this gateway. Press Ctrl-C and type the line out."
	lookHint    = "what is on this line cannot be known from its keys alone (history, completion or another editing key was used), and the screen did not show it plainly in time. Press Ctrl-C and type the line out."
	severalHint = "the second of several lines sent at once uses the history, a completion or other editing keys, so it cannot be known before the first has run. Send them one by one."
	longHint    = "this is more than is judged at once in a terminal. Write it to a file, and run that."
	roomHint    = "this terminal has defined more than can be judged together with its next line. Open another terminal."
)

// strict reports whether a line editor may be reading that obeys history and
// completion, so that a line whose text is unknown must not pass.
func (s *Session) strict(st *state) bool {
	switch top := st.top(); {
	case s.screen == nil, top.kind == shell, top.kind == repl, top.kind == mux:
		return true
	case top.kind == screenful:
		return false
	default:
		return s.screen.pasting
	}
}

// accept is Enter. It adds what must be judged and goes on to the next line;
// false ends the plan.
func (s *Session) accept(p *Plan, b []byte, i int, k key, nth, known int) bool {
	st := &p.next
	s.returned(st)
	strict := s.strict(st)
	if st.ghost.held && !strict && !s.mayLinger(st) {
		st.ghost = ghost{}
	}
	ahead, certain := st.typedAhead()
	unknown := st.line.unknown || strict && !certain || !strict && st.ghost.held
	if unknown && strict {
		return s.look(p, b, i, k, nth, known)
	}
	if unknown && (nth > 1 || i > 0 || !s.answered()) {
		return s.wait(p, b, i, nth)
	}
	if strict && !s.typeAgain(p, i, nth, ahead) {
		return false
	}
	if st.cooked.over(maxLine) || len(p.Reviews) > maxReviews || !s.edited(st) && st.cooked.over(maxCanonical) {
		p.Refusal = longHint
		return false
	}
	text := st.line.text()
	hidden := s.hidden(st)
	top := st.top()
	readsShell := strict && top.kind != repl
	if readsShell || top.kind == repl && s.atShellPrompt(st) {
		expanded, ok := s.expand(st, text)
		if !ok {
			p.Refusal = "the line asks for text from the shell's history, which is not known here. Type the command out."
			return false
		}
		text = expanded
	}
	if strict {
		why := refuseLine(st.pending+text, st.shell.text())
		if top.kind == repl && strings.Contains(text, "=") {
			why = ""
		}
		if why == "" && top.kind == repl && changesTerminal.MatchString(text) {
			why = terminalHint
		}
		if why != "" {
			p.Refusal = why
			return false
		}
	}
	if (top.kind == screenful || top.kind == plain) && runsBuffer.Match(st.raw) {
		p.Refusal = "it hands text of the editor to a program that runs it, and that text is not known here. Save it to a file, and run that."
		return false
	}
	if s.reviews(p, text, ahead, unknown, hidden); p.Refusal != "" {
		return false
	}
	if hidden {
		st.names = nil
	}
	st.secret = st.secret && hidden && strings.TrimSpace(text) == ""
	if !hidden && !unknown && !st.remember(text, s) {
		p.Refusal = roomHint
		return false
	}
	st.ghost = ghost{}
	st.interrupted = false
	if kept := st.cooked; k.seq == ctrl('O') && !s.edited(st) {
		st.newLine()
		st.cooked = kept // it is a letter like any other where the kernel edits the line
	} else {
		st.newLine()
	}
	return true
}

func (s *Session) atShellPrompt(st *state) bool {
	return s.screen != nil && st.shellPrompt != "" && samePrompt(st.prompt, st.shellPrompt)
}

func (s *Session) expand(st *state, text string) (string, bool) {
	if !strings.ContainsAny(text, "!^") {
		return text, true
	}
	return expandHistory(text, st.last)
}

// hidden reports whether the line is one that is not shown: its prompt asks for a
// password, the command that reads it was told not to show it, or it does not.
func (s *Session) hidden(st *state) bool {
	if password.MatchString(st.prompt) {
		return true
	}
	if s.screen == nil || s.screen.pasting || s.atShellPrompt(st) {
		return false
	}
	before, _ := s.screen.before()
	return st.secret || st.top().kind == plain && st.unshown && before == st.prompt
}

// edited reports whether a line editor seems to read the keys. It is a guess.
func (s *Session) edited(st *state) bool {
	return s.screen != nil && s.screen.pasting && !st.ahead && st.top().kind == shell
}

// reviews adds every reading of the line.
func (s *Session) reviews(p *Plan, text string, ahead []string, unknown, hidden bool) {
	st := &p.next
	s.shellReviews(p, text, hidden)
	if st.ghost.text != "" {
		s.shellReviews(p, st.ghost.text+text, hidden)
	}
	if st.interrupted && text != "" {
		s.shellReviews(p, text[1:], hidden)
	}
	for _, other := range slices.Concat(ahead, st.cooked.lines()) {
		if other != text {
			s.shellReviews(p, other, hidden)
		}
	}
	top := st.top()
	for _, language := range s.languages(st) {
		p.add(Review{language, text, hidden, st.inDocument()})
	}
	for _, l := range st.spoken {
		p.add(Review{l.language, text, hidden, false})
		p.join(l.language, Review{l.language, l.text + text, hidden, false})
		p.join(l.language+" lines", Review{l.language, l.lines + text, hidden, false})
	}
	typed := string(st.raw)
	switch top.kind {
	case repl:
		typed = text
	case shell, mux:
		typed = ""
	}
	parts := pieces(typed)
	if len(parts) > maxPieces {
		p.refuse(longHint)
	}
	for _, piece := range parts {
		s.shellReviews(p, piece, hidden)
	}
	if unknown && s.screen != nil {
		// Should a shell read it after all: its history holds what was run before.
		if before := st.shell.text(); before != "" {
			p.add(Review{"bash", before + before + text, hidden, false})
		}
		for _, piece := range pieces(s.screen.under()) {
			s.shellReviews(p, piece, hidden)
		}
	}
}

// shellReviews adds the line as a shell would read it: alone, with the command it
// goes on with, and with what was run before.
func (s *Session) shellReviews(p *Plan, text string, hidden bool) {
	st := &p.next
	if strings.TrimSpace(text) == "" && st.pending == "" {
		return
	}
	p.add(Review{"bash", text, hidden, st.inDocument()})
	if st.pending != "" {
		p.add(Review{"bash", st.pending + text, hidden, st.inDocument()})
	}
	if before := st.shell.text(); before != "" {
		p.join("bash", Review{"bash", before + st.pending + text, hidden, st.inDocument()})
	}
}

// inDocument reports whether the line seems to belong to a here-document.
func (st *state) inDocument() bool { return strings.Contains(st.pending, "<<") }

func (p *Plan) add(r Review) {
	if !slices.Contains(p.Reviews, r) {
		p.Reviews = append(p.Reviews, r)
	}
}

// join adds a review with what was run before, in place of one with less of it.
func (p *Plan) join(of string, r Review) {
	i, again := p.joined[of]
	switch {
	case again && strings.HasPrefix(r.Text, p.Reviews[i].Text):
		p.Reviews[i] = r
		return
	case p.joined == nil:
		p.joined = make(map[string]int)
	}
	p.joined[of] = len(p.Reviews)
	p.Reviews = append(p.Reviews, r)
}

// languages are those the line may be read in besides the shell's.
func (s *Session) languages(st *state) []string {
	var all []string
	top := st.top()
	switch {
	case top.kind == repl:
		all = append(all, top.language)
	case top.kind == plain:
		all = append(all, "")
	}
	for _, p := range prompts {
		if p.prompt.MatchString(st.prompt) && !slices.Contains(all, p.language) && st.prompt != st.shellPrompt {
			all = append(all, p.language)
		}
	}
	return all
}

var (
	// quotedText is an argument of a program's own command that runs a command.
	quotedText = regexp.MustCompile(`"([^"]*)"|'([^']*)'`)
	viInsert   = "iIaAoOcCsSR"
	// escape is a command of a program's own that runs one, without a "!".
	escape = regexp.MustCompile(`^\s*(?:\.shell|\.system|shell|system|host|make|sh)\s+(.+)`)
	// runsBuffer is a filter of vi that runs the text it is given.
	runsBuffer = regexp.MustCompile(`(?::\s*(?:w(?:rite)?\s*|[0-9.,$%'<>+-]+\s*)!|![!Gjk{}()])\s*(?:sudo\s+)?(?:\S*/)?(?:ba|da|z|k|a)?(?:sh|python[0-9.]*|perl|node|ruby)(?:\s+-s)?\s*[\r\n]*$`)
)

// maxPieces bounds the parts of one line that are judged by themselves.
const maxPieces = 80

// pieces are the parts of what was typed that a full-screen program may hand to a
// shell: what follows "!" or "|", quoted strings, and text typed after an escape.
// There are more than maxPieces only of what is too much to be judged.
func pieces(typed string) []string {
	var all []string
	for part := range strings.FieldsFuncSeq(typed, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		all = append(all, strings.TrimSpace(part))
		if strings.ContainsAny(part[:1], viInsert) {
			all = append(all, part[1:])
		}
		if m := escape.FindStringSubmatch(part); m != nil {
			all = append(all, m[1])
		}
		for i, r := range part {
			if r != '!' && r != '|' {
				continue
			}
			all = append(all, part[i+1:])
			// A motion of vi, or less's mark, may stand before the command.
			after := strings.TrimLeft(part[i+1:], "0123456789")
			for skip := 1; skip <= 2 && skip < len(after); skip++ {
				all = append(all, after[skip:])
			}
		}
		for _, m := range quotedText.FindAllStringSubmatch(part, -1) {
			all = append(all, m[1]+m[2], strings.TrimLeft(m[1]+m[2], ":!"))
		}
		if words := strings.SplitN(strings.TrimLeft(part, ":"), " ", 2); len(words) == 2 && strings.HasPrefix(part, ":") {
			all = append(all, words[1])
		}
	}
	var different []string
	for _, piece := range all {
		if piece = strings.TrimSpace(piece); piece != "" && !slices.Contains(different, piece) {
			if different = append(different, piece); len(different) > maxPieces {
				return different
			}
		}
	}
	return different
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
