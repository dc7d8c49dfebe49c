package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func cacheOf(t *testing.T, inner Guard, opts CacheOptions) *Cache {
	t.Helper()
	c, err := NewCache(inner, opts)
	require.NoError(t, err)
	return c
}

func TestCacheAnswersTheSameSubjectOnce(t *testing.T) {
	var inner recorder
	c := cacheOf(t, &inner, CacheOptions{})
	first, err := c.Review(t.Context(), command)
	require.NoError(t, err)
	assert.False(t, first.Cached)
	second, err := c.Review(t.Context(), command)
	require.NoError(t, err)
	assert.True(t, second.Cached)
	assert.Equal(t, Pass, second.Decision)
	assert.Equal(t, 1, inner.count())
}

// e2b-dev/infra PR 3324: a cache kept a deleted key alive. One client's allow must
// not be another's, nor outlive the policy it was given under.
func TestCacheKeyHoldsAllThatDecides(t *testing.T) {
	base := Subject{Kind: KindCode, Language: "python", Text: "x", Target: "t", Labels: map[string]string{LabelClient: "a", LabelCwd: "/"}}
	with := func(edit func(*Subject)) Subject {
		s := base
		s.Labels = maps.Clone(base.Labels)
		edit(&s)
		return s
	}
	others := map[string]Subject{
		"kind":          with(func(s *Subject) { s.Kind = KindCommand }),
		"language":      with(func(s *Subject) { s.Language = "bash" }),
		"text":          with(func(s *Subject) { s.Text = "y" }),
		"target":        with(func(s *Subject) { s.Target = "" }),
		"client":        with(func(s *Subject) { s.Labels[LabelClient] = "b" }),
		"cwd":           with(func(s *Subject) { s.Labels[LabelCwd] = "/etc" }),
		"user":          with(func(s *Subject) { s.Labels[LabelUser] = "root" }),
		"env":           with(func(s *Subject) { s.Labels[LabelEnvNames] = "A" }),
		"network":       with(func(s *Subject) { s.Labels[LabelNetwork] = "blocked" }),
		"file":          with(func(s *Subject) { s.Files = []File{{Path: "/x", Text: "a"}} }),
		"file's text":   with(func(s *Subject) { s.Files = []File{{Path: "/x", Text: "b"}} }),
		"file's path":   with(func(s *Subject) { s.Files = []File{{Path: "/y", Text: "a"}} }),
		"two files":     with(func(s *Subject) { s.Files = []File{{Path: "/x", Text: "a"}, {Path: "/y", Text: "a"}} }),
		"unseen file":   with(func(s *Subject) { s.Labels[LabelUnseen] = "/x" }),
		"action":        with(func(s *Subject) { s.Labels[LabelAction] = "write" }),
		"operation":     with(func(s *Subject) { s.Labels[LabelOperation] = "x" }),
		"no labels":     with(func(s *Subject) { s.Labels = nil }),
		"shifted":       with(func(s *Subject) { s.Target, s.Text = "tx", "" }),
		"shifted label": with(func(s *Subject) { s.Labels = map[string]string{LabelClient: "a" + LabelCwd + "/"} }),
		"empty label":   with(func(s *Subject) { s.Labels[LabelUser] = "" }),
		"swapped":       with(func(s *Subject) { s.Labels = map[string]string{LabelClient: "/", LabelCwd: "a"} }),
	}
	var inner recorder
	c := cacheOf(t, &inner, CacheOptions{PolicyDigest: "p"})
	keys := map[cacheKey]string{c.key(base): "base"}
	for name, s := range others {
		if twin, ok := keys[c.key(s)]; ok {
			t.Errorf("%s has the key of %s", name, twin)
		}
		keys[c.key(s)] = name
	}
	assert.Equal(t, c.key(base), c.key(with(func(s *Subject) { s.Labels[LabelSandbox], s.Labels[LabelRequest] = "sbx", "r" })))
	assert.NotEqual(t, c.key(base), cacheOf(t, &inner, CacheOptions{PolicyDigest: "q"}).key(base))
	assert.NotEqual(t, c.key(base), cacheOf(t, digested{&inner, "chain"}, CacheOptions{PolicyDigest: "p"}).key(base))
	assert.NotEqual(t,
		cacheOf(t, digested{&inner, "x"}, CacheOptions{PolicyDigest: "p"}).key(base),
		cacheOf(t, digested{&inner, ""}, CacheOptions{PolicyDigest: "px"}).key(base))
}

func TestCacheForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner recorder
		c := cacheOf(t, &inner, CacheOptions{TTL: time.Minute})
		ask := func() bool {
			v, err := c.Review(t.Context(), command)
			require.NoError(t, err)
			return v.Cached
		}
		assert.False(t, ask())
		time.Sleep(time.Minute - time.Millisecond)
		assert.True(t, ask())
		time.Sleep(time.Millisecond)
		assert.False(t, ask(), "a hit does not prolong a verdict's life")
		assert.True(t, ask())
	})
}

