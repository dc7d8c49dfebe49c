package caddymodule

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/e2bguard/e2bguard/internal/demo"
	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/policy"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "demo",
		Usage: "[--serve] [-- <command>...]",
		Short: "Shows the gateway at work: no account, no key, no network",
		Long: `Starts an emulated E2B and a gateway with the static guard in front of it, and
tries harmless and harmful things through the gateway. Prints what came of each
and ends with 0 only if everything came out as it should.

With --serve, both stay up until interrupted, and the variables that point an
E2B SDK at them are printed. With a command after --, that command is run with
these variables set, and its exit code is the demo's.

The emulator isolates nothing: what passes the guard runs on this machine.`,
		CobraFunc: func(cmd *cobra.Command) {
			serve := cmd.Flags().Bool("serve", false, "keep emulator and gateway up until interrupted")
			exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
				if *serve && len(args) > 0 {
					return 2, errors.New("--serve and a command exclude each other")
				}
				ctx, stop := untilSignal(cmd.Context())
				defer stop()
				err := demo.Run(ctx, cmd.OutOrStdout(), demo.Options{Gateway: demoGateway, Serve: *serve, Command: args})
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					return max(exit.ExitCode(), 1), nil
				}
				return failed(err)
			})
		},
	})
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "emulate",
		Usage: "--listen <host:port> [--record <file>] [--domain <domain>] [--unsafe-expose]",
		Short: "Serves an offline E2B for demonstrations and tests",
		Long: `Serves E2B's control plane and data plane on one port, for any API key:
commands and code are real processes in a folder for each sandbox.

It isolates nothing: whoever reaches it runs commands as its user. It therefore
listens on loopback only, unless --unsafe-expose is given, and refuses requests
that a web page could make. --record appends every request as a line of JSON.`,
		CobraFunc: func(cmd *cobra.Command) {
			listen := cmd.Flags().String("listen", "127.0.0.1:3000", "address to listen on")
			record := cmd.Flags().String("record", "", "file that every request is appended to, as lines of JSON")
			domain := cmd.Flags().String("domain", "", "domain whose <port>-<sandbox>.<domain> names reach a sandbox, and that responses carry")
			expose := cmd.Flags().Bool("unsafe-expose", false, "listen on an address that other machines reach")
			exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
				if err := noMore(args); err != nil {
					return 2, err
				}
				return failed(emulate(cmd, *listen, *record, *domain, *expose))
			})
		},
	})
}

func emulate(cmd *cobra.Command, listen, record, domain string, expose bool) (err error) {
	opts := emulator.Options{Domain: domain, Logger: caddy.Log().Named("emulator")}
	if record != "" {
		f, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("opening the record: %w", err)
		}
		defer f.Close()
		opts.Record = f
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	return emulator.Listen(ctx, listen, expose, opts, func(addr net.Addr) {
		fmt.Fprintf(cmd.OutOrStdout(), "emulating E2B on http://%s\n"+
			"It isolates nothing: commands and code run as processes of this user.\n"+
			"export E2B_API_URL=http://%[1]s E2B_SANDBOX_URL=http://%[1]s E2B_VOLUME_API_URL=http://%[1]s E2B_API_KEY=%s\n", addr, demo.APIKey)
	})
}

// demoGateway is the default configuration, without a key and before an
// emulator.
func demoGateway(s demo.Settings) (http.Handler, func() error, error) {
	cfg := gateway.Config{
		Upstream: gateway.Upstream{APIURL: s.Upstream, SandboxURL: s.Upstream},
		Policy:   policy.Policy{Limits: s.Limits},
		Logger:   s.Logger,
	}
	asked, err := chain([]any{new(Static)}, GuardSettings{Profile: profileBalanced, Logger: s.Logger}, cfg)
	if err != nil {
		return nil, nil, err
	}
	cfg.Guard = asked
	gw, err := gateway.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	return gw, gw.Close, nil
}
