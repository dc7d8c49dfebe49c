package gateway

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// enforceDownload asks for the whole file, as it is: a part of one, or a packed
// one, cannot be searched for secrets. HTTP lets a server answer so.
func (c *call) enforceDownload() *refusal.Refusal {
	if c.hiding().Empty() {
		return nil
	}
	for _, header := range []string{"Range", "If-Range", "Accept-Encoding"} {
		c.r.Header.Del(header)
	}
	return nil
}

// filterDownload takes secrets out of a file that is text. What takes their place
// is as long, so that lengths stay true.
func (c *call) filterDownload(resp *http.Response) error {
	set := c.hiding()
	if set.Empty() || resp.StatusCode != http.StatusOK {
		return nil
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refusal.New(refusal.CodeUpstream, "E2B sent a file in a packed form that it was not asked for, in which e2bguard cannot look for secrets.")
	}
	resp.Header.Set("Accept-Ranges", "none")
	resp.Body = &download{body: resp.Body, stream: redact.NewPaddedStream(set)}
	return nil
}

// download is the content of a file.
type download struct {
	body   io.ReadCloser
	stream *redact.Stream
	known  bool // whether it is text
	binary bool
	in     []byte
	out    []byte
	err    error
}

// sniffed is how much of a file tells whether it is text: a byte of zero there, and
// it is not (as git sees it).
const sniffed = 8000

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		switch {
		case d.err != nil:
			return 0, d.err
		case d.binary:
			return d.body.Read(p)
		}
		d.fill()
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

func (d *download) fill() {
	if d.in == nil {
		d.in = make([]byte, 32<<10)
	}
	var n int
	if !d.known {
		n, d.err = io.ReadAtLeast(d.body, d.in, sniffed)
		if d.err == io.ErrUnexpectedEOF { //nolint:errorlint // io.ReadAtLeast returns the value itself
			d.err = io.EOF
		}
		d.known = true
		if d.binary = bytes.IndexByte(d.in[:min(n, sniffed)], 0) >= 0; d.binary {
			d.out = d.in[:n]
			return
		}
	} else {
		n, d.err = d.body.Read(d.in)
	}
	d.out, _ = d.stream.Next(d.in[:n])
	if d.err != nil {
		d.out = append(bytes.Clone(d.out), d.stream.End()...)
	}
}

// Close implements io.Closer.
func (d *download) Close() error { return d.body.Close() }

// hideInAnswer takes secrets out of an answer that is read whole.
func (c *call) hideInAnswer(resp *http.Response) error {
	set := c.hiding()
	if set.Empty() || resp.Body == nil || resp.Body == http.NoBody {
		return nil
	}
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	packed := strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip")
	if packed {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return fmt.Errorf("unpacking E2B's answer: %w", err)
		}
		if b, err = io.ReadAll(io.LimitReader(r, maxAnswer+1)); err != nil || len(b) > maxAnswer {
			return refusal.New(refusal.CodeUpstream, "E2B's answer cannot be unpacked, or is larger than e2bguard reads.")
		}
	}
	clean := set.Replace(string(b))
	if clean == string(b) {
		return nil
	}
	if packed {
		resp.Header.Del("Content-Encoding")
	}
	replaceBody(resp, []byte(clean))
	return nil
}
