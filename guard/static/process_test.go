package static

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// childEnv makes the test binary measure itself and do nothing else.
const childEnv = "E2BGUARD_STATIC_MEASURE"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := json.NewEncoder(os.Stdout).Encode(measureProcess()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}

		return
	}

	os.Exit(m.Run())
}

// footprint is what the guard costs a process.
type footprint struct {
	// Start is New and the first review in each language.
	Start time.Duration
	// Busy is how many bytes of memory more the process holds right after many
	// reviews, with what the collector has not taken back yet; Resident is what is
	// left of them.
	Busy, Resident int64
}

func measureProcess() footprint {
	before := resident()
	start := time.Now()

	g, err := New(Options{})
	if err != nil {
		return footprint{}
	}

	review := func(lang string, size int) {
		_, _ = g.Review(context.Background(), code(lang, sized(benchText[lang], size)))
	}

	for lang := range benchText {
		review(lang, 1<<10)
	}

	f := footprint{Start: time.Since(start)}

	for range 500 {
		for lang := range benchText {
			review(lang, 100)
			review(lang, 1<<10)
			review(lang, 10<<10)
		}
	}

	f.Busy = resident() - before

	debug.FreeOSMemory()

	f.Resident = resident() - before

	return f
}

// resident is how many bytes of memory the process holds; 0 if the system does
// not say.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}

	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}

	pages, _ := strconv.ParseInt(fields[1], 10, 64)

	return pages * int64(os.Getpagesize())
}

// BenchmarkProcess is what the guard costs a process that starts: the time
// until it is ready in every language, and the memory it adds. Targets: 50 ms
// and 8 MB.
func BenchmarkProcess(b *testing.B) {
	var start time.Duration

	var busy, held int64

	for b.Loop() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"=1")

		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}

		var f footprint
		if err := json.Unmarshal(out, &f); err != nil {
			b.Fatal(err)
		}

		start += f.Start
		busy += f.Busy
		held += f.Resident
	}

	b.ReportMetric(float64(start.Microseconds())/1000/float64(b.N), "ms-start")
	b.ReportMetric(float64(busy)/1e6/float64(b.N), "MB-busy")
	b.ReportMetric(float64(held)/1e6/float64(b.N), "MB-resident")
}
