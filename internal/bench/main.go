// Command bench compares e2bguard with Caddy's plain reverse_proxy, and e2bguard
// that keeps an audit log with one that does not. All are processes of the same
// built binary, measured in turns in one run, in front of an upstream that does
// nothing. Then it compares the gateway as a code runner with a client that takes
// the same steps itself.
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
	rounds := flag.Int("rounds", 5, "rounds, each measuring all proxies in turns; 0 measures programs alone")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// A run takes less than a minute; a hang must not hold a build.
	const longest = 4 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	var err error
	if *rounds > 0 {
		err = run(ctx, *binary, *rounds)
	}
	if err == nil {
		err = runPrograms(ctx, *binary)
	}
	if err != nil {
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

	var subjects []subject
	defer func() {
		for _, s := range subjects {
			s.close()
		}
	}()
	for _, c := range []struct{ name, directive string }{
		{"plain Caddy", "reverse_proxy " + upstream.url},
		{"e2bguard", guarding(upstream.url, "")},
		{"e2bguard with audit, sync", guarding(upstream.url, "audit {env.TMPDIR}/audit.jsonl")},
		{"e2bguard with audit, async", guarding(upstream.url, "audit {env.TMPDIR}/audit.jsonl {\n\t\t\tdurability async\n\t\t}")},
	} {
		p, err := startProxy(ctx, binary, c.directive)
		if err != nil {
			return fmt.Errorf("starting %s: %w", c.name, err)
		}
		subjects = append(subjects, subject{p, &figures{}})
	}
	for round := range rounds {
		for _, workload := range workloads {
			asked := subjects[:2]
			if workload.audited {
				asked = subjects
			}
			if err := workload.measure(ctx, asked, round); err != nil {
				return fmt.Errorf("measuring %s: %w", workload.name, err)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
	}
	printTable(os.Stdout, subjects[0], subjects[1], subjects[2], subjects[3])
	return nil
}

// runPrograms measures the gateway as a code runner.
func runPrograms(ctx context.Context, binary string) error {
	p, err := startPrograms(ctx, binary)
	if err != nil {
		return err
	}
	defer p.close()
	steps, run, pooled, err := p.measure(ctx)
	if err != nil {
		return fmt.Errorf("measuring programs: %w", err)
	}
	printPrograms(os.Stdout, steps, run, pooled)
	return nil
}

// guarding is the directive of a gateway before an upstream.
func guarding(upstream, options string) string {
	return fmt.Sprintf(`e2b_guard {
		upstream {
			api_url %[1]s
			sandbox_url %[1]s
		}
		limits {
			output 1GiB
		}
		%[2]s
	}`, upstream, options)
}
