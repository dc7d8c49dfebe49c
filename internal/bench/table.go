package main

import (
	"fmt"
	"io"
	"runtime"
)

// comparison is one row: the two figures, how they compare, and the target.
type comparison struct {
	name           string
	plain, guarded string
	compared       string
	target         string
	held           bool
}

// ratio compares two medians of which guarded may be at most (or, with atLeast,
// must be at least) limit times plain. A limit of 0 means no target.
func ratio(name string, plain, guarded []float64, show func(float64) string, limit float64, atLeast bool) comparison {
	a, b := median(plain), median(guarded)
	c := comparison{name: name, plain: show(a), guarded: show(b), compared: fmt.Sprintf("%.2f×", b/a), held: true}
	switch {
	case limit == 0:
	case atLeast:
		c.target, c.held = fmt.Sprintf("≥ %.2f×", limit), b/a >= limit
	default:
		c.target, c.held = fmt.Sprintf("≤ %.2f×", limit), b/a <= limit
	}
	return c
}

func milliseconds(s float64) string { return fmt.Sprintf("%.3f ms", s*1e3) }
func perSecond(n float64) string    { return fmt.Sprintf("%.0f/s", n) }
func mebibytes(b float64) string    { return fmt.Sprintf("%.1f MiB", b/(1<<20)) }
func rate(b float64) string         { return mebibytes(b) + "/s" }

// above compares memory above idle: the guarded one has the target.
func above(name string, plain, guarded []float64) comparison {
	const limit = 64 << 20
	a, b := median(plain), median(guarded)
	return comparison{name, mebibytes(a), mebibytes(b), "+" + mebibytes(b), "≤ " + mebibytes(limit), b <= limit}
}

// added compares latencies by their difference.
func added(name string, plain, guarded []float64) comparison {
	const limit = 0.0005
	a, b := median(plain), median(guarded)
	return comparison{name, milliseconds(a), milliseconds(b), "+" + milliseconds(b-a), "≤ +" + milliseconds(limit), b-a <= limit}
}

// audited compares a gateway that keeps an audit log with one that does not: the
// first column is the latter's.
func audited(name string, without, with []float64, show func(float64) string) comparison {
	return ratio(name, without, with, show, 0, false)
}

func compare(plain, guarded, synced, async subject) []comparison {
	idle := func(s subject) []float64 { return []float64{float64(s.idle)} }
	const (
		latency = 1.15
		calls   = 0.9
		bulk    = 0.6
		memory  = 1.3
	)
	return []comparison{
		ratio("pass-through GET, p50", plain.getP50, guarded.getP50, milliseconds, latency, false),
		ratio("pass-through GET, p99", plain.getP99, guarded.getP99, milliseconds, 0, false),
		ratio("pass-through GET, 16 clients", plain.getRate, guarded.getRate, perSecond, calls, true),
		added("guarded Start, p50", plain.startP50, guarded.startP50),
		ratio("guarded Start, p99", plain.startP99, guarded.startP99, milliseconds, 0, false),
		ratio("guarded Start, 16 clients", plain.startRate, guarded.startRate, perSecond, 0, true),
		audited("Start, audit sync, p50", guarded.startP50, synced.startP50, milliseconds),
		audited("Start, audit async, p50", guarded.startP50, async.startP50, milliseconds),
		audited("Start, audit sync, 16 clients", guarded.startRate, synced.startRate, perSecond),
		audited("Start, audit async, 16 clients", guarded.startRate, async.startRate, perSecond),
		audited("64 MiB of stdout, audit sync", guarded.stream, synced.stream, rate),
		ratio("64 MiB of stdout", plain.stream, guarded.stream, rate, bulk, true),
		ratio("256 MiB upload", plain.upload, guarded.upload, rate, bulk, true),
		ratio("256 MiB download", plain.download, guarded.download, rate, bulk, true),
		above("memory above idle, stdout", plain.streamAbove, guarded.streamAbove),
		above("memory above idle, upload", plain.uploadAbove, guarded.uploadAbove),
		above("memory above idle, download", plain.downloadAbove, guarded.downloadAbove),
		ratio("idle memory", idle(plain), idle(guarded), mebibytes, memory, false),
	}
}

func printTable(out io.Writer, plain, guarded, synced, async subject) {
	fmt.Fprintf(out, "%s/%s, %d CPUs; medians of %d rounds in turns; every guarded command is a new one; rows with audit compare with e2bguard without\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), len(plain.getP50))
	printRows(out, "plain Caddy", compare(plain, guarded, synced, async))
}

func printPrograms(out io.Writer, steps, run, pooled []float64) {
	fmt.Fprintf(out, "\nprograms: a client that asks the guard (%s), makes a sandbox (%s), runs and ends it, compared with one that posts to /run; medians of %d in turns\n\n",
		guardTakes, createTakes, len(steps))
	printRows(out, "in order", comparePrograms(steps, run, pooled))
}

func printRows(out io.Writer, first string, rows []comparison) {
	const format = "%-30s %14s %14s %14s  %-14s %s\n"
	fmt.Fprintf(out, format, "", first, "e2bguard", "compared", "target", "")
	for _, c := range rows {
		mark := ""
		switch {
		case c.target == "":
		case c.held:
			mark = "held"
		default:
			mark = "MISSED"
		}
		fmt.Fprintf(out, format, c.name, c.plain, c.guarded, c.compared, c.target, mark)
	}
}
