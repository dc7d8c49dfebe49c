package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	assert.InDelta(t, 3.0, median(values), 0)
	assert.InDelta(t, 5.0, percentile(values, 99), 0)
	assert.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the values were reordered")
}

func TestComparisonMarksMissedTargets(t *testing.T) {
	one, two := []float64{1}, []float64{2}
	assert.False(t, ratio("", one, two, perSecond, 1.15, false).held)
	assert.True(t, ratio("", two, one, perSecond, 1.15, false).held)
	assert.True(t, ratio("", one, two, perSecond, 0.9, true).held)
	assert.False(t, ratio("", two, one, perSecond, 0.9, true).held)
	assert.False(t, added("", []float64{0.001}, []float64{0.002}).held)
	assert.True(t, added("", []float64{0.001}, []float64{0.0012}).held)
	assert.False(t, above("", one, []float64{65 << 20}).held)
}

func TestTimedLeavesOutTheWarmUpAndTakesTurns(t *testing.T) {
	one, two := &proxy{url: "one"}, &proxy{url: "two"}
	subjects := []subject{{one, nil}, {two, nil}}
	var order []string
	times, err := timed(subjects, func(p *proxy, _ int) error { order = append(order, p.url); return nil })
	require.NoError(t, err)
	assert.Less(t, len(times[0]), len(order)/2, "the warm-up was counted")
	assert.Len(t, times[1], len(times[0]))
	assert.Equal(t, []string{"one", "two", "two", "one", "one", "two"}, order[:6])

	_, err = timed(subjects, func(*proxy, int) error { return errors.New("refused") })
	require.ErrorContains(t, err, "refused")
}

func TestThroughputStopsAtAnError(t *testing.T) {
	subjects := []subject{{&proxy{}, nil}}
	rates, err := throughput(t.Context(), subjects, func(*proxy) error { return nil })
	require.NoError(t, err)
	assert.Positive(t, rates[0])
	_, err = throughput(t.Context(), subjects, func(*proxy) error { return errors.New("refused") })
	require.ErrorContains(t, err, "refused")
}

func TestARefusedCallIsAnErrorAndNotAMeasurement(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"by status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"by the end of a stream": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 4096))
			_, _ = w.Write(frame(2, `{"error":{"code":"permission_denied"}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			p := &proxy{url: server.URL, http: server.Client()}
			require.Error(t, p.do(t.Context(), http.MethodGet, "/", "", nil, 0))
		})
	}
}

func TestUpstreamStreamsWhatItPromises(t *testing.T) {
	u, err := startUpstream()
	require.NoError(t, err)
	defer u.close()
	body, err := startBody(streamCommand)
	require.NoError(t, err)
	resp, err := http.Post(u.url+"/process.Process/Start", "application/connect+json", bytes.NewReader(body)) //nolint:noctx // Ends with the test.
	require.NoError(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	assert.Greater(t, n, int64(streamBytes), "base64 makes it longer")
}
