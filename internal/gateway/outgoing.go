package gateway

import (
	"bytes"
	"io"
	"net/http"
)

// outgoing is a request body that the gateway wrote itself.
type outgoing interface {
	// apply puts the body, its length and its headers on the request.
	apply(r *http.Request)
}

// messageBody is a decoded and re-encoded message.
type messageBody []byte

func (m messageBody) apply(r *http.Request) {
	r.ContentLength = int64(len(m))
	r.Header.Del("Content-Length")
	// A connection that the upstream closed while idle is tried again on a new
	// one, as long as nothing was written: the transport needs the body twice.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m)), nil }
	r.Body, _ = r.GetBody()
}
