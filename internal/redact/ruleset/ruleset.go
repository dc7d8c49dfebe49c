// Package ruleset finds secrets of known and likely form in text that is kept, by
// the rules of gitleaks (https://github.com/gitleaks/gitleaks). They are many and
// slow beside those of package redact, for evidence rather than for streams: some
// 30 µs for a line, 0.4 ms for 4 KiB of code.
package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"
)

// Rules masks secrets. It is safe for concurrent use.
type Rules struct{ detector *detect.Detector }

// load compiles the rules once for the process: they take a tenth of a second and
// some 15 MiB.
var load = sync.OnceValues(func() (*Rules, error) {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the rules for secrets: %w", err)
	}
	// A comment in the text must not switch them off.
	d.IgnoreGitleaksAllow = true
	return &Rules{d}, nil
})

// Load returns the rules. An error means that they do not compile.
func Load() (*Rules, error) { return load() }

// Mask returns text with its secrets replaced by <secret:rule>.
func (r *Rules) Mask(text string) string {
	found := r.detector.DetectString(text)
	// The longest first: one may be part of another.
	slices.SortFunc(found, func(a, b report.Finding) int { return cmp.Compare(len(b.Secret), len(a.Secret)) })
	for _, f := range found {
		if f.Secret != "" {
			text = strings.ReplaceAll(text, f.Secret, "<secret:"+f.RuleID+">")
		}
	}
	return text
}
