package gateway

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

const (
	// codeKept is how much of the input of an interpreter is remembered and judged
	// with what comes next.
	codeKept = 64 << 10
	// dataKept is the same for a program that probably reads data.
	dataKept = 32 << 10
	// maxReaders bounds the programs that may be reading one input.
	maxReaders = 32
)

// input is what was sent to a process's standard input, and who may be reading it.
//
// All of it is one text, however it was split: a message is judged together with
// what came before, as if the input ended with it. So no part is held back, and a
// word that is split is judged whole before its second half is sent.
type input struct {
	text []byte
	// cut says that the beginning of text is forgotten.
	cut bool
	// head is how the line begins whose beginning is forgotten; "" if text begins with
	// a line.
	head string
	// scanned is how far text was searched for programs that read on.
	scanned int
	readers []reader
	// lost says why it is no longer known what the process was sent.
	lost string
}

// reader is who may be reading the input from an offset on.
type reader struct {
	use  envd.Use
	from int
}

// judged is an input with one more message, before the sandbox has it.
type judged struct {
	input
	subjects []guard.Subject
	// keys is set for input to a terminal, of which input says nothing.
	keys *typed
}

// with tells what a guard must see before data is sent to p, and what will be
// known of the input afterwards.
func (in *input) with(p *process, user string, data []byte) (*judged, *refusal.Refusal) {
	next := &judged{input: input{cut: in.cut, head: in.head, scanned: in.scanned, readers: slices.Clone(in.readers), lost: in.lost}}
	if len(p.stdin) == 0 {
		return next, nil // only read as data
	}
	if next.lost != "" {
		return nil, refusal.New(refusal.CodePolicy, "Blocked by policy: "+next.lost+" Start a new process for further input.")
	}
	if len(next.readers) == 0 {
		for _, use := range p.stdin {
			next.readers = append(next.readers, reader{use, 0})
		}
	}
	next.text = append(slices.Clip(slices.Clone(in.text)), data...)
	if ref := next.bound(len(data)); ref != nil {
		return nil, ref
	}
	if len(data) > 0 && next.splitsCommand(len(data)) {
		return nil, refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: the input continues a line of more than %d KiB that begins like a command, which is more than is judged together. Send a shorter line, or the whole line in one message.", dataKept>>10))
	}
	if ref := next.scan(); ref != nil {
		return nil, ref
	}
	for _, r := range next.readers {
		if r.use.Changed != "" && len(next.text) > r.from {
			return nil, refusal.New(refusal.CodePolicy, "Blocked by policy: this process runs its input after "+r.use.Changed+" has changed it, so that what will run cannot be told. Send it as it is to run, or write it to a file and run that.")
		}
	}
	next.subjects = next.look(p, user)
	return next, nil
}

// bound forgets the oldest lines of a text that has grown too long. Of a language
// that is read as a whole, nothing can be forgotten: a quote in what is forgotten
// would change what the rest means. A shell's text is then judged line by line as
// well, so that nothing can hide in what is forgotten.
func (in *judged) bound(fresh int) *refusal.Refusal {
	limit := dataKept
	for _, r := range in.readers {
		if r.use.Sure {
			limit = codeKept
		}
	}
	if len(in.text) <= limit {
		return nil
	}
	before := in.text[:len(in.text)-fresh]
	oneLine := bytes.LastIndexByte(before, '\n') < len(in.text)-limit
	for _, r := range in.readers {
		if r.use.Sure && len(before) > 0 && (oneLine || r.use.Language != "bash") {
			return refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: more than %d KiB of code were typed into one process, which is more than is judged together. Start a new process, or write the code to a file and run that.", limit>>10))
		}
	}
	drop := max(0, len(in.text)-max(limit, fresh))
	if end := bytes.IndexByte(in.text[drop:], '\n'); end >= 0 && drop+end < len(in.text)-fresh {
		drop += end + 1
	} else if begin := bytes.LastIndexByte(before, '\n') + 1; len(before)-begin <= limit {
		drop = begin // the line that the message continues
	}
	in.forget(drop)
	return nil
}

// forget forgets the first n bytes.
func (in *input) forget(n int) {
	if last := bytes.LastIndexByte(in.text[:n], '\n'); last >= 0 {
		in.head = ""
		if last < n-1 {
			in.head = string(in.text[last+1 : min(n, last+1+headKept)])
		}
	} else if n > 0 && len(in.head) < headKept {
		in.head += string(in.text[:min(n, headKept-len(in.head))])
	}
	in.text, in.cut = in.text[n:], true
	in.scanned = max(0, in.scanned-n)
	for i := range in.readers {
		in.readers[i].from = max(0, in.readers[i].from-n)
	}
}

// headKept is how much is remembered of the beginning of a long line: more than the
// longest path of a program.
const headKept = 4200

// splitsCommand reports whether the last fresh bytes continue a line whose beginning
// is forgotten and may be that of a command.
func (in *judged) splitsCommand(fresh int) bool {
	return in.head != "" && bytes.IndexByte(in.text[:len(in.text)-fresh], '\n') < 0 && envd.LikeCommand(in.head) &&
		slices.ContainsFunc(in.readers, func(r reader) bool { return r.use.Language != "" })
}

