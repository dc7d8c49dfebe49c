package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/audit/store"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "audit",
		Usage: "verify|query|stats|tail|replay <file...>",
		Short: "Verifies and reads audit logs",
		Long: `verify checks that no record was changed, removed, added or moved, and names the
first that was. query and stats answer questions about calls; tail shows the
last records; replay asks today's guards about what was recorded.

A file stands for its old files too: audit.jsonl for audit.<chain>.<number>.jsonl
beside it. The log that is being written can be read.`,
		CobraFunc: func(cmd *cobra.Command) {
			exits(cmd, 2, func(*cobra.Command, []string) (int, error) {
				return 2, errors.New("say what to do: audit verify, query, stats, tail or replay")
			})
			cmd.AddCommand(auditVerify(), auditQuery(), auditStats(), auditTail(), auditReplay())
		},
	})
}

// auditFiles are the files of the logs that were named, each once.
func auditFiles(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, errors.New("name a log, as in: " + exampleAudit)
	}
	var all []string
	for _, path := range args {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		for _, file := range audit.Files(filepath.Clean(path)) {
			if !slices.Contains(all, file) {
				all = append(all, file)
			}
		}
	}
	return all, nil
}

func auditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify [--key <file>] [--head <chain>:<seq>:<hash>] [--format text|json] <file...>", Short: "Checks that a log is whole and unchanged",
		Long: `Ends with 0 if every log is whole, 1 if one is not, 2 for an error.

--key names a file with the seal keys, with which the MACs of the records are
checked: without it, whoever can write the files could have written them all anew.
--head is how far the log had come at a moment, as a checkpoint line of the
server's log says: an end that was cut off since is missed.`,
	}
	keyFile := cmd.Flags().String("key", "", "file with the seal keys")
	heads := cmd.Flags().StringArray("head", nil, "chain:seq:hash, as a checkpoint says")
	format := cmd.Flags().String("format", "text", "text or json")
	exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
		files, err := auditFiles(args)
		if err != nil {
			return 2, err
		}
		var opts audit.VerifyOptions
		if *keyFile != "" {
			text, err := os.ReadFile(*keyFile)
			if err == nil {
				opts.Keys, err = auditKeys(string(text))
			}
			if err != nil {
				return 2, err
			}
		}
		for _, text := range *heads {
			var h audit.Head
			if _, err := fmt.Sscanf(strings.ReplaceAll(text, ":", " "), "%s %d %s", &h.Chain, &h.Seq, &h.Hash); err != nil {
				return 2, fmt.Errorf("head %s: write <chain>:<seq>:<hash>, as a checkpoint line says", text)
			}
			opts.Heads = append(opts.Heads, h)
		}
		reports, err := audit.Verify(files, opts)
		if err != nil {
			return 2, err
		}
		code := 0
		for _, r := range reports {
			if len(r.Problems) > 0 {
				code = 1
			}
		}
		if err := printVerified(cmd.OutOrStdout(), reports, *format); err != nil {
			return 2, err
		}
		return code, nil
	})
	return cmd
}

