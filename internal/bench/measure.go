package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// figures holds what was measured of one proxy, a value for each round.
type figures struct {
	getP50, getP99, getRate  []float64 // Seconds, seconds, calls a second.
	startP50, startP99       []float64
	stream, upload, download []float64 // Bytes a second.
	streamGrown, uploadGrown []float64 // Resident bytes above those before.
	downloadGrown            []float64
	idle                     int64
}

type measurements struct{ plain, guarded figures }

func (m *measurements) of(guarded bool) *figures {
	if guarded {
		return &m.guarded
	}
	return &m.plain
}

// workload is one kind of traffic.
type workload struct {
	name    string
	measure func(ctx context.Context, p *proxy, into *figures, round int) error
}

var workloads = []workload{
	{"pass-through GET", measureGet},
	{"guarded Start", measureStart},
	{"streamed stdout", measureStream},
	{"upload", measureUpload},
	{"download", measureDownload},
}

const (
	sandbox  = "ibench"
	envdPort = "49983"
	// samples is how many calls a percentile of a round is taken of.
	samples = 400
)

func (p *proxy) do(ctx context.Context, method, path, contentType string, body io.Reader, size int64) error {
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	if size > 0 {
		req.ContentLength = size
	}
	if contentType == "" {
		req.Header.Set("X-API-Key", "e2b_00000000000000000000000000000000000000be")
	} else {
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("E2b-Sandbox-Id", sandbox)
		req.Header.Set("E2b-Sandbox-Port", envdPort)
		req.Header.Set("X-Access-Token", "ea_bench")
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return fmt.Errorf("calling %s: %w", path, err)
	}
	defer resp.Body.Close()
	tail := &lastBytes{}
	if _, err := io.Copy(tail, resp.Body); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if resp.StatusCode >= http.StatusBadRequest || bytes.Contains(tail.kept, []byte(`"error"`)) {
		return fmt.Errorf("%s %s answered %d: %s", method, path, resp.StatusCode, tail.kept)
	}
	return nil
}

// lastBytes keeps the end of what is written to it, where a refusal would be.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	const keep = 512
	l.kept = append(l.kept, p[max(0, len(p)-keep):]...)
	l.kept = l.kept[max(0, len(l.kept)-keep):]
	return len(p), nil
}

func measureGet(ctx context.Context, p *proxy, into *figures, _ int) error {
	get := func() error { return p.do(ctx, http.MethodGet, "/sandboxes/"+sandbox+"/metrics", "", nil, 0) }
	times, err := timed(samples, func(int) error { return get() })
	if err != nil {
		return err
	}
	into.getP50, into.getP99 = append(into.getP50, percentile(times, 50)), append(into.getP99, percentile(times, 99))
	rate, err := throughput(ctx, get)
	into.getRate = append(into.getRate, rate)
	return err
}

func measureStart(ctx context.Context, p *proxy, into *figures, round int) error {
	times, err := timed(samples, func(i int) error {
		unique := fmt.Sprintf("cd /home/user/app && python3 job.py --run %d-%d | tee out-%d.log && ls -la", round, i, i)
		body, err := startBody(unique)
		if err != nil {
			return err
		}
		return p.do(ctx, http.MethodPost, "/process.Process/Start", "application/connect+json", bytes.NewReader(body), 0)
	})
	if err != nil {
		return err
	}
	into.startP50, into.startP99 = append(into.startP50, percentile(times, 50)), append(into.startP99, percentile(times, 99))
	return nil
}

func measureStream(ctx context.Context, p *proxy, into *figures, round int) error {
	body, err := startBody(streamCommand + " # " + strconv.Itoa(round))
	if err != nil {
		return err
	}
	return transfer(p, streamBytes, &into.stream, &into.streamGrown, func() error {
		return p.do(ctx, http.MethodPost, "/process.Process/Start", "application/connect+json", bytes.NewReader(body), 0)
	})
}

func measureUpload(ctx context.Context, p *proxy, into *figures, _ int) error {
	return transfer(p, transferBytes, &into.upload, &into.uploadGrown, func() error {
		data := io.LimitReader(pattern{}, transferBytes)
		return p.do(ctx, http.MethodPost, "/files?path=data.bin&username=user", "application/octet-stream", data, transferBytes)
	})
}

func measureDownload(ctx context.Context, p *proxy, into *figures, _ int) error {
	return transfer(p, transferBytes, &into.download, &into.downloadGrown, func() error {
		return p.do(ctx, http.MethodGet, "/files?path=data.bin&username=user", "application/octet-stream", nil, 0)
	})
}

// transfer measures bytes a second of one call, and how far memory grew.
func transfer(p *proxy, size int, rate, grown *[]float64, call func() error) error {
	before, err := resident(p.process.Process.Pid)
	if err != nil {
		return err
	}
	started := time.Now()
	peak, err := p.peak(call)
	if err != nil {
		return err
	}
	*rate = append(*rate, float64(size)/time.Since(started).Seconds())
	*grown = append(*grown, float64(max(0, peak-before)))
	return nil
}

// pattern reads as bytes that are no text, so that an upload of it is data.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i*131) | 0x80 //nolint:gosec // Wraps by design.
	}
	return len(p), nil
}

// timed returns the seconds each of n calls took, after a few to warm up.
func timed(n int, call func(i int) error) ([]float64, error) {
	const warmUp = 20
	times := make([]float64, 0, n)
	for i := range n + warmUp {
		started := time.Now()
		if err := call(i); err != nil {
			return nil, err
		}
		if i >= warmUp {
			times = append(times, time.Since(started).Seconds())
		}
	}
	return times, nil
}

// throughput returns how many calls a second several clients at once complete.
func throughput(ctx context.Context, call func() error) (float64, error) {
	const (
		clients  = 16
		duration = time.Second
	)
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var (
		group sync.WaitGroup
		calls atomic.Int64
		once  sync.Once
		fault error
	)
	started := time.Now()
	for range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := call(); err != nil {
					once.Do(func() { fault = err })
					return
				}
				calls.Add(1)
			}
		})
	}
	group.Wait()
	return float64(calls.Load()) / time.Since(started).Seconds(), fault
}

// percentile returns the q-th percentile of values; it sorts a copy.
func percentile(values []float64, q int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*q/100)]
}

func median(values []float64) float64 { return percentile(values, 50) }
