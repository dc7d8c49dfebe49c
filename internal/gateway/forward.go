package gateway

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// forwarder sends calls to E2B. One httputil.ReverseProxy serves every plane;
// what differs between calls travels in their context.
type forwarder struct {
	api, sandbox *url.URL
	control      http.RoundTripper
	data         http.RoundTripper
	ports        http.RoundTripper
	proxy        *httputil.ReverseProxy
}

func newForwarder(g *Gateway) (*forwarder, error) {
	f := &forwarder{api: g.cfg.Upstream.APIURL, sandbox: g.cfg.Upstream.SandboxURL}
	if rt := g.cfg.Upstream.Transport; rt != nil {
		f.control, f.data, f.ports = rt, rt, rt
	} else {
		f.control, f.data, f.ports = newTransports(g.cfg.IdleTimeout)
	}
	errorLog, err := zap.NewStdLogAt(g.log.Named("proxy"), zap.DebugLevel)
	if err != nil {
		return nil, fmt.Errorf("making the proxy's logger: %w", err)
	}
	// FlushInterval is left alone: answers of unknown length, which streams are,
	// are flushed at every write, and the others need not be.
	f.proxy = &httputil.ReverseProxy{
		Rewrite:        f.rewrite,
		Transport:      f,
		BufferPool:     buffers,
		ModifyResponse: func(resp *http.Response) error { return callFrom(resp.Request.Context()).filter(resp) },
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, err error) { callFrom(r.Context()).forwardFailed(err) },
		ErrorLog:       log.New(errorLog.Writer(), "", 0),
	}
	return f, nil
}

// buffers are what answers are copied through: without a pool each call, however
// small its answer, would cost one.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([copyBuffer]byte) }}}

const copyBuffer = 32 << 10

// bufferPool implements httputil.BufferPool.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte  { return p.pool.Get().(*[copyBuffer]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[copyBuffer]byte)(b)) }

// newTransports makes one connection pool per kind of upstream. The control
// plane speaks HTTP/2; envd and the interpreter speak HTTP/1.1 only, and a
// sandbox that accepts a call but never answers is given up after idle. User
// ports may think as long as they like.
func newTransports(idle time.Duration) (control, data, ports http.RoundTripper) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		// A client that asked for gzip gets the upstream's own; one that did not
		// must not find its answer recompressed or unpacked by us.
		DisableCompression: true,
		WriteBufferSize:    32 << 10,
		ReadBufferSize:     32 << 10,
	}
	h2 := base.Clone()
	h2.ForceAttemptHTTP2 = true
	h2.ResponseHeaderTimeout = idle

	h1 := new(http.Protocols)
	h1.SetHTTP1(true)
	d := base.Clone()
	d.Protocols = h1
	d.ResponseHeaderTimeout = idle
	p := base.Clone()
	p.Protocols = h1
	return h2, d, p
}

// RoundTrip implements http.RoundTripper: it picks the pool by plane.
func (f *forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	switch callFrom(r.Context()).target.Plane {
	case route.Control, route.Volume:
		return f.control.RoundTrip(r)
	case route.Port, route.MCP:
		return f.ports.RoundTrip(r)
	default:
		return f.data.RoundTrip(r)
	}
}

// closeIdle ends the pools' idle connections; those in use end with their calls.
func (f *forwarder) closeIdle() {
	for _, rt := range []http.RoundTripper{f.control, f.data, f.ports} {
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// rewrite turns the client's request into the canonical one: host, path and
// routing headers come from the target, credentials from the configuration, the
// body from the steps before. Nothing the client wrote in their place survives.
func (f *forwarder) rewrite(pr *httputil.ProxyRequest) {
	c := callFrom(pr.In.Context())
	base := c.sandboxURL()
	switch {
	case c.target.Plane == route.Volume:
		base = c.volumeURL()
	case c.target.Sandbox == "":
		base = f.api
	}
	u := *base
	u.Path = strings.TrimSuffix(base.Path, "/") + c.target.Path
	u.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + c.target.RawPath
	u.RawQuery = pr.Out.URL.RawQuery
	if c.target.Plane == route.Port {
		u.RawQuery = pr.In.URL.RawQuery // the application may read what Go does not
	}
	pr.Out.URL = &u
	pr.Out.Host = base.Host

	h := pr.Out.Header
	for name := range h {
		if strings.HasPrefix(name, "E2b-Guard") {
			delete(h, name)
		}
	}
	h.Del("Expect") // the body is here already, or streams without asking
	if c.target.Plane != route.Port {
		for _, name := range methodOverrides {
			h.Del(name)
		}
	}
	c.target.SetHeaders(h)
	switch {
	case c.target.Plane == route.Volume:
		h.Del("X-Api-Key") // the volume's own token is what counts
		if c.g.vault() {
			h.Set("Authorization", "Bearer "+c.tokens.volume.Reveal())
		}
	case c.target.Sandbox == "":
		if key := c.g.cfg.Upstream.APIKey; !key.IsZero() {
			h.Del("Authorization")
			h.Del("X-Api-Key")
			h.Set("X-Api-Key", key.Reveal())
		}
	default:
		h.Del("X-Api-Key") // the data plane takes none; a client's mistake must not reach a sandbox
		c.setTokens(h)
	}
	if c.filtered() {
		h.Del("Accept-Encoding") // what is filtered must be readable
		h.Del("Connect-Accept-Encoding")
	}
	switch {
	case c.body != nil:
		h.Del("Content-Encoding")
		pr.Out.TransferEncoding, pr.Out.Trailer = nil, nil
		c.body.apply(pr.Out)
	case c.target.Plane != route.Port:
		// Nothing was read of it, and E2B takes none here.
		pr.Out.Body, pr.Out.ContentLength = http.NoBody, 0
		pr.Out.TransferEncoding, pr.Out.Trailer = nil, nil
		h.Del("Content-Length")
	}
}

// methodOverrides are headers by which some servers take another method than the
// one that was judged.
var methodOverrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

type callKey struct{}

func callFrom(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// forwardFailed answers for an upstream that could not be reached, or an upload
// that was refused while it streamed.
func (c *call) forwardFailed(err error) {
	var ref *refusal.Refusal
	switch {
	case errors.As(err, &ref):
	case c.upload != nil && c.upload.refusal() != nil:
		ref = c.upload.refusal()
	case c.r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client is gone; what it must not get is an empty 200
	default:
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			c.tree.over() // nothing was started
		}
		ref = refusal.New(refusal.CodeUpstream, "e2bguard could not reach E2B: the call did not arrive, or its answer was lost. Check the upstream settings and E2B's status, then try again.")
		ref.Err = err
		ref.Retryable = true
	}
	c.refuse(ref)
}
