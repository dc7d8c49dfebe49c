// Command bench compares e2bguard with Caddy's plain reverse_proxy. Both are
// processes of the same built binary, measured in turns in one run, in front of
// an upstream that does nothing.
//
// It prints a table of medians and the product's targets beside them. A missed
// target is marked and does not fail the run, for the numbers depend on the
// machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	binary := flag.String("binary", "bin/e2bguard", "the built binary")
	rounds := flag.Int("rounds", 5, "rounds, each measuring both in turns")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// A run takes less than a minute; a hang must not hold a build.
	const longest = 4 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	if err := run(ctx, *binary, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to defer for.
	}
}

func run(ctx context.Context, binary string, rounds int) (err error) {
	upstream, err := startUpstream()
	if err != nil {
		return err
	}
	defer upstream.close()

	plain, err := startProxy(ctx, binary, fmt.Sprintf("reverse_proxy %s", upstream.url))
	if err != nil {
		return fmt.Errorf("starting plain Caddy: %w", err)
	}
	defer plain.close()
	guarded, err := startProxy(ctx, binary, fmt.Sprintf(`e2b_guard {
		upstream {
			api_url %[1]s
			sandbox_url %[1]s
		}
		limits {
			output 1GiB
		}
	}`, upstream.url))
	if err != nil {
		return fmt.Errorf("starting e2bguard: %w", err)
	}
	defer guarded.close()

	subjects := []subject{{plain, &figures{}}, {guarded, &figures{}}}
	for round := range rounds {
		for _, workload := range workloads {
			if err := workload.measure(ctx, subjects, round); err != nil {
				return fmt.Errorf("measuring %s: %w", workload.name, err)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
	}
	printTable(os.Stdout, subjects[0], subjects[1])
	return nil
}
