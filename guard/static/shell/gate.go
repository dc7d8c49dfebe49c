package shell

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Limits of what is parsed as shell.
const (
	// maxShell is the longest text, in bytes, that is parsed as shell.
	maxShell = 1 << 20
	// maxFrames is how deep the parser's own recursion may go; one level of
	// shell nesting is six to ten frames, so this is some hundred levels.
	maxFrames = 1200
	// readSize is how much text the parser gets between two looks at its depth.
	readSize = 512
	// maxErrors bounds how often parsing starts again after an error.
	maxErrors = 200
)

var errDepth = errors.New("nesting too deep")

// gatedReader hands text to the parser in small pieces and looks, each time,
// at how deep the parser's recursion has become. Unguarded, a megabyte of
// opening brackets exhausts the stack, which ends the process and cannot be
// recovered; a scan of the text beforehand can be misled by quotes, the stack
// cannot.
//
// It also spends the budget as text is read, more for what makes the parser
// work: a byte that starts a node costs most.
type gatedReader struct {
	rest   string
	budget *effect.Budget
	begun  bool
	deep   bool
}

func (g *gatedReader) Read(p []byte) (int, error) {
	if g.rest == "" {
		return 0, io.EOF
	}

	// The look is dear, and most texts are read in one piece.
	if g.begun && stackDeeper(maxFrames) {
		g.deep = true

		return 0, errDepth
	}

	g.begun = true

	n := copy(p[:min(len(p), readSize)], g.rest)
	cost := n / 8

	for _, b := range []byte(g.rest[:n]) {
		cost += int(byteCost[b])
	}

	if !g.budget.Spend(cost / 2) {
		return 0, errBudget
	}

	g.rest = g.rest[n:]

	return n, nil
}

// stackDeeper says whether the stack has more than so many frames.
func stackDeeper(frames int) bool {
	var pc [1]uintptr

	return runtime.Callers(frames, pc[:]) > 0
}

var errBudget = errors.New("out of steps")

// byteCost is, in half steps, what a byte costs to parse.
var byteCost = func() (t [256]uint8) {
	for _, b := range []byte("|&;()<>`$[]{}!*?@#\\") {
		t[b] = 10
	}

	// A line is at least a statement, and a blank is seldom without a word.
	t['\n'] = 8

	for _, b := range []byte("'\" ") {
		t[b] = 4
	}

	return t
}()

var parsers = sync.Pool{New: func() any {
	return syntax.NewParser(syntax.Variant(syntax.LangBash))
}}

// parse splits text into statements. Where the parser gives up, what it read
// is kept, the offending line is read again in pieces, and parsing goes on
// after the next newline, as a shell does that reads line by line.
func parse(text string, budget *effect.Budget, run func([]*syntax.Stmt, int), note func(effect.NoteKind, int, string)) {
	if len(text) > maxShell {
		note(effect.NoteBudget, maxShell, "text too long to be read as shell")

		return
	}

	base := 0

	for tries := 0; base < len(text); tries++ {
		rest := text[base:]

		stmts, bad, deep := parseOnce(rest, budget)

		switch {
		case budget.Exhausted():
			note(effect.NoteBudget, base, "out of steps")

			return
		case deep:
			note(effect.NoteDepth, base, "nesting too deep")

			return
		case bad < 0:
			run(stmts, base)

			return
		}

		note(effect.NoteSyntax, base+bad, "syntax error")

		if tries > maxErrors {
			note(effect.NoteForeign, base, "too many syntax errors")

			return
		}

		base += recoverLine(rest, stmts, bad, base, budget, run)
	}
}

// parseOnce parses text up to its end or its first error, whose offset is bad.
func parseOnce(text string, budget *effect.Budget) (stmts []*syntax.Stmt, bad int, deep bool) {
	p, _ := parsers.Get().(*syntax.Parser)
	r := &gatedReader{rest: text, budget: budget}
	file, err := p.Parse(r, "")

	parsers.Put(p)

	if file != nil {
		stmts = file.Stmts
	}

	if r.deep {
		return stmts, 0, true
	}

	if err == nil {
		return stmts, -1, false
	}

	var (
		pe syntax.ParseError
		le syntax.LangError
		qe syntax.QuoteError
	)

	switch {
	case errors.As(err, &pe):
		bad = int(pe.Pos.Offset())
	case errors.As(err, &le):
		bad = int(le.Pos.Offset())
	case errors.As(err, &qe):
		bad = 0
	}

	return stmts, min(bad, len(text)), false
}

// recoverLine runs what came before an error, then the broken line in pieces,
// and returns where to go on.
func recoverLine(text string, stmts []*syntax.Stmt, bad, base int, budget *effect.Budget, run func([]*syntax.Stmt, int)) int {
	start := 0

	if len(stmts) > 0 {
		good := stmts[:0:0]

		for _, s := range stmts {
			if s.End().IsValid() && int(s.End().Offset()) <= bad {
				good = append(good, s)
				start = int(s.End().Offset())
			}
		}

		run(good, base)
	}

	end := len(text)
	if i := strings.IndexByte(text[bad:], '\n'); i >= 0 {
		end = bad + i + 1
	}

	// From the last good statement to the end of the broken line.
	broken := strings.TrimLeft(text[start:end], " \t;&|\n")
	at := end - len(broken)

	if len(broken) > maxBroken {
		broken = broken[:maxBroken]
	}

	for _, fix := range []string{`"`, `'`, "\n}", ")", "`", "\nfi", "\ndone", "\n:\nfi", "\n:\ndone", `")`, `')`} {
		if s, e, deep := parseOnce(broken+fix, budget); e < 0 && !deep && len(s) > 0 {
			run(s, base+at)

			return end
		}
	}

	runPieces(broken, base+at, budget, run)

	return end
}

// maxBroken bounds how much of a broken line is read again.
const maxBroken = 16 << 10

// runPieces reads a line no parser accepts at its separators.
func runPieces(line string, base int, budget *effect.Budget, run func([]*syntax.Stmt, int)) {
	at, count := 0, 0

	for at < len(line) && count < maxErrors {
		end := at
		for end < len(line) && strings.IndexByte(";|&\n(){}`", line[end]) < 0 {
			end++
		}

		if piece := line[at:end]; strings.TrimSpace(piece) != "" {
			count++

			if s, bad, deep := parseOnce(piece, budget); !deep && (bad < 0 || len(s) > 0) {
				run(s, base+at)
			}
		}

		at = end + 1
	}
}
