package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkKeystroke is the time from a key's being sent to its being shown, with
// and without the gateway, taken in turn; "ratio" is one over the other. The
// emulator is on the same machine, so a network adds the same to both.
func BenchmarkKeystroke(b *testing.B) {
	s := newEstate(b)
	terminals := [2]*tty{openTerminal(b, s), openTerminalAt(b, s, s.direct, terminalStart())}
	terminals[1].shows(b, "$ ")
	var took [2]time.Duration
	typed := 0
	for b.Loop() {
		key, shown := "x", "x"
		if typed++; typed%40 == 0 {
			key, shown = "\x15", "\x1b[K" // the line stays within the terminal's width
		}
		for i, l := range terminals {
			begin := time.Now()
			require.NoError(b, l.types(key))
			l.await(shown)
			took[i] += time.Since(begin)
		}
	}
	n := time.Duration(b.N)
	b.ReportMetric(float64((took[0] / n).Microseconds()), "gateway-µs/key")
	b.ReportMetric(float64((took[1] / n).Microseconds()), "direct-µs/key")
	b.ReportMetric(float64(took[0])/float64(took[1]), "ratio")
}

// BenchmarkEnter is the same for a line and its output.
func BenchmarkEnter(b *testing.B) {
	s := newEstate(b)
	terminals := [2]*tty{openTerminal(b, s), openTerminalAt(b, s, s.direct, terminalStart())}
	terminals[1].shows(b, "$ ")
	var took [2]time.Duration
	for b.Loop() {
		for i, l := range terminals {
			begin := time.Now()
			require.NoError(b, l.types("echo $((6*7))\r"))
			l.await("42\r\n\x1b[?2004h")
			took[i] += time.Since(begin)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "ratio")
}

// await waits until the terminal has shown the text, and forgets all up to it.
func (l *tty) await(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if _, after, ok := strings.Cut(l.out.String(), text); ok {
			l.out.Reset()
			l.out.WriteString(after)
			return
		}
		l.shown.Wait()
	}
}
