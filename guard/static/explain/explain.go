// Package explain is what "e2bguard check" does: judge one text and tell what
// was seen, list the rules, or measure the guard on a corpus.
package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/eval"
)

// Exit codes of Run.
const (
	ExitPass  = 0
	ExitBlock = 1
	ExitError = 2
)

// Options say what Run does. The zero value judges Text as code in a language
// found by its looks and prints text.
type Options struct {
	// Rules lists the rules instead of judging.
	Rules bool
	// EvalDir measures the guard on a corpus instead of judging; Misses names a
	// file that gets what was judged other than labelled.
	EvalDir string
	Misses  string

	// Text is judged. Surface is "command", "code" or "file"; empty means code.
	// Language may be empty. Target is the path for the file surface.
	Text     string
	Language string
	Surface  string
	Target   string

	// Format is "text" or "json"; empty means text. Rules may also be had as
	// "markdown", for documentation. Verbose adds effects.
	Format  string
	Verbose bool

	// Guard configures the static guard.
	Guard static.Options

	// Errors gets messages about what went wrong; nil means standard error.
	Errors io.Writer
}

// Run does what opts say, prints to w, and returns the exit code.
func Run(w io.Writer, opts Options) (exit int) {
	code, err := run(w, opts)
	if err != nil {
		errs := opts.Errors
		if errs == nil {
			errs = os.Stderr
		}

		fmt.Fprintf(errs, "check: %v\n", err)

		return ExitError
	}

	return code
}

func run(w io.Writer, opts Options) (int, error) {
	switch {
	case opts.Format == "", opts.Format == "text", opts.Format == "json", opts.Format == "markdown" && opts.Rules:
	default:
		return ExitError, fmt.Errorf("unknown format %q: write text or json", opts.Format)
	}

	if opts.Rules {
		return ExitPass, writeRules(w, opts.Format)
	}

	g, err := static.New(opts.Guard)
	if err != nil {
		return ExitError, err
	}

	if opts.EvalDir != "" {
		return ExitPass, evaluate(w, g, opts)
	}

	s, err := subject(opts)
	if err != nil {
		return ExitError, err
	}

	f := g.Inspect(s)
	v := f.Verdict()

	if opts.Format == "json" {
		err = writeJSON(w, &f, &v, opts.Verbose)
	} else {
		err = writeText(w, &f, &v, opts.Verbose)
	}

	if err != nil {
		return ExitError, err
	}

	if v.Decision == guard.Block {
		return ExitBlock, nil
	}

	return ExitPass, nil
}

func subject(opts Options) (guard.Subject, error) {
	s := guard.Subject{Kind: guard.KindCode, Language: opts.Language, Text: opts.Text, Target: opts.Target}

	switch opts.Surface {
	case "", "code":
		s.Target = ""
	case "command":
		s.Kind = guard.KindCommand

		if s.Language == "" {
			s.Language = "bash"
		}
	case "file":
		s.Kind = guard.KindFile
		s.Labels = map[string]string{guard.LabelAction: "write"}
	default:
		return s, fmt.Errorf("unknown surface %q: write command, code or file", opts.Surface)
	}

	return s, nil
}

func evaluate(w io.Writer, g *static.Guard, opts Options) error {
	r, err := eval.Run(context.Background(), g, opts.EvalDir)
	if err != nil {
		return err
	}

	if opts.Misses != "" {
		f, err := os.Create(opts.Misses)
		if err != nil {
			return fmt.Errorf("writing misses: %w", err)
		}

		if err := r.WriteMisses(f); err != nil {
			_ = f.Close()

			return err
		}

		if err := f.Close(); err != nil {
			return fmt.Errorf("writing misses: %w", err)
		}
	}

	if opts.Format == "json" {
		return r.WriteJSON(w)
	}

	return r.WriteText(w)
}

func writeRules(w io.Writer, format string) error {
	type rule struct {
		ID       string `json:"id"`
		Category string `json:"category"`
		Severity string `json:"severity"`
		CWE      string `json:"cwe,omitempty"`
		Text     string `json:"text"`
	}

	rules := make([]rule, 0, 64)
	for _, r := range static.Rules() {
		rules = append(rules, rule{r.ID, r.Category, r.Severity.String(), r.CWE, strings.ReplaceAll(r.Seen, "{}", "…") + " " + r.Fine})
	}

	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")

		return enc.Encode(rules)
	}

	var b strings.Builder

	if format == "markdown" {
		b.WriteString("| rule | category | severity | CWE | what it says |\n|---|---|---|---|---|\n")

		for _, r := range rules {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Category, r.Severity, r.CWE, strings.ReplaceAll(r.Text, "|", "\\|"))
		}

		_, err := io.WriteString(w, b.String())

		return err
	}

	for _, r := range rules {
		fmt.Fprintf(&b, "%-24s %-22s %-9s %-9s %s\n", r.ID, r.Category, r.Severity, r.CWE, r.Text)
	}

	_, err := io.WriteString(w, b.String())

	return err
}

