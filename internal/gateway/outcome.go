package gateway

import "context"

// Outcome is what became of one call, for whoever wraps the gateway (access-log
// fields, placeholders). It is filled while the call runs and complete when
// ServeHTTP has returned.
type Outcome struct {
	RequestID string
	Plane     string
	Operation string
	Sandbox   string
	Client    string
	// Decision is "pass", "block", "fail_open" (no verdict, and on_error allow),
	// "allow" (no subject to judge) or "refuse" (a refusal that no guard made).
	Decision string
	// WouldBlock says that the call goes on only because of shadow mode.
	WouldBlock bool
	// Upgraded says that the connection went over to another protocol, which no
	// status tells: it was taken from the server.
	Upgraded bool
	// Code is the refusal's code; "" if the call was forwarded.
	Code string
}

type outcomeKey struct{}

// WithOutcome returns a context in which the gateway records the call's
// outcome, and the outcome.
func WithOutcome(ctx context.Context) (context.Context, *Outcome) {
	o := new(Outcome)
	return context.WithValue(ctx, outcomeKey{}, o), o
}

func outcomeFrom(ctx context.Context) *Outcome {
	if o, ok := ctx.Value(outcomeKey{}).(*Outcome); ok {
		return o
	}
	return new(Outcome)
}
