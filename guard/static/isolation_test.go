package static

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// TestReviewsDoNotSeeEachOther: reviews pass their memory on, and nothing of
// one may change the verdict of another, in whatever order they come.
func TestReviewsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	var subjects []guard.Subject

	for _, s := range allSamples() {
		for _, text := range append(append([]string(nil), s.block...), s.pass...) {
			subjects = append(subjects, code(s.lang, text))
		}
	}

	review := func(s guard.Subject) guard.Verdict {
		v, err := g.Review(context.Background(), s)
		assert.NoError(t, err)

		v.Took = 0

		return v
	}

	want := make([]guard.Verdict, len(subjects))
	for i, s := range subjects {
		want[i] = review(s)
	}

	var all sync.WaitGroup

	for seed := range uint64(4) {
		all.Go(func() {
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(subjects)) {
				assert.Equal(t, want[i], review(subjects[i]), subjects[i].Text)
			}
		})
	}

	all.Wait()
}
