package pty

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// The largest terminal whose screen is followed. A larger one is not seen: its
// size is the client's word, and must not decide how much memory is used.
const (
	maxCols = 500
	maxRows = 250
)

// screen is what a terminal shows: as much of a VT220 with xterm's additions as
// it takes to read the line under the cursor. Colours, titles and graphics are
// left out. It keeps 4 bytes a cell, rows that were never written none.
type screen struct {
	parser     *ansi.Parser
	cols, rows int
	grid       []row // the one shown
	hidden     []row // the main screen while the alternate one is shown
	alternate  bool
	// line and col are the cursor; wrap says that it stands past the last column.
	line, col   int
	wrap        bool
	saved       [2]int // line, col
	top, bottom int    // scrolling region, both inclusive
	insert      bool   // characters push those after them to the right

	// pasting is bracketed paste mode, which line editors switch on while they
	// read a line; prompts counts how often it was, outside the alternate screen.
	pasting bool
	prompts int
	// frames counts the pieces of output seen, feeds the lines.
	frames, feeds int
}

// row is one line of cells; 0 is a blank, -1 the second half of a wide character.
type row struct {
	cells []rune
	// wrapped says that the text goes on in the next row.
	wrapped bool
	// inexact says that something was written that cells cannot hold.
	inexact bool
}

// newScreen returns an empty screen, or nil if it is too large to be followed.
func newScreen(cols, rows int) *screen {
	if cols < 1 || rows < 1 || cols > maxCols || rows > maxRows {
		return nil
	}
	s := &screen{parser: ansi.NewParser(), cols: cols, rows: rows, grid: make([]row, rows), bottom: rows - 1}
	s.parser.SetDataSize(64) // titles and graphics are not kept
	s.parser.SetParamsSize(16)
	s.parser.SetHandler(ansi.Handler{Print: s.print, Execute: s.execute, HandleCsi: s.csi, HandleEsc: s.esc})
	return s
}

func (s *screen) write(b []byte) {
	s.frames++
	for _, c := range b {
		s.parser.Advance(c)
	}
}

// resize takes over what fits. A terminal that is made narrower wraps as it
// pleases, so rows that no longer fit are not exact.
func (s *screen) resize(cols, rows int) *screen {
	n := newScreen(cols, rows)
	if n == nil {
		return nil
	}
	skip := max(0, s.line-rows+1)
	for i := range min(rows, s.rows-skip) {
		r := s.grid[skip+i]
		if len(r.cells) > cols {
			r.cells, r.inexact = r.cells[:cols], true
		}
		r.inexact = r.inexact || r.wrapped
		n.grid[i] = r
	}
	n.line, n.col = s.line-skip, min(s.col, cols-1)
	n.alternate, n.pasting, n.prompts, n.frames, n.feeds = s.alternate, s.pasting, s.prompts, s.frames, s.feeds
	return n
}

func (s *screen) print(r rune) {
	width := 1
	if r >= 0x7f {
		width = ansi.StringWidth(string(r))
	}
	if width == 0 || r == utf8.RuneError {
		s.grid[s.line].inexact = true
		if width == 0 {
			return
		}
	}
	if s.wrap || s.col+width > s.cols {
		s.grid[s.line].wrapped = true
		s.col, s.wrap = 0, false
		s.feed()
	}
	cells := s.cells(s.line, s.col+width)
	if s.insert {
		s.insertBlanks(width)
		cells = s.grid[s.line].cells
	}
	cells[s.col] = r
	if width == 2 && s.col+1 < len(cells) {
		cells[s.col+1] = -1
	}
	s.col += width
	if s.col >= s.cols {
		s.col, s.wrap = s.cols-1, true
	}
}

// cells gives the cells of a row, at least n of them.
func (s *screen) cells(line, n int) []rune {
	r := &s.grid[line]
	if len(r.cells) < n {
		r.cells = append(r.cells, make([]rune, min(max(n, 2*len(r.cells)), s.cols)-len(r.cells))...)
	}
	return r.cells
}

