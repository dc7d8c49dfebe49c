package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerOptions tunes the circuit breaker of every remote link. Zero fields take
// the defaults in their comments.
type BreakerOptions struct {
	// Failures is how many reviews in a row must fail before the guard is no
	// longer asked: 5. Only Unreachable, Timeout and Overloaded count: the others
	// say nothing about whether the guard is up, and some of them a client could
	// bring about to stop the guard for everyone.
	Failures uint32
	// Cooldown is how long it is not asked; then one review tries it: 10 s.
	Cooldown time.Duration
	// OnChange is told when a link's breaker opens or closes, for logs and metrics.
	// It is called with a lock held: it must return at once, and not use the chain.
	OnChange func(guard string, open bool)
}

func (o BreakerOptions) withDefaults() BreakerOptions {
	if o.Failures == 0 {
		o.Failures = 5
	}
	if o.Cooldown == 0 {
		o.Cooldown = 10 * time.Second
	}
	return o
}

type breaker struct {
	name string
	wait time.Duration
	cb   *gobreaker.CircuitBreaker[Verdict]
}

func newBreaker(name string, o BreakerOptions) *breaker {
	o = o.withDefaults()
	settings := gobreaker.Settings{
		Name:        name,
		Timeout:     o.Cooldown,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= o.Failures },
		IsExcluded:  func(err error) bool { return FaultOf(err) == Canceled },
		IsSuccessful: func(err error) bool {
			switch FaultOf(err) {
			case Unreachable, Timeout, Overloaded:
				return false
			default:
				return true
			}
		},
	}
	if o.OnChange != nil {
		settings.OnStateChange = func(name string, from, to gobreaker.State) {
			// Half open is a try, not news.
			switch {
			case to == gobreaker.StateOpen && from == gobreaker.StateClosed:
				o.OnChange(name, true)
			case to == gobreaker.StateClosed:
				o.OnChange(name, false)
			}
		}
	}
	return &breaker{name: name, wait: o.Cooldown, cb: gobreaker.NewCircuitBreaker[Verdict](settings)}
}

// do runs the review unless the breaker is open.
func (b *breaker) do(review func() (Verdict, error)) (Verdict, error) {
	v, err := b.cb.Execute(review)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return Verdict{}, &Error{Guard: b.name, Fault: Overloaded, Err: fmt.Errorf("not asked, as it failed repeatedly; it is tried again every %v: %w", b.wait, err)}
	}
	return v, err
}
