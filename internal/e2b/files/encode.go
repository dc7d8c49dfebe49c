package files

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// ContentType is the content type of the canonical body that Encoder writes.
func (u *Upload) ContentType() string {
	if u.parts == nil {
		return "application/octet-stream"
	}
	return "multipart/form-data; boundary=" + u.boundary
}

// Headers makes h fit the canonical body: content type set, content encoding
// and length dropped.
func (u *Upload) Headers(h http.Header) {
	h.Set("Content-Type", u.ContentType())
	h.Del("Content-Encoding")
	h.Del("Content-Length")
}

// Encoder writes the canonical body of an upload, streaming: a raw body as it
// is, a multipart body with a boundary of ours, one part per file, each with the
// name that was judged.
type Encoder struct {
	w    io.Writer
	form *multipart.Writer // nil for a raw body
}

// NewEncoder returns an Encoder that writes u's body to w.
func (u *Upload) NewEncoder(w io.Writer) *Encoder {
	if u.parts == nil {
		return &Encoder{w: w}
	}
	form := multipart.NewWriter(w)
	if err := form.SetBoundary(u.boundary); err != nil {
		// The boundary came from a multipart.Writer.
		panic(fmt.Sprintf("setting boundary: %v", err))
	}
	return &Encoder{w: w, form: form}
}

// Begin starts a file; its bytes are then written to the returned writer. It
// fails where the name cannot be written so that envd reads the same.
func (e *Encoder) Begin(p *Part) (io.Writer, error) {
	if e.form == nil {
		return e.w, nil
	}
	disposition := mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": p.Path})
	kind, params, err := mime.ParseMediaType(disposition)
	if err != nil || kind != "form-data" || params["name"] != "file" || params["filename"] != p.Path {
		return nil, refusal.New(refusal.CodeInvalid, "The file name cannot be written in a form, so the file was not written. Name it in the query parameter path.")
	}
	return e.form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {disposition},
		"Content-Type":        {"application/octet-stream"},
	})
}

// Close ends the body.
func (e *Encoder) Close() error {
	if e.form == nil {
		return nil
	}
	return e.form.Close()
}