// scan finds, in the complete lines that are new, the programs that read on where a
// shell has started them.
func (in *judged) scan() *refusal.Refusal {
	if !slices.ContainsFunc(in.readers, func(r reader) bool { return r.use.Language == "bash" }) {
		return nil
	}
	sure := slices.ContainsFunc(in.readers, func(r reader) bool { return r.use.Language == "bash" && r.use.Sure })
	for {
		n := bytes.IndexByte(in.text[in.scanned:], '\n')
		if n < 0 {
			return nil
		}
		line := in.text[in.scanned : in.scanned+n]
		in.scanned += n + 1
		if bytes.HasSuffix(line, []byte{'\\'}) && !bytes.HasSuffix(line, []byte(`\\`)) && in.scanned < len(in.text) {
			continue // its other half tells; a name split over lines is found by the guard
		}
		command := string(line)
		if !sure {
			command = envd.Printable(command)
		}
		if strings.TrimSpace(command) == "" {
			continue
		}
		for _, use := range envd.LineUses(command) {
			if slices.ContainsFunc(in.readers, func(r reader) bool {
				return r.use == use || use.Language != "" && r.use.Language == use.Language && r.use.Parts == use.Parts && r.use.Before == use.Before
			}) {
				continue
			}
			if len(in.readers) >= maxReaders {
				return refusal.New(refusal.CodePolicy, "Blocked by policy: this process has started more programs that read its input than can be told apart. Start a new process for further input.")
			}
			// In data, a word may read like the name of an interpreter.
			use.Sure = use.Sure && sure
			in.readers = append(in.readers, reader{use, in.scanned})
		}
	}
}

// look lists what the input is to each of its readers.
func (in *judged) look(p *process, user string) []guard.Subject {
	var subjects []guard.Subject
	add := func(s guard.Subject) {
		if s.Text == "" || slices.ContainsFunc(subjects, func(o guard.Subject) bool {
			return o.Language == s.Language && o.Text == s.Text && o.Target == s.Target
		}) {
			return
		}
		subjects = append(subjects, s)
	}
	mixed := in.cut || !p.seen || slices.ContainsFunc(in.readers, func(r reader) bool { return r.use.Language != "bash" })
	for _, r := range in.readers {
		text := string(in.text[r.from:])
		switch {
		case r.use.Changed != "":
		case r.use.Path != "":
			subjects = append(subjects, p.written(r.use, user, text)...)
		case r.use.Before != "":
			add(p.subject("bash", envd.Appended(r.use.Before, text)))
			add(p.subject("bash", envd.Unquoted(text)))
		case r.use.Language != "bash" && r.use.Sure:
			add(p.subject(r.use.Language, text))
		case r.use.Language != "bash":
			for _, piece := range pieces(readable(text)) {
				add(p.subject(r.use.Language, piece))
			}
		default:
			if !r.use.Sure {
				text = envd.Printable(text)
			}
			if r.use.Parts {
				for _, piece := range pieces(envd.Unquoted(text)) {
					add(p.subject("bash", piece))
				}
			}
			text = strings.ReplaceAll(text, "\x00", "") // shells drop them
			whole := !in.cut && (r.use.Sure || !mixed && len(text) <= codeKept)
			if whole {
				add(p.subject("bash", text))
			}
			if whole && !mixed && r.use.Sure && len(envd.ScriptUses(text)) == 0 {
				break // nothing but the shell reads it
			}
			lines := envd.Lines(text)
			switch {
			case whole && strings.TrimSuffix(lines, "\n") == strings.TrimSuffix(text, "\n"):
			case r.use.Sure:
				add(p.subject("bash", lines))
			default:
				for _, piece := range pieces(lines) {
					add(p.subject("bash", piece))
				}
			}
		}
	}
	return subjects
}

// written is what a guard must see of the input as the text of a file.
func (p *process) written(use envd.Use, user, text string) (subjects []guard.Subject) {
	class, ran := p.files.classify(p.sandbox, use.Path, []byte(text[:min(len(text), files.HeadBytes)]))
	parts := []string{text}
	if use.Made && !class.Code {
		class = files.Class{Code: true, SelfRunning: true, Language: "bash", Why: "its path is made when it is written"}
		if plain := envd.Printable(text); plain != text {
			text = envd.Lines(plain)
		}
		parts = pieces(text)
	}
	for _, part := range parts {
		if !class.Code {
			part = ""
		}
		subjects = append(subjects, writeSubjects(use.Path, user, class, ran, part)...)
	}
	return subjects
}

// pieces parts data that is probably no code at the ends of lines, so that a guard
// reads any amount of it: where it is all of one line, that is one piece.
func pieces(text string) (out []string) {
	for len(text) > codeKept {
		end := strings.LastIndexByte(text[:codeKept], '\n') + 1
		if end == 0 {
			if end = strings.IndexByte(text, '\n') + 1; end == 0 {
				break
			}
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return append(out, text)
}

// readable leaves out the lines of data that no interpreter reads as code.
func readable(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if utf8.ValidString(line) && !strings.Contains(line, "\x00") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (p *process) subject(language, text string) guard.Subject {
	target := p.tag
	if target == "" {
		target = fmt.Sprint("pid ", p.pid)
	}
	return guard.Subject{Kind: guard.KindInput, Language: language, Text: text, Target: target}
}

// take makes what was judged what is known: the sandbox has it.
func (p *process) take(next *judged, ps *processes) {
	p.input = next.input
	if limit := p.input.kept(); len(p.input.text) > limit {
		p.input.forget(len(p.input.text) - limit)
		p.input.text = slices.Clone(p.input.text)
	}
	ps.keep(p, len(p.input.text))
}

// kept is how much is remembered for the next message.
func (in *input) kept() int {
	if slices.ContainsFunc(in.readers, func(r reader) bool { return r.use.Sure }) {
		return codeKept
	}
	return dataKept
}
