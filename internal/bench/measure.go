package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// figures holds what was measured of one proxy, a value for each round.
type figures struct {
	getP50, getP99, getRate  []float64 // Seconds, seconds, calls a second.
	startP50, startP99       []float64
	startRate                []float64
	stream, upload, download []float64 // Bytes a second.
	streamAbove, uploadAbove []float64 // Most resident bytes meanwhile, above idle.
	downloadAbove            []float64
}

// subject is one proxy and what was measured of it.
type subject struct {
	*proxy
	*figures
}

// workload is one kind of traffic. It measures every subject in turns, as finely
// as it can, so that what else the machine does falls on all of them alike.
type workload struct {
	name    string
	audited bool // measured with an audit log as well
	measure func(ctx context.Context, subjects []subject, round int) error
}

var workloads = []workload{
	{"pass-through GET", false, measureGet},
	{"guarded Start", true, measureStart},
	{"streamed stdout", true, measureStream},
	{"upload", false, measureUpload},
	{"download", false, measureDownload},
}

const (
	sandbox  = "ibench"
	envdPort = "49983"
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

func measureGet(ctx context.Context, subjects []subject, _ int) error {
	get := func(p *proxy) error { return p.do(ctx, http.MethodGet, "/sandboxes/"+sandbox+"/metrics", "", nil, 0) }
	times, err := timed(subjects, func(p *proxy, _ int) error { return get(p) })
	if err != nil {
		return err
	}
	rates, err := throughput(ctx, subjects, get)
	if err != nil {
		return err
	}
	for i, s := range subjects {
		s.getP50, s.getP99 = append(s.getP50, percentile(times[i], 50)), append(s.getP99, percentile(times[i], 99))
		s.getRate = append(s.getRate, rates[i])
	}
	return nil
}

func measureStart(ctx context.Context, subjects []subject, round int) error {
	var last atomic.Int64
	start := func(p *proxy, unique string) error {
		body, err := startBody("cd /home/user/app && grep -c run=" + unique + " job.log | tee out-" + unique + ".log && ls -la")
		if err != nil {
			return err
		}
		return p.do(ctx, http.MethodPost, "/process.Process/Start", "application/connect+json", bytes.NewReader(body), 0)
	}
	times, err := timed(subjects, func(p *proxy, i int) error { return start(p, fmt.Sprintf("%d-%d", round, i)) })
	if err != nil {
		return err
	}
	rates, err := throughput(ctx, subjects, func(p *proxy) error { return start(p, fmt.Sprintf("%d-x%d", round, last.Add(1))) })
	if err != nil {
		return err
	}
	for i, s := range subjects {
		s.startP50, s.startP99 = append(s.startP50, percentile(times[i], 50)), append(s.startP99, percentile(times[i], 99))
		s.startRate = append(s.startRate, rates[i])
	}
	return nil
}

func measureStream(ctx context.Context, subjects []subject, round int) error {
	body, err := startBody(streamCommand + " # " + strconv.Itoa(round))
	if err != nil {
		return err
	}
	return transfer(subjects, streamBytes, func(p *proxy) error {
		return p.do(ctx, http.MethodPost, "/process.Process/Start", "application/connect+json", bytes.NewReader(body), 0)
	}, func(f *figures) (*[]float64, *[]float64) { return &f.stream, &f.streamAbove })
}

func measureUpload(ctx context.Context, subjects []subject, _ int) error {
	return transfer(subjects, transferBytes, func(p *proxy) error {
		data := io.LimitReader(pattern{}, transferBytes)
		return p.do(ctx, http.MethodPost, "/files?path=data.bin&username=user", "application/octet-stream", data, transferBytes)
	}, func(f *figures) (*[]float64, *[]float64) { return &f.upload, &f.uploadAbove })
}

func measureDownload(ctx context.Context, subjects []subject, _ int) error {
	return transfer(subjects, transferBytes, func(p *proxy) error {
		return p.do(ctx, http.MethodGet, "/files?path=data.bin&username=user", "application/octet-stream", nil, 0)
	}, func(f *figures) (*[]float64, *[]float64) { return &f.download, &f.downloadAbove })
}

// transfer measures bytes a second of one call, and how far memory is above
// that of the idle process meanwhile, whatever it was used for.
func transfer(subjects []subject, size int, call func(*proxy) error, into func(*figures) (rate, above *[]float64)) error {
	for _, s := range subjects {
		started := time.Now()
		peak, err := s.peak(func() error { return call(s.proxy) })
		if err != nil {
			return err
		}
		rate, above := into(s.figures)
		*rate = append(*rate, float64(size)/time.Since(started).Seconds())
		*above = append(*above, float64(max(0, peak-s.idle)))
	}
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

// timed returns the seconds that calls to each subject took, after a few to warm
// up. Subjects take turns call by call.
func timed(subjects []subject, call func(p *proxy, i int) error) ([][]float64, error) {
	const (
		samples = 400
		warmUp  = 20
	)
	times := make([][]float64, len(subjects))
	for i := range samples + warmUp {
		for turn := range subjects {
			at := (turn + i) % len(subjects)
			started := time.Now()
			if err := call(subjects[at].proxy, i); err != nil {
				return nil, err
			}
			if i >= warmUp {
				times[at] = append(times[at], time.Since(started).Seconds())
			}
		}
	}
	return times, nil
}

// throughput returns how many calls a second several clients at once complete at
// each subject. Subjects take turns of a fraction of a second.
func throughput(ctx context.Context, subjects []subject, call func(*proxy) error) ([]float64, error) {
	const turns = 4
	calls, seconds := make([]float64, len(subjects)), make([]float64, len(subjects))
	for range turns {
		for i, s := range subjects {
			started := time.Now()
			n, err := burst(ctx, func() error { return call(s.proxy) })
			if err != nil {
				return nil, err
			}
			calls[i] += float64(n)
			seconds[i] += time.Since(started).Seconds()
		}
	}
	for i := range calls {
		calls[i] /= seconds[i]
	}
	return calls, nil
}

// burst counts the calls that several clients complete in a fraction of a
// second.
func burst(ctx context.Context, call func() error) (int64, error) {
	const (
		clients  = 16
		duration = 250 * time.Millisecond
	)
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var calls atomic.Int64
	for range clients {
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := call(); err != nil {
					return err
				}
				calls.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return calls.Load(), err
}

// percentile returns the q-th percentile of values; it sorts a copy.
func percentile(values []float64, q int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*q/100)]
}

func median(values []float64) float64 { return percentile(values, 50) }
