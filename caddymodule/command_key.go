package caddymodule

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "key",
		Usage: "new|hash",
		Short: "Makes a key for a client of the gateway, or the hash of one",
		Long: `new prints a new key for a client. It has the form that every E2B SDK accepts.

hash reads a key from standard input and prints its hash, which can stand in the
configuration in place of the key:

  e2bguard key new | tee team-a.key | e2bguard key hash`,
		CobraFunc: func(cmd *cobra.Command) {
			exits(cmd, 2, func(cmd *cobra.Command, args []string) (int, error) {
				switch {
				case len(args) == 1 && args[0] == "new":
					fmt.Fprintln(cmd.OutOrStdout(), newClientKey())
					return 0, nil
				case len(args) == 1 && args[0] == "hash":
					return failed(printHash(cmd.InOrStdin(), cmd.OutOrStdout()))
				default:
					return 2, errors.New("say what to do: key new, or key hash")
				}
			})
		},
	})
}

// newClientKey has the form of E2B's own keys, which older SDKs insist on.
func newClientKey() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return "e2b_" + hex.EncodeToString(b[:])
}

func printHash(in io.Reader, out io.Writer) error {
	const longest = 4096
	b, err := io.ReadAll(io.LimitReader(in, longest))
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	key := strings.TrimRight(string(b), "\r\n")
	if key == "" || len(b) == longest {
		return errors.New("standard input holds no key; as in: e2bguard key hash < team-a.key")
	}
	if err := checkSecret("the key")(key); err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(key))
	fmt.Fprintln(out, gateway.HashPrefix+hex.EncodeToString(digest[:]))
	return nil
}
