package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/gateway"
)

func auditReplay() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay [--config <Caddyfile>] [--all] [--format table|json] <file...>", Short: "Asks today's guards about what was recorded",
		Long: `Asks the guards of a configuration about every subject on record and lists those
that would now be decided otherwise, or all with --all. Nothing is run. A remote
guard is really asked, which may cost money.

Only whole texts can be judged anew: record them with audit { log_code full }.
Secrets are not on record, so a text that held some is judged without them.
Without --config the static guard is asked, with the profile balanced.`,
	}
	config := cmd.Flags().String("config", "", "the configuration whose guards are asked: a Caddyfile, or JSON")
	all := cmd.Flags().Bool("all", false, "list what stays the same as well")
	format := cmd.Flags().String("format", "table", "table or json")
	exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
		if *format != "table" && *format != "json" {
			return 2, fmt.Errorf("unknown format %q: write table or json", *format)
		}
		files, err := auditFiles(args)
		if err != nil {
			return 2, err
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		asked, done, err := guardOf(*config)
		if err != nil {
			return 2, err
		}
		defer done()
		report, err := replay(ctx, asked, files, *all)
		if err != nil {
			return 2, err
		}
		return failed(report.print(cmd.OutOrStdout(), *format))
	})
	return cmd
}

// guardOf is the chain of guards of the first e2b_guard in a configuration.
func guardOf(path string) (guard.Guard, func(), error) {
	h := new(Handler)
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		if !json.Valid(raw) {
			if raw, _, err = caddyconfig.GetAdapter("caddyfile").Adapt(raw, map[string]any{"filename": path}); err != nil {
				return nil, nil, fmt.Errorf("reading the configuration: %w", err)
			}
		}
		own := findHandler(raw)
		if own == nil {
			return nil, nil, fmt.Errorf("%s has no e2b_guard", path)
		}
		if err := json.Unmarshal(own, h); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration: %w", err)
		}
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	h.logger = zap.NewNop()
	repl := caddy.NewReplacer()
	var cfg gateway.Config
	var err1, err2, err3 error
	cfg.Upstream, err1 = h.upstream(repl)
	cfg.Clients, err2 = h.clients(repl, cfg.Upstream.APIKey)
	cfg.Policy, err3 = h.policy()
	if err := errors.Join(err1, err2, err3); err != nil {
		cancel()
		return nil, nil, err
	}
	asked, _, err := h.loadGuards(ctx, cfg)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return asked, cancel, nil
}

// findHandler finds the JSON of the first e2b_guard in a configuration.
func findHandler(config []byte) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(config, &object) == nil {
		if string(object["handler"]) == `"e2b_guard"` {
			return config
		}
		for _, v := range object {
			if found := findHandler(v); found != nil {
				return found
			}
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(config, &list) == nil {
		for _, v := range list {
			if found := findHandler(v); found != nil {
				return found
			}
		}
	}
	return nil
}

// replayed is what a replay found.
type replayed struct {
	// Asked counts the subjects that were judged anew, Changed those of them that
	// were decided otherwise, Partial those whose text is not on record.
	Asked   int           `json:"asked"`
	Changed int           `json:"changed"`
	Partial int           `json:"not_on_record"`
	Rows    []replayedRow `json:"subjects"`
}

type replayedRow struct {
	Time      time.Time `json:"time"`
	ID        string    `json:"id"`
	Client    string    `json:"client,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Was       string    `json:"was"`
	Now       string    `json:"now"`
	Reasoning string    `json:"reasoning,omitempty"`
	Text      string    `json:"text"`
	// Masked says that the text was judged without the secrets it held.
	Masked bool `json:"text_masked,omitempty"`
}

func replay(ctx context.Context, asked guard.Guard, files []string, all bool) (replayed, error) {
	report := replayed{Rows: []replayedRow{}}
	for _, file := range files {
		err := readRecords(file, func(r audit.Record, _ []byte) bool {
			if r.Decision == nil {
				return true
			}
			for _, s := range r.Subjects {
				report.subject(ctx, asked, r, s, all)
			}
			return ctx.Err() == nil
		})
		if err = errors.Join(err, ctx.Err()); err != nil {
			return report, err
		}
	}
	return report, nil
}

func (p *replayed) subject(ctx context.Context, asked guard.Guard, r audit.Record, s audit.Subject, all bool) {
	if s.Cut || s.Text == "" && s.Bytes > 0 {
		p.Partial++
		return
	}
	row := replayedRow{Time: r.Time, ID: r.ID, Text: s.Text, Masked: s.Masked, Was: "no verdict", Now: "no verdict"}
	labels := map[string]string{}
	for k, v := range s.Labels {
		labels[k] = v
	}
	if r.Call != nil {
		row.Client, row.Operation = r.Client, r.Operation
		labels[guard.LabelClient], labels[guard.LabelOperation] = r.Client, r.Operation
	}
	if s.Verdict != nil {
		row.Was = s.Verdict.Decision
	}
	verdict, err := asked.Review(ctx, guard.Subject{Kind: guard.Kind(s.Kind), Language: s.Language, Text: s.Text, Target: s.Target, Labels: labels})
	if err == nil {
		row.Now, row.Reasoning = verdict.Decision.String(), verdict.Reasoning
	} else {
		row.Reasoning = err.Error()
	}
	p.Asked++
	if row.Was != row.Now {
		p.Changed++
	} else if !all {
		return
	}
	p.Rows = append(p.Rows, row)
}

func (p *replayed) print(w io.Writer, format string) error {
	if format == "json" {
		return printJSON(w, p)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(p.Rows) > 0 {
		fmt.Fprintln(t, "TIME\tID\tOPERATION\tWAS\tNOW\tTEXT\tREASONING")
	}
	for _, r := range p.Rows {
		fmt.Fprintln(t, strings.Map(keepTabs, strings.Join([]string{r.Time.Format(time.RFC3339), r.ID, r.Operation, r.Was, r.Now, fmt.Sprintf("%.60q", r.Text), fmt.Sprintf("%.120s", r.Reasoning)}, "\t")))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d subjects judged anew, %d decided otherwise", p.Asked, p.Changed)
	if p.Partial > 0 {
		fmt.Fprintf(w, "; %d are not on record in full (audit { log_code full })", p.Partial)
	}
	_, err := fmt.Fprintln(w)
	return err
}

func keepTabs(r rune) rune {
	if r == '\t' {
		return r
	}
	return printable(r)
}
