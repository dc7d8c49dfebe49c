// Package pty models what a person, or an agent, types into a terminal: which
// line will run when Enter is pressed, and who will read it. It knows keys and
// screens, not the wire that carries them.
//
// A Session is asked about every piece of input before it is sent (Keys), and is
// told what was sent (Commit) and what the terminal showed (Output). Most keys
// may be sent at once. Input with an Enter in it comes back with the texts that
// must be judged first. Where the keys do not tell the line, because it came from
// the history or a completion, the line is read from the screen and typed again
// as it was judged, so that a screen that lies changes what is run to what was
// judged, and not the reverse.
package pty

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Review is a text that must be judged before input may be sent.
type Review struct {
	// Language is "bash", "python", …, or "" where it may be any.
	Language string
	// Text is what would run: the line, with earlier ones that give it a meaning.
	Text string
	// Hidden says that it may be a password: it must not be kept or logged, nor
	// leave the house.
	Hidden bool
}

// Plan is what must happen before a piece of input may be sent.
type Plan struct {
	// Reviews must all pass. None: the input may be sent at once.
	Reviews []Review
	// Refusal says, if it is not empty, why the input must not be sent at all.
	Refusal string
	// Look is set where the line must be read from the screen first.
	Look *Look
	// Send is what to send, the input itself unless the line had to be typed again.
	Send []byte

	next state
	// added is how much longer Send is than the input, for lines typed again.
	added int
	// joined is where in Reviews the lines of a language stand that are judged with
	// what was run before: of several sent at once, the last has all.
	joined map[string]int
}

// maxReviews bounds what one piece of input can have judged.
const maxReviews = 200

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

// Options describe the terminal's first program.
type Options struct {
	// Command and its arguments, as they were started.
	Command string
	Args    []string
	// Cols and Rows are the terminal's size in characters.
	Cols, Rows int
	// UTF8 says that its locale reads UTF-8.
	UTF8 bool
	// Unseen says that it was started elsewhere: what was typed and shown before is
	// not known.
	Unseen bool
}

// Session is one terminal. It is safe for concurrent use, but what is typed must
// be asked about in the order in which it is sent.
type Session struct {
	mu      sync.Mutex
	screen  *screen // nil if what the terminal shows is not seen
	changed chan struct{}
	state   state
	sent    int // screen.frames when input was sent last
}

// state is what is known from the keys. A plan works on a copy.
type state struct {
	keys   decoder
	line   editor
	empty  editor // the line before its first key
	cooked kernel
	raw    []byte // the keys of this line as they came, for programs with commands of their own

	begun  bool   // a key of this line was pressed
	prompt string // what the line under the cursor showed before it
	ahead  bool   // it was pressed while nothing was reading a line

	ghost ghost
	// interrupted says that a signal came since the last line. Bash may see it only
	// after the next one, of which it then drops the first character.
	interrupted bool

	stack       []program // who reads the terminal, the latest last
	since       int       // screen.prompts when the latest was started
	shellPrompt string

	shell   earlier
	pending string   // a shell command that is not complete
	last    string   // the last complete one
	names   []string // what the next line may become the value of
	// spoken are the languages of programs that were started. They are judged from
	// then on: that such a program has ended is only what the screen says.
	spoken []*spoken
}

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

// New returns the model of a terminal that has just been started.
func New(o Options) *Session {
	s := &Session{screen: newScreen(o.Cols, o.Rows), changed: make(chan struct{})}
	s.state.stack = []program{describe(append([]string{o.Command}, plainArgs(o.Args)...))}
	s.state.speak(s.state.top())
	if o.Unseen {
		s.state.line.unknown = true
		s.state.stack = append(s.state.stack, program{})
	}
	s.state.line.wide = o.UTF8
	s.state.empty, s.state.cooked = s.state.line.clone(), newKernel()
	return s
}

// plainArgs leaves out the flags a login shell is started with.
func plainArgs(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-i" || a == "-l" || a == "--login" })
}

// Output takes in what the terminal showed.
func (s *Session) Output(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen == nil {
		return
	}
	s.screen.write(b)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Resize follows a change of the terminal's size.
func (s *Session) Resize(cols, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen != nil {
		s.screen = s.screen.resize(cols, rows)
	}
}

// Attach says that from now on the terminal's output is seen, after a time in
// which it was not.
func (s *Session) Attach(cols, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen = newScreen(cols, rows)
	if s.screen != nil {
		s.screen.prompts, s.sent = s.state.since, 0
	}
}

// Lost says that what the terminal shows is not seen any more, or not all of it.
func (s *Session) Lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen = nil
}

// Seen reports whether the terminal's screen is followed.
func (s *Session) Seen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen != nil
}

// Changed is closed when the terminal next shows something.
func (s *Session) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Commit says that the plan's input is about to be sent.
func (s *Session) Commit(p *Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = p.next
	if s.screen != nil && (p.Look == nil || len(p.Look.Ask) > 0) {
		s.sent = s.screen.frames
	}
}