func printVerified(w io.Writer, reports []audit.ChainReport, format string) error {
	switch format {
	case "json":
		return printJSON(w, reports)
	case "text":
	default:
		return fmt.Errorf("unknown format %q: write text or json", format)
	}
	for _, r := range reports {
		word := "whole"
		if len(r.Problems) > 0 {
			word = "BROKEN"
		}
		fmt.Fprintf(w, "log %s: %s, records %d to %d in %d files, head %s\n", r.Chain, word, r.First, r.Last, len(r.Files), r.Hash)
		for _, p := range r.Problems {
			fmt.Fprintln(w, "  "+p.String())
		}
		for _, note := range r.Notes {
			fmt.Fprintln(w, "  note: "+note)
		}
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// asked is what query and stats have in common.
type asked struct {
	filter       store.Filter
	since, until string
	db, format   string
}

func (a *asked) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.filter.Sandbox, "sandbox", "", "id of the sandbox")
	flags.StringVar(&a.filter.Client, "client", "", "name of the client, or key:<fingerprint>")
	flags.StringVar(&a.filter.Operation, "operation", "", "as `e2bguard routes` lists them")
	flags.StringVar(&a.filter.ID, "id", "", "request id")
	flags.StringVar(&a.filter.Verdict, "verdict", "", "pass, block, fail_open, allow, refuse or would_block")
	flags.StringVar(&a.filter.Rule, "rule", "", "id of a rule that matched")
	flags.StringVar(&a.since, "since", "", "a time (2026-01-31T12:00:00Z), or how long ago (24h)")
	flags.StringVar(&a.until, "until", "", "a time, or how long ago")
	flags.StringVar(&a.db, "store", "", "ask the database that `audit { store … }` keeps, instead of files")
	flags.StringVar(&a.format, "format", "table", "table or json")
}

// open returns the store to ask: the one that is kept, or one made of the files.
func (a *asked) open(ctx context.Context, args []string) (s *store.Store, err error) {
	if a.filter.Since, err = parseTime(a.since); err != nil {
		return nil, err
	}
	if a.filter.Until, err = parseTime(a.until); err != nil {
		return nil, err
	}
	if a.format != "table" && a.format != "json" {
		return nil, fmt.Errorf("unknown format %q: write table or json", a.format)
	}
	if a.db != "" {
		if err := noMore(args); err != nil {
			return nil, err
		}
		if _, err := os.Stat(a.db); err != nil {
			return nil, err
		}
		return store.Open(a.db)
	}
	files, err := auditFiles(args)
	if err != nil {
		return nil, err
	}
	if s, err = store.Open(""); err != nil {
		return nil, err
	}
	if err := s.Sync(ctx, files...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %s: write 2026-01-31T12:00:00Z, 2026-01-31, or how long ago, as in 24h", text)
}

func auditQuery() *cobra.Command {
	cmd := &cobra.Command{Use: "query [filters] <file...>", Short: "Lists calls, with their outcomes"}
	var a asked
	a.flags(cmd)
	cmd.Flags().IntVar(&a.filter.Limit, "limit", 100, "the latest so many; 0 for all")
	exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
		s, err := a.open(cmd.Context(), args)
		if err != nil {
			return 2, err
		}
		defer s.Close()
		rows, err := s.Query(cmd.Context(), a.filter)
		if err != nil {
			return 2, err
		}
		if a.format == "json" {
			for _, r := range rows {
				for _, line := range r.Lines {
					fmt.Fprintln(cmd.OutOrStdout(), line)
				}
			}
			return 0, nil
		}
		t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TIME\tID\tCLIENT\tSANDBOX\tOPERATION\tDECISION\tWHY\tENDED\tEXIT")
		for _, r := range rows {
			fmt.Fprintln(t, strings.Join(queryCells(r), "\t"))
		}
		return failed(t.Flush())
	})
	return cmd
}

func queryCells(r store.Row) []string {
	decision, exit, why := r.Decision, "", r.Rules
	if r.WouldBlock {
		decision += " (would block)"
	}
	if r.ExitCode != nil {
		exit = fmt.Sprint(*r.ExitCode)
	}
	for _, other := range []string{r.Code, r.DestroyedBy} {
		if why == "" {
			why = other
		}
	}
	cells := []string{r.Time.Format(time.RFC3339), r.ID, r.Client, r.Sandbox, r.Operation, decision, why, r.Ended, exit}
	for i, c := range cells {
		cells[i] = strings.Map(printable, c)
		if c == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// printable keeps what somebody else wrote from steering the terminal.
func printable(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return '?'
	}
	return r
}

func auditStats() *cobra.Command {
	cmd := &cobra.Command{Use: "stats [--by <what>] [filters] <file...>", Short: "Counts calls"}
	var a asked
	a.flags(cmd)
	by := cmd.Flags().String("by", "all", "group by "+strings.Join(store.Groupings(), ", "))
	exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
		s, err := a.open(cmd.Context(), args)
		if err != nil {
			return 2, err
		}
		defer s.Close()
		groups, err := s.Stats(cmd.Context(), a.filter, *by)
		if err != nil {
			return 2, err
		}
		if a.format == "json" {
			return failed(printJSON(cmd.OutOrStdout(), groups))
		}
		t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, strings.ToUpper(*by)+"\tCALLS\tBLOCKED\tWOULD BLOCK\tREFUSED\tFAIL OPEN\tUNFINISHED\tMEAN µs")
		for _, g := range groups {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", strings.Map(printable, g.Key), g.Calls, g.Blocked, g.WouldBlock, g.Refused, g.FailedOpen, g.Unfinished, g.Took)
		}
		return failed(t.Flush())
	})
	return cmd
}

