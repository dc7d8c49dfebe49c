package flowtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Bench measures a front end on ordinary code of several sizes. A snippet is a
// piece of code with a %[1]d where its names differ from those of the next.
func Bench(b *testing.B, parse effect.Parser, snippet string) {
	b.Helper()

	for _, size := range []int{100, 1 << 10, 10 << 10, 100 << 10} {
		var s strings.Builder
		for i := 0; s.Len() < size; i++ {
			fmt.Fprintf(&s, snippet, i)
		}

		text := s.String()

		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()

			for b.Loop() {
				parse(text, effect.NewBudget(effect.DefaultSteps))
			}

			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(float64(len(text))/1024), "µs/KB")
		})
	}
}
