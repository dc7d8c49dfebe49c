package caddymodule

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/e2bguard/e2bguard/guard/static"
	"github.com/e2bguard/e2bguard/guard/static/explain"
	"github.com/e2bguard/e2bguard/internal/gateway"
)

// maxChecked bounds the text that check reads, in bytes: what the static guard
// judges, and one more so that it can say that it is too much.
const maxChecked = 4<<20 + 1

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name: "check",
		Usage: "[--lang <language>] [--surface command|code|file] [--format text|json] [--verbose] <file>|-\n" +
			"  e2bguard check --eval <folder> [--misses <file>] [--format text|json]\n" +
			"  e2bguard check --rules [--format text|json|markdown]",
		Short: "Asks the static guard about a text, without running it",
		Long: `Judges a file, or standard input for -, with the static guard and prints the
verdict, the rules that matched and where. Ends with 0 for pass, 1 for block and
2 for an error. With a file, its name is what a write to a sandbox would be
judged by; the language is taken from it unless --lang names one.

--eval measures the guard on a folder of labelled snippets in JSON Lines;
--rules lists every rule with its id, which "guard static { disable ... }" takes.`,
		CobraFunc: checkCommand,
	})
}

func checkCommand(cmd *cobra.Command) {
	var opts explain.Options
	var profile string
	var disable []string
	flags := cmd.Flags()
	flags.StringVar(&opts.Language, "lang", "", "language of the text: "+strings.Join(static.Languages(), ", "))
	flags.StringVar(&opts.Surface, "surface", "code", "what the text is: command, code or file")
	flags.StringVar(&opts.Target, "target", "", "path the file would be written to; default: its name")
	flags.StringVar(&opts.Format, "format", "text", "text or json; with --rules also markdown")
	flags.BoolVarP(&opts.Verbose, "verbose", "v", false, "print the effects as well")
	flags.BoolVar(&opts.Rules, "rules", false, "list the rules")
	flags.StringVar(&opts.EvalDir, "eval", "", "folder of labelled snippets to measure the guard on")
	flags.StringVar(&opts.Misses, "misses", "", "with --eval: file that gets what was judged other than labelled")
	flags.StringVar(&profile, "profile", profileBalanced, "strict, balanced or permissive")
	flags.StringSliceVar(&disable, "disable", nil, "ids of rules to switch off")
	exits(cmd, explain.ExitError, func(cmd *cobra.Command, args []string) (int, error) {
		opts.Guard = static.Options{Profile: static.Profile(profile), Disabled: disable}
		opts.Errors = cmd.ErrOrStderr()
		if err := readChecked(cmd, &opts, args); err != nil {
			return explain.ExitError, err
		}
		return explain.Run(cmd.OutOrStdout(), opts), nil
	})
}

// readChecked reads what is to be judged.
func readChecked(cmd *cobra.Command, opts *explain.Options, args []string) error {
	if opts.Rules && opts.EvalDir != "" {
		return errors.New("--rules and --eval exclude each other")
	}
	if opts.Misses != "" && opts.EvalDir == "" {
		return errors.New("--misses needs --eval")
	}
	if opts.Rules || opts.EvalDir != "" {
		return noMore(args)
	}
	if len(args) != 1 {
		return errors.New("name one file, or - for standard input")
	}
	from := cmd.InOrStdin()
	if args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
		if opts.Surface == "file" && opts.Target == "" {
			opts.Target = args[0]
		}
		if opts.Language == "" {
			opts.Language = languages[strings.ToLower(filepath.Ext(args[0]))]
		}
	}
	if err := knownLanguage(opts.Language); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(from, maxChecked))
	if err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	opts.Text = string(text)
	if opts.Surface == "file" {
		asUploaded(opts)
	}
	return nil
}

// asUploaded makes of a file what the gateway asks the guard about when it is
// uploaded: of a notebook that is the cells that are code.
func asUploaded(opts *explain.Options) {
	s := gateway.FileSubject(opts.Target, opts.Text)
	opts.Text = s.Text
	if opts.Language == "" {
		opts.Language = s.Language
	}
}

// knownLanguage refuses a language that the guard cannot read.
func knownLanguage(name string) error {
	if name != "" && !static.KnownLanguage(name) {
		return fmt.Errorf("unknown language %q: write one of %s", name, strings.Join(static.Languages(), ", "))
	}
	return nil
}

// languages names the language of a file by its extension.
var languages = map[string]string{
	".sh": "bash", ".bash": "bash", ".py": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
	".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".r": "r", ".java": "java",
}
