package caddymodule

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "routes",
		Usage: "[--format table|json]",
		Short: "Lists every E2B operation the gateway knows and what it does with it",
		Long: `Prints the route table: one row for each thing a client can ask of E2B, with
what the guard is shown, what policy edits, what happens to the response, and
what happens unless the configuration says otherwise. What is not in the table
is refused.`,
		CobraFunc: func(cmd *cobra.Command) {
			format := cmd.Flags().String("format", "table", "table or json")
			exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
				if err := noMore(args); err != nil {
					return 2, err
				}
				return failed(printRoutes(cmd.OutOrStdout(), *format))
			})
		},
	})
}

func printRoutes(w io.Writer, format string) error {
	rows := gateway.Routes()
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	case "table":
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "PLANE\tMETHOD\tPATTERN\tOPERATION\tGUARD SEES\tENFORCED\tFILTERED\tDEFAULT\tWHY")
		for _, r := range rows {
			fmt.Fprintln(t, strings.Join(routeCells(r), "\t"))
		}
		return t.Flush()
	default:
		return fmt.Errorf("unknown format %q: write table or json", format)
	}
}

// routeCells is a row as text, with a dash for nothing.
func routeCells(r gateway.RouteInfo) []string {
	cells := []string{r.Plane, r.Method, r.Pattern, r.Operation, r.Sees, r.Enforced, r.Filtered, r.Default, r.Why}
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	return cells
}
