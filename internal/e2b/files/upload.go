// Package files reads and writes the bodies of envd's /files route: raw and
// multipart uploads, the paths they write to, and what makes a file code.
//
// Facts of the route are envd's. It parses with Go's mime and multipart
// packages, so this package does too.
package files

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// HeadBytes is how much of a file Part.Head holds.
const HeadBytes = 64 << 10

// Options bound an upload.
type Options struct {
	// MaxBytes bounds the body after decompression; 0 for no bound.
	MaxBytes int64
}

// Upload is one POST /files.
type Upload struct {
	// Username owns the files and is whose home "~" is; "" for the sandbox's
	// default user.
	Username string
	// RawQuery is the canonical query to forward: what envd reads is what was
	// read here. Parameters not known here survive.
	RawQuery string

	path      string            // from the query; it beats every part's filename
	body      io.Reader         // after decompression
	head      *headLimit        // between body and parts
	parts     *multipart.Reader // nil for a raw body
	boundary  string            // of the canonical multipart body
	seen      int
	committed bool // a raw body was handed out
}

// NewUpload reads the head of an upload. It refuses what envd refuses and what
// envd and this package could read differently. body is the request's body.
func NewUpload(r *http.Request, body io.Reader, o Options) (*Upload, *refusal.Refusal) {
	if ref := refuseRepeated(r.Header); ref != nil {
		return nil, ref
	}
	query, ref := parseQuery(r)
	if ref != nil {
		return nil, ref
	}
	if _, ref := canonicalQuery(query); ref != nil {
		return nil, ref
	}
	u := &Upload{Username: query.Get("username"), path: query.Get("path")}
	if u.path == "" {
		query.Del("path") // Empty is absent, as in a signed URL without a path.
	}
	u.RawQuery = query.Encode()
	if strings.ContainsRune(u.path, 0) {
		return nil, invalid("The path contains a NUL byte, which no file system knows.")
	}
	if u.body, ref = decompressed(r.Header.Get("Content-Encoding"), body, o.MaxBytes); ref != nil {
		return nil, ref
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, unsupported("The Content-Type of the upload cannot be read. Use multipart/form-data or application/octet-stream.")
	}
	switch mediaType {
	case "application/octet-stream":
		if u.path == "" {
			return nil, invalid("A raw upload needs the query parameter path.")
		}
	case "multipart/form-data", "multipart/mixed":
		if params["boundary"] == "" {
			return nil, invalid("The multipart body names no boundary.")
		}
		u.head = &headLimit{Reader: u.body}
		u.parts = multipart.NewReader(u.head, params["boundary"])
		u.boundary = multipart.NewWriter(io.Discard).Boundary()
	default:
		return nil, unsupported("Content-Type " + strconv.Quote(mediaType) + " is not one an upload can have. Use multipart/form-data or application/octet-stream.")
	}
	return u, nil
}

// refuseRepeated refuses headers of which envd takes the first value.
func refuseRepeated(h http.Header) *refusal.Refusal {
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		values := h.Values(name)
		for _, v := range values {
			if v != values[0] {
				return invalid("The header " + name + " is sent more than once with different values. Send it once.")
			}
		}
	}
	return nil
}

// parseQuery reads the query strictly. envd drops a pair it cannot read, and one
// with ";" in it, without a word.
func parseQuery(r *http.Request) (url.Values, *refusal.Refusal) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("The query cannot be read: percent-encode \"%\" and \";\" in paths.")
	}
	for _, name := range []string{"path", "username", "signature", "signature_expiration"} {
		if len(query[name]) > 1 {
			return nil, invalid("The query parameter " + name + " is given more than once. Give it once.")
		}
	}
	return query, nil
}

// canonicalQuery makes the path of a query canonical and reports whether it
// changed. The signature of a signed URL covers the path as it was written.
func canonicalQuery(query url.Values) (changed bool, ref *refusal.Refusal) {
	path := query.Get("path")
	canonical := Canonical(path)
	if canonical == path {
		return false, nil
	}
	if query.Get("signature") != "" {
		return false, invalid(`The signed path contains "..", which is resolved before a path is judged, and the signature covers it as it is. Sign the path without "..".`)
	}
	query.Set("path", canonical)
	return true, nil
}