func (s *screen) execute(b byte) {
	switch b {
	case '\r':
		s.col, s.wrap = 0, false
	case '\n', '\v', '\f':
		s.wrap = false
		s.feed()
	case '\b':
		if !s.wrap {
			s.col = max(0, s.col-1)
		}
		s.wrap = false
	case '\t':
		s.col, s.wrap = min(s.cols-1, (s.col/8+1)*8), false
	}
}

// feed moves the cursor down, scrolling at the end of the region.
func (s *screen) feed() {
	s.feeds++
	switch {
	case s.line == s.bottom:
		s.scroll(s.top, s.bottom, 1)
	case s.line < s.rows-1:
		s.line++
	}
}

// scroll moves the rows from top to bottom up by n, or down if n is negative.
func (s *screen) scroll(top, bottom, n int) {
	region := s.grid[top : bottom+1]
	size := len(region)
	if n >= 0 {
		n = min(n, size)
		copy(region, region[n:])
		clear(region[size-n:])
		return
	}
	n = min(-n, size)
	copy(region[n:], region[:size-n])
	clear(region[:n])
}

func (s *screen) esc(cmd ansi.Cmd) {
	if cmd.Intermediate() != 0 {
		return // character sets
	}
	switch cmd.Final() {
	case '7':
		s.saved = [2]int{s.line, s.col}
	case '8':
		s.move(s.saved[0], s.saved[1])
	case 'D':
		s.feed()
	case 'E':
		s.col = 0
		s.feed()
	case 'M':
		if s.line == s.top {
			s.scroll(s.top, s.bottom, -1)
		} else {
			s.line = max(0, s.line-1)
		}
	case 'c':
		clear(s.grid)
		s.move(0, 0)
		s.top, s.bottom, s.insert = 0, s.rows-1, false
		s.show(false)
		s.pasting = false
	}
}

// move puts the cursor where it can be.
func (s *screen) move(line, col int) {
	s.line, s.col, s.wrap = min(max(line, 0), s.rows-1), min(max(col, 0), s.cols-1), false
}

func (s *screen) csi(cmd ansi.Cmd, params ansi.Params) {
	if cmd.Intermediate() != 0 {
		return
	}
	if cmd.Prefix() != 0 {
		if f := cmd.Final(); cmd.Prefix() == '?' && (f == 'h' || f == 'l') {
			params.ForEach(0, func(_, p int, _ bool) { s.mode(p, f == 'h') })
		}
		return
	}
	arg := func(i, def int) int { // bounded: it is a count of cells or rows
		n, _, _ := params.Param(i, def)
		return min(max(n, def), max(maxCols, maxRows))
	}
	n := arg(0, 1)
	switch cmd.Final() {
	case 'A':
		s.move(s.line-n, s.col)
	case 'B', 'e':
		s.move(s.line+n, s.col)
	case 'C', 'a':
		s.move(s.line, s.col+n)
	case 'D':
		s.move(s.line, s.col-n)
	case 'E':
		s.move(s.line+n, 0)
	case 'F':
		s.move(s.line-n, 0)
	case 'G', '`':
		s.move(s.line, n-1)
	case 'H', 'f':
		s.move(n-1, arg(1, 1)-1)
	case 'd':
		s.move(n-1, s.col)
	case 'J':
		s.eraseDisplay(arg(0, 0))
	case 'K':
		s.eraseLine(arg(0, 0))
	case 'X':
		s.erase(s.line, s.col, min(s.col+n, s.cols))
	case '@':
		s.insertBlanks(n)
	case 'P':
		s.deleteCells(n)
	case 'L':
		s.shift(-n)
	case 'M':
		s.shift(n)
	case 'S':
		s.scroll(s.top, s.bottom, n)
	case 'T':
		s.scroll(s.top, s.bottom, -n)
	case 'r':
		top, bottom := n-1, min(arg(1, s.rows), s.rows)-1
		if top < bottom {
			s.top, s.bottom = top, bottom
			s.move(0, 0)
		}
	case 's':
		s.saved = [2]int{s.line, s.col}
	case 'u':
		s.move(s.saved[0], s.saved[1])
	case 'h', 'l':
		params.ForEach(0, func(_, p int, _ bool) {
			if p == 4 {
				s.insert = cmd.Final() == 'h'
			}
		})
	}
}

