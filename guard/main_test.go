package guard

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guardFunc makes a Guard of a function.
type guardFunc func(context.Context, Subject) (Verdict, error)

func (f guardFunc) Review(ctx context.Context, s Subject) (Verdict, error) { return f(ctx, s) }

func says(v Verdict, err error) Guard {
	return guardFunc(func(context.Context, Subject) (Verdict, error) { return v, err })
}

var (
	passes = says(Verdict{Decision: Pass, Reasoning: "fine"}, nil)
	blocks = says(Verdict{Decision: Block, Reasoning: "bad"}, nil)
)

func fails(f Fault) Guard { return says(Verdict{}, &Error{Fault: f}) }

func keep(s string) string { return s }
