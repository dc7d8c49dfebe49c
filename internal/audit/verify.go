package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Head is how far a log had come, noted elsewhere: in the file beside it, or in
// a checkpoint line of the Caddy log.
type Head = state

// VerifyOptions is what a log is verified against.
type VerifyOptions struct {
	// Keys are those the MACs may have been made with; none: MACs are not looked at.
	Keys []Key
	// Heads must be reached. The one beside each file is looked for by itself.
	Heads []Head
}

// Problem is a place where a log does not verify.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Seq is the record's number, as far as it is known.
	Seq  uint64 `json:"seq,omitempty"`
	What string `json:"what"`
}

// String is the problem in one line.
func (p Problem) String() string {
	where := p.File
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Seq > 0 {
		where += fmt.Sprintf(": record %d", p.Seq)
	}
	return where + ": " + p.What
}

// ChainReport is what was found of one log.
type ChainReport struct {
	Chain   string   `json:"chain"`
	Files   []string `json:"files"`
	Records uint64   `json:"records"`
	First   uint64   `json:"first"`
	Last    uint64   `json:"last"`
	Hash    string   `json:"hash"`
	// Problems begins with the first broken record.
	Problems []Problem `json:"problems,omitempty"`
	// Notes are not faults, and worth knowing.
	Notes []string `json:"notes,omitempty"`
}

// maxProblems bounds what is told of a log that is broken all over.
const maxProblems = 20

// Verify checks the files of one or more logs, in whatever order they are given.
func Verify(paths []string, opts VerifyOptions) ([]ChainReport, error) {
	chains := map[string]*verifier{}
	var order []string
	for _, path := range paths {
		if head, err := loadHead(path); err == nil && head.Seq > 0 {
			opts.Heads = append(opts.Heads, head)
		}
		chain, first, err := identifyFile(path)
		if err != nil {
			return nil, err
		}
		if chains[chain] == nil {
			chains[chain] = &verifier{report: ChainReport{Chain: chain}, removed: map[uint64]string{}}
			order = append(order, chain)
		}
		chains[chain].files = append(chains[chain].files, part{path, first})
	}
	var reports []ChainReport
	for _, chain := range order {
		v := chains[chain]
		v.opts = opts
		if err := v.run(); err != nil {
			return nil, err
		}
		reports = append(reports, v.report)
	}
	for _, h := range opts.Heads {
		if chains[h.Chain] == nil {
			reports = append(reports, ChainReport{Chain: h.Chain, Problems: []Problem{{File: "-", What: fmt.Sprintf(
				"the log had %d records by the head that was noted, and none of its files was given", h.Seq)}}})
		}
	}
	return reports, nil
}

// identifyFile tells which chain a file is part of, and where in it: by its first
// record. A file without one is a chain of its own.
func identifyFile(path string) (chain string, first uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	unread := 0
	for in := newLines(f); ; unread++ {
		line, err := in.next()
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			return "", 0, err
		} else if err != nil {
			return "unknown:" + path, 0, nil
		}
		// The chain is named by the first mark that can be read.
		if r, err := open(line, nil); err == nil {
			if first == 0 {
				first = max(1, r.Seq-min(r.Seq, uint64(unread)))
			}
			if r.Mark != nil && r.Chain != "" {
				return r.Chain, first, nil
			}
		}
	}
}

type part struct {
	path  string
	first uint64
}

// verifier walks one chain.
type verifier struct {
	opts   VerifyOptions
	report ChainReport
	files  []part

	last    Record            // the record before; Seq 0 if it is not known
	seen    uint64            // the highest number so far
	follows string            // what the first record follows
	removed map[uint64]string // by the last record that retention removed: its hash
	torn    bool
}

func (v *verifier) run() error {
	slices.SortStableFunc(v.files, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	for i, p := range v.files {
		v.report.Files = append(v.report.Files, p.path)
		if err := v.file(p.path, i == len(v.files)-1); err != nil {
			return err
		}
	}
	v.begin()
	v.end()
	return nil
}

func (v *verifier) problem(p Problem) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, p)
	}
}

