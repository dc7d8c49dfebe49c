package guard

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func breakerChain(t *testing.T, answer *error, calls *int, changes *[]string) *Chain {
	t.Helper()
	g := guardFunc(func(context.Context, Subject) (Verdict, error) {
		*calls++
		if *answer != nil {
			return Verdict{}, *answer
		}
		return Verdict{Decision: Block}, nil
	})
	c, err := NewChain([]Link{{Name: "r", Guard: g, Remote: true, MaskSecrets: keep}}, ChainOptions{Breaker: BreakerOptions{
		Failures: 3, Cooldown: 10 * time.Second,
		OnChange: func(guard string, open bool) { *changes = append(*changes, fmt.Sprint(guard, " ", open)) },
	}})
	require.NoError(t, err)
	return c
}

func TestBreakerStopsAskingAGuardThatFailsAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []Fault{Unreachable, Timeout, Overloaded} {
			var answer error = &Error{Fault: f}
			var calls int
			var changes []string
			c := breakerChain(t, &answer, &calls, &changes)
			for range 3 {
				_, err := c.Review(t.Context(), command)
				require.Equal(t, f, faultOf(t, err))
			}
			_, err := c.Review(t.Context(), command)
			assert.Equal(t, Overloaded, faultOf(t, err))
			assert.ErrorContains(t, err, "tried again every 10s")
			assert.Equal(t, 3, calls, "not asked while open")

			time.Sleep(10*time.Second + time.Millisecond)
			_, err = c.Review(t.Context(), command)
			assert.Equal(t, f, faultOf(t, err))
			_, _ = c.Review(t.Context(), command)
			assert.Equal(t, 4, calls, "one try, then open again")

			time.Sleep(10*time.Second + time.Millisecond)
			answer = nil
			v, err := c.Review(t.Context(), command)
			require.NoError(t, err)
			assert.Equal(t, Block, v.Decision)
			_, _ = c.Review(t.Context(), command)
			assert.Equal(t, 6, calls)
			assert.Equal(t, []string{"r true", "r false"}, changes)
		}
	})
}

// What an operator must mend, what a client can bring about and what a client
// that leaves causes must not stop the guard for everyone else.
func TestBreakerIgnoresFaultsThatSayNothingAboutTheService(t *testing.T) {
	for _, f := range Faults() {
		if f == Unreachable || f == Timeout || f == Overloaded {
			continue
		}
		var answer error = &Error{Fault: f}
		var calls int
		var changes []string
		c := breakerChain(t, &answer, &calls, &changes)
		for range 20 {
			_, err := c.Review(t.Context(), command)
			require.Equal(t, f, faultOf(t, err))
		}
		assert.Equal(t, 20, calls, f)
		assert.Empty(t, changes)
	}
}

func TestBreakerIgnoresClientsThatLeave(t *testing.T) {
	var answer error = &Error{Fault: Timeout}
	var calls int
	var changes []string
	c := breakerChain(t, &answer, &calls, &changes)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 20 {
		_, err := c.Review(gone, command)
		require.Equal(t, Canceled, faultOf(t, err))
	}
	assert.Empty(t, changes)
	answer = nil
	_, err := c.Review(t.Context(), command)
	assert.NoError(t, err)
}

// A client that leaves during the one try must not keep the breaker from trying
// again.
func TestBreakerSurvivesAClientThatLeavesDuringTheTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer error = &Error{Fault: Unreachable}
		var calls int
		var changes []string
		c := breakerChain(t, &answer, &calls, &changes)
		for range 3 {
			_, _ = c.Review(t.Context(), command)
		}
		time.Sleep(11 * time.Second)
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := c.Review(gone, command)
		require.Equal(t, Canceled, faultOf(t, err))
		answer = nil
		_, err = c.Review(t.Context(), command)
		require.NoError(t, err)
		assert.Equal(t, []string{"r true", "r false"}, changes)
	})
}

func TestBreakerLocalGuardsHaveNone(t *testing.T) {
	c := chain(t, Link{Guard: fails(Unreachable)})
	for range 50 {
		_, err := c.Review(t.Context(), command)
		require.Equal(t, Unreachable, faultOf(t, err))
	}
}