func writeText(w io.Writer, f *static.Findings, v *guard.Verdict, verbose bool) error {
	var b strings.Builder

	b.WriteString(v.Decision.String() + ": " + v.Reasoning + "\n")

	for _, h := range f.Hits {
		fmt.Fprintf(&b, "\n%s (%s, %s, %s)\n", h.Rule.ID, h.Rule.Category, h.Rule.Severity, h.Rule.CWE)
		underline(&b, f.Subject.Text, h.Span)
	}

	if verbose {
		fmt.Fprintf(&b, "\nlanguage: %s, steps: %d\n", f.Language, f.Steps)

		for _, h := range f.Muted {
			fmt.Fprintf(&b, "muted: %s (%s)\n", h.Rule.ID, h.Rule.Severity)
		}

		for _, n := range f.Notes {
			fmt.Fprintf(&b, "note at %d: %s\n", n.Offset, n.Text)
		}

		for i := range f.Effects {
			b.WriteString(effectLine(&f.Effects[i]) + "\n")
		}
	}

	_, err := io.WriteString(w, b.String())

	return err
}

// underline shows the lines a span is in, with carets below it.
func underline(b *strings.Builder, text string, s effect.Span) {
	start, end := min(s.Start, len(text)), min(s.End, len(text))
	line := strings.LastIndexByte(text[:start], '\n') + 1

	for shown := 0; line < end || shown == 0; shown++ {
		if shown == 5 {
			b.WriteString("  …\n")

			return
		}

		stop := len(text)
		if i := strings.IndexByte(text[line:], '\n'); i >= 0 {
			stop = line + i
		}

		row := text[line:stop]
		from, to := max(start-line, 0), min(end, stop)-line

		// A long line is cut around what is underlined.
		const width = 110
		if len(row) > width {
			cut := max(min(from-20, len(row)-width), 0)
			row = row[cut:min(cut+width, len(row))]
			from, to = from-cut, min(to-cut, len(row))
		}

		row = strings.Map(printable, row)
		b.WriteString("  " + row + "\n")

		if to > from && from < len(row) {
			b.WriteString("  " + strings.Repeat(" ", from) + strings.Repeat("^", min(to, len(row))-from) + "\n")
		}

		line = stop + 1
		if line > len(text) {
			return
		}
	}
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0xFFFD {
		return ' '
	}

	return r
}

func show(v effect.Value) string {
	s := strings.ReplaceAll(v.Text, effect.HoleText, "…")
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}

	s = fmt.Sprintf("%q", s)
	if v.Taint != 0 {
		s += "{" + v.Taint.String() + "}"
	}

	return s
}

func effectLine(e *effect.Effect) string {
	s := fmt.Sprintf("  %5d-%-5d %-8s %s", e.Span.Start, e.Span.End, e.Kind, show(e.Target))
	for _, a := range e.Args {
		s += " " + show(a)
	}

	if e.Data.Text != "" || e.Data.Taint != 0 {
		s += " data=" + show(e.Data)
	}

	if e.Port.Text != "" {
		s += " port=" + show(e.Port)
	}

	if e.Via != "" {
		s += " via " + e.Via
	}

	return s
}

func writeJSON(w io.Writer, f *static.Findings, v *guard.Verdict, verbose bool) error {
	type effectJSON struct {
		Kind   string   `json:"kind"`
		Start  int      `json:"start"`
		End    int      `json:"end"`
		Target string   `json:"target"`
		Args   []string `json:"args,omitempty"`
		Taint  string   `json:"taint,omitempty"`
		Via    string   `json:"via,omitempty"`
	}

	type out struct {
		Decision   string            `json:"decision"`
		Reasoning  string            `json:"reasoning"`
		Violations []guard.Violation `json:"violations"`
		Language   string            `json:"language"`
		Normalized []string          `json:"normalized,omitempty"`
		Muted      []string          `json:"muted,omitempty"`
		Effects    []effectJSON      `json:"effects,omitempty"`
	}

	o := out{Decision: v.Decision.String(), Reasoning: v.Reasoning, Violations: v.Violations, Language: f.Language, Normalized: f.Normalized}
	if o.Violations == nil {
		o.Violations = []guard.Violation{}
	}

	for _, h := range f.Muted {
		o.Muted = append(o.Muted, h.Rule.ID)
	}

	sort.Strings(o.Muted)

	if verbose {
		for i := range f.Effects {
			e := &f.Effects[i]
			j := effectJSON{Kind: e.Kind.String(), Start: e.Span.Start, End: e.Span.End, Target: e.Target.Text, Taint: e.Data.Taint.String(), Via: e.Via}

			for _, a := range e.Args {
				j.Args = append(j.Args, a.Text)
			}

			o.Effects = append(o.Effects, j)
		}
	}

	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")

	return enc.Encode(o)
}