func (s *screen) mode(p int, on bool) {
	switch p {
	case 47, 1047, 1049:
		s.show(on)
	case 2004:
		if on && !s.alternate {
			s.prompts++
		}
		s.pasting = on
	}
}

// show switches between the main and the alternate screen.
func (s *screen) show(alternate bool) {
	if alternate == s.alternate {
		return
	}
	s.alternate = alternate
	if alternate {
		s.hidden, s.grid = s.grid, make([]row, s.rows)
		s.saved = [2]int{s.line, s.col}
		return
	}
	if len(s.hidden) == s.rows {
		s.grid = s.hidden
	} else {
		s.grid = make([]row, s.rows)
	}
	s.hidden = nil
	s.top, s.bottom = 0, s.rows-1
	s.move(s.saved[0], s.saved[1])
}

func (s *screen) eraseDisplay(how int) {
	switch how {
	case 0:
		s.eraseLine(0)
		clear(s.grid[s.line+1:])
	case 1:
		s.eraseLine(1)
		clear(s.grid[:s.line])
	case 2, 3:
		if how == 2 {
			clear(s.grid)
		}
	}
}

func (s *screen) eraseLine(how int) {
	switch how {
	case 0:
		s.erase(s.line, s.col, s.cols)
		s.grid[s.line].wrapped = false
	case 1:
		s.erase(s.line, 0, s.col+1)
	case 2:
		s.grid[s.line] = row{}
	}
	s.wrap = false
}

func (s *screen) erase(line, from, to int) {
	cells := s.grid[line].cells
	clear(cells[min(from, len(cells)):min(to, len(cells))])
}

func (s *screen) insertBlanks(n int) {
	cells := s.cells(s.line, s.cols)
	n = min(n, s.cols-s.col)
	copy(cells[s.col+n:], cells[s.col:])
	clear(cells[s.col : s.col+n])
}

func (s *screen) deleteCells(n int) {
	cells := s.cells(s.line, s.cols)
	n = min(n, s.cols-s.col)
	copy(cells[s.col:], cells[s.col+n:])
	clear(cells[s.cols-n:])
	s.wrap = false
}

// shift deletes n lines at the cursor, or inserts them if n is negative.
func (s *screen) shift(n int) {
	if s.line >= s.top && s.line <= s.bottom {
		s.scroll(s.line, s.bottom, n)
	}
}

// before is the text of the logical line under the cursor, from its first row up
// to the cursor, and whether it is exactly what was written there.
func (s *screen) before() (text string, exact bool) {
	first := s.line
	for first > 0 && s.grid[first-1].wrapped {
		first--
	}
	var b strings.Builder
	exact = true
	for i := first; i <= s.line; i++ {
		end := s.cols
		if i == s.line && !s.wrap {
			end = s.col
		}
		exact = exact && !s.grid[i].inexact
		s.text(&b, i, end)
	}
	return b.String(), exact
}

// under is the whole row of the cursor, without blanks at its end.
func (s *screen) under() string {
	var b strings.Builder
	s.text(&b, s.line, len(s.grid[s.line].cells))
	return strings.TrimRight(b.String(), " ")
}

func (s *screen) text(b *strings.Builder, line, end int) {
	cells := s.grid[line].cells
	for i := range end {
		switch {
		case i >= len(cells) || cells[i] == 0:
			b.WriteByte(' ')
		case cells[i] > 0:
			b.WriteRune(cells[i])
		}
	}
}
