package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// runFunc is a subcommand: its exit code, and an error for standard error.
type runFunc func(cmd *cobra.Command, args []string) (int, error)

// exits makes a subcommand end with its own exit code: Caddy knows 0 and 1, and
// would print 1 as a failure. Wrong flags and arguments end with usageCode.
func exits(cmd *cobra.Command, usageCode int, run runFunc) {
	end := func(cmd *cobra.Command, code int, err error) error {
		cmd.SilenceErrors = true
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.Name(), err)
		}
		switch code {
		case 0:
			return nil
		case 1:
			return errors.New("exiting with status 1")
		default:
			return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
		}
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return end(cmd, usageCode, err) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		code, err := run(cmd, args)
		return end(cmd, code, err)
	}
}

// noMore refuses arguments that a subcommand does not take.
func noMore(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// untilSignal is a context that ends with the first interrupt.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}

// failed is the exit code of an error.
func failed(err error) (int, error) {
	if err == nil {
		return caddy.ExitCodeSuccess, nil
	}
	return 1, err
}
