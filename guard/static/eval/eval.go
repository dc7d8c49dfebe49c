// Package eval measures a guard on a corpus of labelled snippets.
//
// A corpus is a folder of JSON Lines files, one object a line; see Item. The
// headline figures are recall on clear malice and the false positive rate;
// snippets of the category "unsafe_code_quality" are insecure rather than
// malicious and are left out of both.
package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/e2bguard/e2bguard/guard"
)

// Item is one snippet of a corpus.
type Item struct {
	ID           string `json:"id"`
	Source       string `json:"source"`
	Lang         string `json:"lang"`
	Surface      string `json:"surface"`
	Label        string `json:"label"`
	Category     string `json:"category"`
	Severity     string `json:"severity"`
	HardNegative bool   `json:"hard_negative"`
	Contested    bool   `json:"contested"`
	Text         string `json:"text"`
}

// codeQuality is the category that is not malice.
const codeQuality = "unsafe_code_quality"

// Counts are the figures of one group of snippets.
type Counts struct {
	Clear            int `json:"clear"`
	ClearBlocked     int `json:"clear_blocked"`
	Arguable         int `json:"arguable"`
	ArguableBlocked  int `json:"arguable_blocked"`
	Benign           int `json:"benign"`
	BenignBlocked    int `json:"benign_blocked"`
	Hard             int `json:"hard_negative"`
	HardBlocked      int `json:"hard_negative_blocked"`
	Contested        int `json:"contested"`
	ContestedBlocked int `json:"contested_blocked"`
}

// Report is the result of a measurement. Rates are between 0 and 1; a rate
// without snippets is 0.
type Report struct {
	Items int `json:"items"`
	// RecallClear and RecallArguable are the shares of malicious snippets that
	// were blocked.
	RecallClear    float64 `json:"recall_clear"`
	RecallArguable float64 `json:"recall_arguable"`
	// FalsePositiveRate is the share of benign snippets that were blocked,
	// without those whose label is contested.
	FalsePositiveRate          float64 `json:"false_positive_rate"`
	FalsePositiveRateContested float64 `json:"false_positive_rate_with_contested"`
	// HardNegativeRate is the same among those that look dangerous and are not.
	HardNegativeRate float64 `json:"hard_negative_rate"`
	// P50 and P99 are microseconds a snippet; PerKB is the median of microseconds
	// per kilobyte among snippets of at least 512 bytes.
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	PerKB float64 `json:"p50_us_per_kb"`

	Total      Counts             `json:"total"`
	ByLang     map[string]*Counts `json:"by_lang"`
	BySource   map[string]*Counts `json:"by_source"`
	ByCategory map[string]*Counts `json:"by_category"`

	// Misses are malicious snippets that passed and benign ones that did not.
	Misses []Miss `json:"-"`
}

// Miss is one snippet that was judged other than labelled.
type Miss struct {
	Item
	Reasoning string   `json:"reasoning,omitempty"`
	Rules     []string `json:"rules,omitempty"`
}

// Run measures a guard on every *.jsonl file of a folder.
func Run(ctx context.Context, g guard.Guard, dir string) (*Report, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("listing corpus: %w", err)
	}

	if len(files) == 0 {
		return nil, fmt.Errorf("listing corpus: no .jsonl file in %s", dir)
	}

	sort.Strings(files)

	r := &Report{ByLang: map[string]*Counts{}, BySource: map[string]*Counts{}, ByCategory: map[string]*Counts{}}

	var times, perKB []float64

	for _, name := range files {
		items, err := Load(name)
		if err != nil {
			return nil, err
		}

		for i := range items {
			took, err := r.judge(ctx, g, &items[i])
			if err != nil {
				return nil, fmt.Errorf("judging %s: %w", items[i].ID, err)
			}

			us := float64(took.Nanoseconds()) / 1e3
			times = append(times, us)

			if n := len(items[i].Text); n >= 512 {
				perKB = append(perKB, us*1024/float64(n))
			}
		}
	}

	r.finish(times, perKB)

	return r, nil
}

// Load reads one file of a corpus.
func Load(name string) ([]Item, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading corpus: %w", err)
	}

	var items []Item

	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, len(data)+1)

	for line := 1; sc.Scan(); line++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}

		var it Item
		if err := json.Unmarshal(sc.Bytes(), &it); err != nil {
			return nil, fmt.Errorf("reading corpus %s line %d: %w", filepath.Base(name), line, err)
		}

		items = append(items, it)
	}

	return items, nil
}

// Subject is what a guard is asked about an item.
func (it *Item) Subject() guard.Subject {
	s := guard.Subject{Kind: guard.KindCode, Language: it.Lang, Text: it.Text}

	switch it.Surface {
	case "command":
		s.Kind = guard.KindCommand
	case "file":
		s.Kind = guard.KindFile
		s.Target = "snippet" + map[string]string{"python": ".py", "javascript": ".js", "bash": ".sh", "typescript": ".ts", "r": ".R", "java": ".java"}[it.Lang]
		s.Labels = map[string]string{guard.LabelAction: "write"}
	}

	return s
}