// Unsure says that input may or may not have been sent.
func (s *Session) Unsure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.line.unknown = true
}

// Keys plans a piece of input.
func (s *Session) Keys(b []byte) *Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Plan{Send: b, next: s.state.copy()}
	if st := &p.next; bytes.ContainsAny(b, "\r\n\x0f") && !st.begun && st.top().kind != screenful && s.mayLinger(st) {
		p.Look = &Look{Rest: b, until: fresh}
		return p
	}
	s.run(p, b, 0)
	return p
}

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
		return p.refuse("the line holds characters that the terminal's locale does not read. Type it without them."), true
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

func (st *state) copy() state {
	c := *st
	c.line, c.empty, c.cooked = st.line.clone(), st.empty.clone(), st.cooked.clone()
	c.keys.pending, c.raw, c.stack = slices.Clone(st.keys.pending), slices.Clone(st.raw), slices.Clone(st.stack)
	c.spoken = slices.Clone(st.spoken)
	return c
}

// run takes the input through the model. known is 1 where the line of the first
// Enter was read from the screen.
func (s *Session) run(p *Plan, b []byte, known int) {
	pasted, accepted := false, 0
	for i, c := range b {
		st := &p.next
		s.begin(st)
		if st.raw = append(st.raw, c); len(st.raw) >= 2*maxLine {
			st.raw = append([]byte(nil), st.raw[maxLine:]...)
		}
		if c == 'U'&0x1f && st.top().kind == plain {
			st.raw = nil
		}
		submitted := st.cooked.press(c)
		for _, k := range st.keys.next(c) {
			if !s.key(p, b, i, k, &accepted, known) {
				return
			}
		}
		if submitted && len(st.raw) > 0 { // a line for the kernel, not for the line editor
			pasted = true
			st.cooked.submit(c)
		}
	}
	if pasted && len(p.next.raw) > 0 {
		st := &p.next
		if st.cooked.over(maxLine) {
			p.Refusal = longHint
			return
		}
		s.shellReviews(p, st.line.text(), false)
		for _, text := range st.cooked.lines() {
			s.shellReviews(p, text, false)
		}
	}
}

// begin notes what the screen shows before the first key of a line.
func (s *Session) begin(st *state) {
	if st.begun {
		return
	}
	st.begun = true
	st.prompt, st.ahead = "", true
	if s.screen != nil {
		st.prompt, _ = s.screen.before()
		st.ahead = !s.screen.pasting
	}
	s.returned(st)
	if g := &st.ghost; g.held {
		g.gone = !s.mayLinger(st)
		if g.gone && (g.text == "" && !g.unknown || !s.strict(st)) {
			*g = ghost{}
		}
	}
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

// returned notices that programs have ended, by the prompt that is shown.
func (s *Session) returned(st *state) {
	for len(st.stack) > 1 && s.screen != nil {
		top := st.stack[len(st.stack)-1]
		back := top.kind != shell && st.shellPrompt != "" && samePrompt(st.prompt, st.shellPrompt) && !s.screen.alternate
		if st.stack[len(st.stack)-2].edits { // its shell says when it reads a line
			back = (back || top.kind == plain || top.kind == screenful) && s.screen.prompts > st.since
		}
		if !back {
			return
		}
		st.pop()
	}
}

// samePrompt reports whether two prompts are of one shell: they differ by the
// working directory.
func samePrompt(a, b string) bool {
	if len(a) < 2 || len(b) < 2 || a[len(a)-2:] != b[len(b)-2:] {
		return false
	}
	start := min(len(a), len(b), 4)
	return a[:start] == b[:start]
}

func (st *state) top() program { return st.stack[len(st.stack)-1] }

func (st *state) pop() {
	if len(st.stack) > 1 {
		st.stack = st.stack[:len(st.stack)-1]
	}
}

// key applies one key; false ends the plan.
func (s *Session) key(p *Plan, b []byte, i int, k key, accepted *int, known int) bool {
	st := &p.next
	before := st.line.text()
	wasUnknown := st.line.unknown
	switch st.line.press(k) {
	case accepts:
		*accepted++
		if !s.accept(p, b, i, k, *accepted, known) {
			return false
		}
	case interrupt:
		return s.giveUp(p, b, i, *accepted)
	case ends:
		st.end()
	case expands:
		if !wasUnknown && strings.ContainsAny(before, "$`<>") {
			s.shellReviews(p, before, false)
		}
	case escapes:
		if s.strict(st) {
			p.Refusal = "this key would make the shell run text that nobody typed here (an editor's, a macro's, or the line's own substitutions). Type the command, and press Enter."
			return false
		}
	case edits:
	}
	return true
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

// end is ^D on an empty line.
func (st *state) end() {
	st.pop()
	st.pending = ""
	st.newLine()
}

func (st *state) newLine() {
	st.line.reset()
	st.empty = st.line.clone()
	st.cooked.reset("")
	st.raw, st.begun = nil, false
}