func (v *verifier) note(format string, args ...any) {
	if len(v.report.Notes) < maxProblems {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) file(path string, newest bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for in := newLines(f); ; {
		line, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTorn) && newest:
			v.torn = true
			v.note("%s ends in the middle of a record, %d bytes: the process was killed while it wrote it, and nothing it told of was done; the next start cuts it off", path, len(line))
			return nil
		case errors.Is(err, errTorn):
			v.problem(Problem{path, in.n, v.seen + 1, "the file ends in the middle of a record, and there is a newer file"})
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		}
		v.record(path, in.n, line)
	}
}

func (v *verifier) record(path string, n int, line []byte) {
	r, err := open(line, v.opts.Keys)
	if err != nil {
		seq := r.Seq
		if seq == 0 {
			seq = v.seen + 1
		}
		v.problem(Problem{path, n, seq, err.Error()})
		v.last, v.seen = Record{}, v.seen+1
		return
	}
	switch {
	case v.report.Records == 0:
		v.report.First, v.follows = r.Seq, r.Prev // see begin
	case r.Seq <= v.seen:
		v.problem(Problem{path, n, r.Seq, fmt.Sprintf("it is out of its place, or here twice: record %d came before it", v.seen)})
	case r.Seq > v.seen+1:
		v.problem(Problem{path, n, r.Seq, fmt.Sprintf("records %d to %d, which came before it, are missing", v.seen+1, r.Seq-1)})
	case v.last.Seq != 0 && r.Prev != v.last.Hash:
		v.problem(Problem{path, n, r.Seq, "it does not follow from the record before it: that one was replaced"})
	}
	if r.Seq == 1 && r.Prev != genesis {
		v.problem(Problem{path, n, r.Seq, "it says that it is the first, and that something came before it"})
	}
	for _, h := range v.opts.Heads {
		if h.Chain == v.report.Chain && h.Seq == r.Seq && h.Hash != r.Hash {
			v.problem(Problem{path, n, r.Seq, "it is not the record that was here when the head was noted"})
		}
	}
	if r.Mark != nil {
		v.mark(path, n, r)
	}
	v.report.Records++
	v.last, v.seen = r, max(v.seen, r.Seq)
}

func (v *verifier) mark(path string, n int, r Record) {
	m := r.Mark
	if m.Chain != v.report.Chain {
		v.problem(Problem{path, n, r.Seq, "it belongs to another log: " + m.Chain})
	}
	if m.Damaged != "" {
		v.problem(Problem{path, n, r.Seq, "the file before did not verify at its end and was put aside as " + m.Damaged})
	}
	if m.Missing > 0 {
		v.note("record %d says that records up to %d had been written and were gone when the process started", r.Seq, m.Missing)
	}
	if m.Torn > 0 {
		v.note("record %d: %d bytes of an incomplete record, from a killed process, were cut off", r.Seq, m.Torn)
	}
	if m.Lost > 0 {
		v.note("record %d: %d records could not be written before it", r.Seq, m.Lost)
	}
	if r.Kind == KindRemoved {
		v.removed[m.Last] = m.LastHash
	}
}

// begin checks that what came before the first record was removed by retention,
// which says so.
func (v *verifier) begin() {
	if v.report.Records == 0 || v.report.First == 1 {
		return
	}
	if hash, ok := v.removed[v.report.First-1]; !ok || hash != v.follows {
		v.problem(Problem{File: v.files[0].path, Line: 1, Seq: v.report.First, What: fmt.Sprintf(
			"records 1 to %d, which came before it, are not in the files given, and no record here says that retention removed them", v.report.First-1)})
		return
	}
	v.note("records 1 to %d were removed by retention", v.report.First-1)
}

// end checks that nothing was cut off.
func (v *verifier) end() {
	v.report.Last, v.report.Hash = v.seen, v.last.Hash
	for _, h := range v.opts.Heads {
		if h.Chain == v.report.Chain && h.Seq > v.seen {
			v.problem(Problem{File: v.files[len(v.files)-1].path, Seq: v.seen + 1, What: fmt.Sprintf(
				"records %d to %d are missing at the end: the log had come to %d when the head was noted", v.seen+1, h.Seq, h.Seq)})
		}
	}
	if v.report.Records > 0 && v.last.Kind != KindClose && !v.torn {
		v.note("the log does not end with a close: it is being written, its process was killed, or what followed record %d was cut off; compare with the last checkpoint in the Caddy log", v.seen)
	}
}