func TestCacheIsBounded(t *testing.T) {
	var inner recorder
	c := cacheOf(t, &inner, CacheOptions{Entries: 10})
	for i := range 1000 {
		_, err := c.Review(t.Context(), Subject{Kind: KindCode, Text: fmt.Sprint(i)})
		require.NoError(t, err)
	}
	assert.Equal(t, 10, c.verdicts.Len())
	assert.Empty(t, c.flights)
}

func TestCacheKeepsNoErrors(t *testing.T) {
	var calls int
	g := guardFunc(func(context.Context, Subject) (Verdict, error) {
		calls++
		switch calls {
		case 1:
			return Verdict{}, &Error{Fault: Unreachable}
		case 2:
			panic("x")
		case 3:
			return Verdict{}, nil
		default:
			return Verdict{Decision: Block}, nil
		}
	})
	c := cacheOf(t, g, CacheOptions{})
	for _, want := range []Fault{Unreachable, Panicked, BadAnswer} {
		_, err := c.Review(t.Context(), command)
		assert.Equal(t, want, faultOf(t, err))
	}
	v, err := c.Review(t.Context(), command)
	require.NoError(t, err)
	assert.False(t, v.Cached)
	assert.Equal(t, 4, calls)
}

func TestCacheIdenticalSubjectsAtOnceAreOneReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan struct{})
		g := guardFunc(func(context.Context, Subject) (Verdict, error) {
			calls.Add(1)
			<-release
			return Verdict{Decision: Block, Violations: []Violation{{Type: "a"}}}, nil
		})
		c := cacheOf(t, g, CacheOptions{})
		var wg sync.WaitGroup
		var fresh atomic.Int32
		for range 64 {
			wg.Go(func() {
				v, err := c.Review(t.Context(), command)
				assert.NoError(t, err)
				assert.Equal(t, Block, v.Decision)
				v.Violations[0].Type = "changed by a caller"
				if !v.Cached {
					fresh.Add(1)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		assert.Equal(t, int32(1), calls.Load())
		assert.Equal(t, int32(1), fresh.Load())
		v, err := c.Review(t.Context(), command)
		require.NoError(t, err)
		assert.Equal(t, "a", v.Violations[0].Type)
	})
}

func TestCacheOneCallerLeavingDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := guardFunc(func(ctx context.Context, _ Subject) (Verdict, error) {
			select {
			case <-release:
				return Verdict{Decision: Pass}, nil
			case <-ctx.Done():
				return Verdict{}, ctx.Err()
			}
		})
		c := cacheOf(t, g, CacheOptions{})
		gone, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { // The one whose call started the review.
			_, err := c.Review(gone, command)
			assert.Equal(t, Canceled, FaultOf(err))
		})
		synctest.Wait()
		wg.Go(func() {
			v, err := c.Review(t.Context(), command)
			assert.NoError(t, err)
			assert.Equal(t, Pass, v.Decision)
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(release)
		wg.Wait()
	})
}

func TestCacheReviewEndsWhenAllHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		g := guardFunc(func(ctx context.Context, s Subject) (Verdict, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // It takes a while to notice.
			ended.Add(1)
			return Verdict{}, ctx.Err()
		})
		c := cacheOf(t, g, CacheOptions{})
		gone, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := c.Review(gone, command)
				assert.Equal(t, Canceled, FaultOf(err))
			})
		}
		synctest.Wait()
		leave()
		wg.Wait()
		// Whoever comes now must not join the review that is being given up.
		late, tooLate := context.WithTimeout(t.Context(), time.Minute)
		defer tooLate()
		_, err := c.Review(late, command)
		assert.Equal(t, Canceled, FaultOf(err))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Second)
		assert.Equal(t, int32(2), ended.Load())
		assert.Empty(t, c.flights)
	})
}

func TestCacheAsksNobodyForAClientThatHasLeft(t *testing.T) {
	var inner recorder
	c := cacheOf(t, &inner, CacheOptions{})
	gone, leave := context.WithCancelCause(t.Context())
	leave(errors.New("hung up"))
	_, err := c.Review(gone, command)
	assert.Equal(t, Canceled, faultOf(t, err))
	assert.ErrorContains(t, err, "hung up")
	assert.Zero(t, inner.count())
}

func TestNewCacheRefusesNonsense(t *testing.T) {
	_, err := NewCache(nil, CacheOptions{})
	assert.Error(t, err)
	_, err = NewCache(passes, CacheOptions{Entries: -1})
	assert.Error(t, err)
	_, err = NewCache(passes, CacheOptions{TTL: -1})
	assert.Error(t, err)
}

func BenchmarkCacheHit(b *testing.B) {
	for _, size := range []int{64, 8 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			c, err := NewCache(passes, CacheOptions{})
			require.NoError(b, err)
			s := Subject{Kind: KindCode, Text: strings.Repeat("x", size), Labels: map[string]string{LabelClient: "c", LabelCwd: "/home/user", LabelSandbox: "s"}}
			_, err = c.Review(b.Context(), s)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.Review(b.Context(), s)
			}
		})
	}
}