func (r *Report) judge(ctx context.Context, g guard.Guard, it *Item) (time.Duration, error) {
	start := time.Now()

	v, err := g.Review(ctx, it.Subject())
	if err != nil {
		return 0, err
	}

	took := time.Since(start)
	r.Items++

	blocked := v.Decision == guard.Block
	for _, c := range []*Counts{&r.Total, group(r.ByLang, it.Lang), group(r.BySource, it.Source), group(r.ByCategory, it.Label+"/"+it.Category)} {
		c.add(it, blocked)
	}

	if it.Category != codeQuality && blocked != (it.Label == "malicious") {
		m := Miss{Item: *it, Reasoning: v.Reasoning}
		for _, x := range v.Violations {
			m.Rules = append(m.Rules, x.Rule)
		}

		r.Misses = append(r.Misses, m)
	}

	return took, nil
}

func group(m map[string]*Counts, key string) *Counts {
	c := m[key]
	if c == nil {
		c = &Counts{}
		m[key] = c
	}

	return c
}

func (c *Counts) add(it *Item, blocked bool) {
	n := 0
	if blocked {
		n = 1
	}

	switch {
	case it.Category == codeQuality:
	case it.Label == "malicious" && it.Severity == "clear":
		c.Clear++
		c.ClearBlocked += n
	case it.Label == "malicious":
		c.Arguable++
		c.ArguableBlocked += n
	case it.Contested:
		c.Contested++
		c.ContestedBlocked += n
	default:
		c.Benign++
		c.BenignBlocked += n

		if it.HardNegative {
			c.Hard++
			c.HardBlocked += n
		}
	}
}

func (r *Report) finish(times, perKB []float64) {
	t := &r.Total
	r.RecallClear = rate(t.ClearBlocked, t.Clear)
	r.RecallArguable = rate(t.ArguableBlocked, t.Arguable)
	r.FalsePositiveRate = rate(t.BenignBlocked, t.Benign)
	r.FalsePositiveRateContested = rate(t.BenignBlocked+t.ContestedBlocked, t.Benign+t.Contested)
	r.HardNegativeRate = rate(t.HardBlocked, t.Hard)
	r.P50, r.P99, r.PerKB = quantile(times, 0.5), quantile(times, 0.99), quantile(perKB, 0.5)
}

func rate(n, of int) float64 {
	if of == 0 {
		return 0
	}

	return float64(n) / float64(of)
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}

	slices.Sort(v)

	return v[min(int(q*float64(len(v))), len(v)-1)]
}

// WriteMisses writes the misses, one JSON object a line.
func (r *Report) WriteMisses(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)

	for i := range r.Misses {
		if err := enc.Encode(&r.Misses[i]); err != nil {
			return fmt.Errorf("writing misses: %w", err)
		}
	}

	return nil
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")

	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}

	return nil
}

// WriteText writes the report as tables.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer

	fmt.Fprintf(&b, "snippets                 %d\n", r.Items)
	fmt.Fprintf(&b, "recall, clear            %6.2f %%  (%d of %d)\n", 100*r.RecallClear, r.Total.ClearBlocked, r.Total.Clear)
	fmt.Fprintf(&b, "recall, arguable         %6.2f %%  (%d of %d)\n", 100*r.RecallArguable, r.Total.ArguableBlocked, r.Total.Arguable)
	fmt.Fprintf(&b, "false positives          %6.2f %%  (%d of %d)\n", 100*r.FalsePositiveRate, r.Total.BenignBlocked, r.Total.Benign)
	fmt.Fprintf(&b, "  with contested         %6.2f %%\n", 100*r.FalsePositiveRateContested)
	fmt.Fprintf(&b, "  hard negatives         %6.2f %%  (%d of %d)\n", 100*r.HardNegativeRate, r.Total.HardBlocked, r.Total.Hard)
	fmt.Fprintf(&b, "time a snippet           p50 %.1f µs, p99 %.1f µs; p50 per KB %.1f µs\n", r.P50, r.P99, r.PerKB)

	for _, t := range []struct {
		title string
		m     map[string]*Counts
	}{{"language", r.ByLang}, {"source", r.BySource}, {"category", r.ByCategory}} {
		fmt.Fprintf(&b, "\n%-34s %14s %14s %14s %14s\n", t.title, "clear", "arguable", "benign", "hard negative")

		keys := make([]string, 0, len(t.m))
		for k := range t.m {
			keys = append(keys, k)
		}

		sort.Strings(keys)

		for _, k := range keys {
			c := t.m[k]
			fmt.Fprintf(&b, "%-34s %14s %14s %14s %14s\n", k, share(c.ClearBlocked, c.Clear), share(c.ArguableBlocked, c.Arguable), share(c.BenignBlocked, c.Benign), share(c.HardBlocked, c.Hard))
		}
	}

	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}

	return nil
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}

	return fmt.Sprintf("%d/%d", n, of)
}
