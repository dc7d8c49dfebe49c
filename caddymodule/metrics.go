package caddymodule

import (
	"errors"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

var (
	teardownsDesc = prometheus.NewDesc("caddy_e2b_guard_teardowns_total",
		"Sandboxes that came to their end without a client's kill, by cause and by whether E2B confirmed that they are gone.", []string{"cause", "confirmed"}, nil)
	pendingDesc = prometheus.NewDesc("caddy_e2b_guard_teardowns_pending",
		"Sandboxes that are being ended and are not confirmed to be gone.", nil, nil)
)

// metrics implements prometheus.Collector with what is known in this process, of
// all accounts: it outlives configurations, each of which has a registry.
type metrics struct{}

// Describe implements prometheus.Collector.
func (metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- teardownsDesc
	ch <- pendingDesc
}

// Collect implements prometheus.Collector.
func (metrics) Collect(ch chan<- prometheus.Metric) {
	total, pending := map[gateway.TeardownCount]uint64{}, 0
	pool.Range(func(_, v any) bool {
		done, ending := v.(*shared).state.Teardowns()
		for count, n := range done {
			total[count] += n
		}
		pending += ending
		return true
	})
	for count, n := range total {
		ch <- prometheus.MustNewConstMetric(teardownsDesc, prometheus.CounterValue, float64(n), count.Cause, strconv.FormatBool(count.Confirmed))
	}
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(pending))
}

// registerMetrics makes the metrics part of a configuration's, once for all its
// handlers.
func registerMetrics(ctx caddy.Context) error {
	err := ctx.GetMetricsRegistry().Register(metrics{})
	if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return nil
	}
	return err
}
