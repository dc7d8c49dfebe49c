package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// result is a step and what came of it.
type result struct {
	step step
	got  answer
	took time.Duration
}

func (r result) held() bool { return r.got.Status == r.step.want }

// Widths of the table's columns, in characters.
const (
	triedWidth  = 44
	reasonWidth = 76
)

const rowFormat = "%-5s  %-*s  %-13s  %-8s  %-8s  %7s  %s\n"

// printTable shows the results and returns how many came out as expected.
func printTable(out io.Writer, results []result) (held int) {
	fmt.Fprintf(out, rowFormat, "", triedWidth, "tried", "surface", "expected", "got", "took", "reason or output")
	for _, r := range results {
		mark := "WRONG"
		if r.held() {
			mark = "ok"
			held++
		}
		tried := wrap(r.step.tried, triedWidth)
		reason := wrap(strings.Join(strings.Fields(r.got.Text), " "), reasonWidth)
		fmt.Fprintf(out, rowFormat, mark, triedWidth, tried[0], r.step.surface, r.step.want, r.got.Status, shortly(r.took), reason[0])
		for i := 1; i < max(len(tried), len(reason)); i++ {
			fmt.Fprintf(out, rowFormat, "", triedWidth, at(tried, i), "", "", "", "", at(reason, i))
		}
	}
	return held
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func shortly(d time.Duration) string {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// wrap breaks text at spaces into lines of at most width characters; a longer
// word has a line of its own. It returns at least one line.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
