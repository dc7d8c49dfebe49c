package pty

import "strings"

// viKey reports whether a key is read by vi's commands, or leads to them.
func (e *editor) viKey(k key) bool {
	return e.viCommand || k.seq[0] == esc && k.seq != pasteBegin
}

// viAct follows which keys are commands and which are text, not what commands do
// to the line: it is unknown from the first on.
func (e *editor) viAct(k key) act {
	e.unknown = true
	if k.seq[0] == esc && !e.viCommand {
		// The editor waits a moment whether a key follows the escape; a fast one
		// comes in the same message.
		e.viCommand = true
		if len(k.seq) == 2 {
			return e.viAct(key{k.seq[1:], rune(k.seq[1])})
		}
		return edits
	}
	wait := e.viWait
	e.viWait = ""
	if wait != "" && strings.ContainsAny(wait[len(wait)-1:], "rfFtTm`'") {
		e.viDone(wait)
		return edits // the character such a command is about
	}
	switch k.seq {
	case "r", "f", "F", "t", "T", "m", "`", "'":
		e.viWait = wait + k.seq
		return edits
	case "v", "#", "@":
		return escapes // editor; a comment or none; a macro
	}
	switch {
	case wait != "":
		if k.seq >= "0" && k.seq <= "9" {
			e.viWait = wait
			return edits
		}
		e.viDone(wait)
	case k.seq == "c" || k.seq == "d" || k.seq == "y":
		e.viWait = k.seq
	case len(k.seq) == 1 && strings.Contains("iaIASsCR", k.seq):
		e.viCommand = false
	}
	return edits
}

// viDone ends a command that had to wait for its motion or character.
func (e *editor) viDone(wait string) {
	e.viCommand = wait[0] != 'c'
}
