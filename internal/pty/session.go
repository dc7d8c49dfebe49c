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
	// Data says that it seems to be text, such as a line of a here-document: it must
	// do no harm if it is run all the same, and need not work.
	Data bool
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
	secret  bool     // the command that reads the next line was told not to show it
	unshown bool     // keys of this line were sent before, so that they would be shown
	// spoken are the languages of programs that were started. They are judged from
	// then on: that such a program has ended is only what the screen says.
	spoken []*spoken
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
	s.state.unshown = s.state.line.text() != ""
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
	st.raw, st.begun, st.unshown = nil, false, false
}