// decompressed undoes Content-Encoding as envd does: gzip in any letter case,
// parameters ignored.
func decompressed(encoding string, body io.Reader, maxBytes int64) (io.Reader, *refusal.Refusal) {
	name, _, _ := strings.Cut(encoding, ";")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", "identity":
	case "gzip":
		body = &gunzip{src: body}
	default:
		return nil, unsupported("Content-Encoding " + strconv.Quote(encoding) + " is not supported. Send the upload plain, or with gzip.")
	}
	if maxBytes > 0 {
		body = &capped{body, maxBytes}
	}
	return body, nil
}

// gunzip decompresses from its first Read on, so that making it cannot fail.
type gunzip struct {
	src io.Reader
	z   *gzip.Reader
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g.src)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // An empty body is not an empty file.
		}
		if err != nil {
			return 0, fmt.Errorf("reading gzip: %w", err)
		}
		g.z = z
	}
	return g.z.Read(p)
}

// capped fails where a reader holds more than left bytes.
type capped struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (c *capped) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, refusal.New(refusal.CodeTooLarge, "The upload is larger than this gateway takes. Send less in one file.")
	}
	return n, err
}

// maxPartHead bounds what stands before a part's content: the headers of a file
// are a few hundred bytes. The multipart package alone would hold 10 MiB of them.
const maxPartHead = 128 << 10

// headLimit bounds how much may be read while it is armed.
type headLimit struct {
	io.Reader
	armed bool
	left  int
}

// Read implements io.Reader.
func (h *headLimit) Read(p []byte) (int, error) {
	if !h.armed {
		return h.Reader.Read(p)
	}
	if h.left == 0 {
		return 0, refusal.New(refusal.CodeTooLarge, "The headers of a part of the upload are too large. Name the file in the query parameter path.")
	}
	n, err := h.Reader.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}

// nextPart is the next part of a multipart body, whose headers are bounded.
func (u *Upload) nextPart() (*multipart.Part, error) {
	u.head.armed, u.head.left = true, maxPartHead
	defer func() { u.head.armed = false }()
	return u.parts.NextPart()
}

// Part is one file of an upload. Reading it yields the whole file, Head
// included; it is valid until the next call to Next.
type Part struct {
	io.Reader
	// Path is the path as envd reads it, Canonical, before "~" and relative
	// resolution.
	Path string
	// Head is the first HeadBytes of the file (all of a shorter one).
	Head []byte
	// Whole says that Head is the whole file.
	Whole bool
}

// Next returns the next file, or io.EOF. What is not a file (other form fields)
// is passed over, as envd does. Any other error is a *refusal.Refusal, or what
// reading the body failed with; the same holds for reading a Part.
func (u *Upload) Next() (*Part, error) {
	if u.parts == nil {
		if u.committed {
			return nil, io.EOF
		}
		u.committed = true
		return newPart(u.path, u.body)
	}
	for {
		p, err := u.nextPart()
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("reading multipart body: %w", err)
		}
		if p.FormName() != "file" {
			if _, err := io.Copy(io.Discard, p); err != nil {
				return nil, fmt.Errorf("reading multipart body: %w", err)
			}
			continue
		}
		path, ref := u.partPath(p)
		if ref != nil {
			return nil, ref
		}
		u.seen++
		return newPart(path, p)
	}
}

func (u *Upload) partPath(p *multipart.Part) (string, *refusal.Refusal) {
	if u.path != "" {
		if u.seen > 0 {
			return "", invalid("The query names one path and the body has more than one file. Leave path out of the query and name each file in its part.")
		}
		return u.path, nil
	}
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil || params["filename"] == "" {
		return "", invalid("A file of the upload has no name: give its part a filename, or name the path in the query.")
	}
	if strings.ContainsRune(params["filename"], 0) {
		return "", invalid("A file name contains a NUL byte, which no file system knows.")
	}
	return Canonical(params["filename"]), nil
}

func newPart(path string, r io.Reader) (*Part, error) {
	head := make([]byte, 0, 512)
	for len(head) < HeadBytes {
		if len(head) == cap(head) {
			head = append(make([]byte, 0, min(8*cap(head), HeadBytes)), head...)
		}
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if errors.Is(err, io.EOF) {
			return &Part{Reader: bytes.NewReader(head), Path: path, Head: head, Whole: true}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading file: %w", err)
		}
	}
	return &Part{Reader: io.MultiReader(bytes.NewReader(head), r), Path: path, Head: head}, nil
}

func invalid(reason string) *refusal.Refusal { return refusal.New(refusal.CodeInvalid, reason) }

func unsupported(reason string) *refusal.Refusal {
	return refusal.New(refusal.CodeUnsupported, reason)
}