func auditTail() *cobra.Command {
	cmd := &cobra.Command{Use: "tail [--lines <n>] [--follow] [--format table|json] <file>", Short: "Shows the last records, and new ones as they come"}
	lines := cmd.Flags().IntP("lines", "n", 10, "how many")
	follow := cmd.Flags().BoolP("follow", "f", false, "go on until interrupted")
	format := cmd.Flags().String("format", "table", "table or json")
	exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
		if len(args) != 1 || *lines < 0 {
			return 2, errors.New("name one log, as in: " + exampleAudit)
		}
		if *format != "table" && *format != "json" {
			return 2, fmt.Errorf("unknown format %q: write table or json", *format)
		}
		show := func(r audit.Record, line []byte) {
			if *format == "json" {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
			} else {
				fmt.Fprintln(cmd.OutOrStdout(), tailLine(r))
			}
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		return failed(tailLog(ctx, args[0], *lines, *follow, show))
	})
	return cmd
}

// tailLine is a record in one line, for reading.
func tailLine(r audit.Record) string {
	words := []string{r.Time.Format(time.RFC3339), fmt.Sprint(r.Seq), string(r.Kind), r.ID}
	if r.Call != nil {
		words = append(words, r.Client, r.Sandbox, r.Operation)
	}
	if d := r.Decision; d != nil {
		words = append(words, d.Decision, d.Code)
		if d.WouldBlock {
			words = append(words, "would_block")
		}
		if len(d.Subjects) > 0 {
			words = append(words, fmt.Sprintf("%.80q", d.Subjects[0].Text))
		}
	}
	if o := r.Outcome; o != nil {
		words = append(words, o.Ended, o.DestroyedBy)
		if o.ExitCode != nil {
			words = append(words, fmt.Sprintf("exit=%d", *o.ExitCode))
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return strings.Map(printable, strings.Join(words, " "))
}

// followEvery is how often a log that is followed is looked at.
const followEvery = 300 * time.Millisecond

func tailLog(ctx context.Context, path string, n int, follow bool, show func(audit.Record, []byte)) error {
	type shown struct {
		r    audit.Record
		line []byte
	}
	var last []shown
	var seq uint64
	for i, file := range audit.Files(path) {
		err := readRecords(file, func(r audit.Record, line []byte) bool {
			last = append(last, shown{r, slices.Clone(line)})
			if len(last) > n {
				last = last[len(last)-n:]
			}
			seq = r.Seq
			return true
		})
		if err != nil && (i > 0 || len(audit.Files(path)) == 1) {
			return err
		}
	}
	for _, s := range last {
		show(s.r, s.line)
	}
	for follow {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
		// Two files are enough: the one that is written and the one before it.
		files := audit.Files(path)
		for _, file := range files[max(0, len(files)-2):] {
			err := readRecords(file, func(r audit.Record, line []byte) bool {
				if r.Seq > seq {
					show(r, line)
					seq = r.Seq
				}
				return true
			})
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func readRecords(path string, each func(audit.Record, []byte) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, _, err = audit.Read(f, each)
	return err
}
