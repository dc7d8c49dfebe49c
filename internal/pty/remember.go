package pty

import (
	"regexp"
	"slices"
	"strings"
)

// readInto is a read whose next line becomes a variable.
var readInto = regexp.MustCompile(`\bread\b((?:\s+-\w+)*)((?:\s+[A-Za-z_]\w*)+)`)

// readsSecret is a read that does not show what is typed.
var readsSecret = regexp.MustCompile(`\bread\b(\s+-\w+|\s+-[ptuia]\s*\S+)*\s+-\w*s`)

// remember notes what the line changes for those after it. It reports whether
// there was room.
func (st *state) remember(text string, s *Session) bool {
	if names := st.names; len(names) > 0 && st.top().kind != repl {
		// The line may be what a read was waiting for.
		st.names = nil
		if !st.shell.add(names[0] + "=" + quote(text)) {
			return false
		}
	}
	top := st.top()
	for i, l := range st.spoken {
		if st.spoken[i] = l.with(text); st.spoken[i] == nil {
			return false
		}
	}
	if top.kind == repl {
		if leaves.MatchString(text) {
			st.pop()
		}
		return true
	}
	if st.begun && top.kind == shell && s.screen != nil && !password.MatchString(st.prompt) && st.pending == "" {
		last := &st.stack[len(st.stack)-1]
		last.edits = last.edits || !st.ahead
		if !st.ahead || !last.edits && plainPrompt.MatchString(st.prompt) {
			st.shellPrompt = st.prompt
		}
	}
	command := st.pending + text
	if top.kind == screenful {
		return true
	}
	switch completenessOf(command) {
	case incomplete:
		if len(command) > maxPending {
			return false
		}
		st.pending = command + "\n"
		return true
	case invalid:
		st.pending = ""
		return true
	case complete:
	}
	st.pending = ""
	if strings.TrimSpace(command) == "" {
		return true
	}
	st.last = command
	st.settings(command)
	if m := readInto.FindStringSubmatch(command); m != nil {
		st.names = strings.Fields(m[2])
	}
	st.secret = readsSecret.MatchString(command)
	if leaves.MatchString(command) {
		st.pop()
	} else {
		st.start(started(command), s)
	}
	return st.shell.add(command)
}

func (st *state) settings(command string) {
	if m := setsVi.FindAllString(command, -1); m != nil {
		st.line.vi = strings.HasSuffix(m[len(m)-1], "vi")
	}
	if setsLocale.MatchString(command) {
		st.line.wide = false
	}
}

// maxStack bounds programs started from one another.
const maxStack = 64

func (st *state) start(p program, s *Session) {
	if p.kind == plain && s.screen == nil {
		return // nobody would see it end
	}
	if len(st.stack) >= maxStack {
		st.stack = slices.Delete(st.stack, 1, 2)
	}
	st.stack = append(st.stack, p)
	st.speak(p)
	if s.screen != nil {
		st.since = s.screen.prompts
	}
}

// plainPrompt is how the prompt of a shell looks that does not say when it reads.
var plainPrompt = regexp.MustCompile(`[$#%>] $`)

// leaves ends a shell or a REPL.
var leaves = regexp.MustCompile(`^\s*(exit|logout|quit|exit\(\)|quit\(\)|\.exit|\.quit|\\q|q\(\)|/exit)\b?;?\s*$|^\s*exit \d+\s*$`)
