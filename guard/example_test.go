package guard_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
)

// noMiners is a guard of one rule.
type noMiners struct{}

func (noMiners) Review(_ context.Context, s guard.Subject) (guard.Verdict, error) {
	if strings.Contains(s.Text, "xmrig") {
		return guard.Verdict{Decision: guard.Block, Reasoning: "It starts a crypto miner."}, nil
	}
	return guard.Verdict{Decision: guard.Pass}, nil
}

func Example() {
	chain, err := guard.NewChain([]guard.Link{{Name: "miners", Guard: noMiners{}}}, guard.ChainOptions{})
	if err != nil {
		panic(err)
	}
	cache, err := guard.NewCache(chain, guard.CacheOptions{})
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"ls", "./xmrig -o pool", "./xmrig -o pool"} {
		verdict, err := cache.Review(context.Background(), guard.Subject{Kind: guard.KindCommand, Text: text})
		ruling := guard.Decide(verdict, err, guard.Mode{})
		fmt.Printf("%t %t %q\n", ruling.Allow, verdict.Cached, ruling.Reason)
	}
	// Output:
	// true false ""
	// false false "Blocked by policy: It starts a crypto miner. Do not retry by another route."
	// false true "Blocked by policy: It starts a crypto miner. Do not retry by another route."
}

func ExampleDecide() {
	unreachable := &guard.Error{Guard: "superagent", Fault: guard.Unreachable}
	refused := &guard.Error{Guard: "superagent", Fault: guard.Misconfigured}
	for _, err := range []error{unreachable, refused} {
		ruling := guard.Decide(guard.Verdict{}, err, guard.Mode{AllowOnError: true})
		fmt.Println(ruling.Allow, ruling.FailOpen)
	}
	// Output:
	// true true
	// false false
}
