// Package files reads and writes the bodies of envd's /files route: raw and
// multipart uploads, the paths they write to, and what makes a file code.
package files

import (
	"io"
	"net/http"

	"github.com/e2bguard/e2bguard/guard"
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
	Username string // "" for the sandbox's default user
}

// NewUpload reads the head of an upload. It refuses what envd refuses and what
// envd and this package could read differently. body is the request's body.
func NewUpload(r *http.Request, body io.Reader, o Options) (*Upload, *refusal.Refusal) {
	return nil, refusal.New(refusal.CodeInternalError, "not built")
}

// Part is one file of an upload. Reading it yields the whole file, Head
// included; it is valid until the next call to Next.
type Part struct {
	io.Reader
	// Path is the path as envd reads it, before "~" and relative resolution.
	Path string
	// Head is the first HeadBytes of the file (all of a shorter one).
	Head []byte
	// Whole says that Head is the whole file.
	Whole bool
}

// Next returns the next file, or io.EOF. An error may be a *refusal.Refusal.
func (u *Upload) Next() (*Part, error) { return nil, io.EOF }

// ContentType is the content type of the canonical body that Encoder writes.
func (u *Upload) ContentType() string { return "" }

// Headers makes h fit the canonical body: content type set, content encoding
// and length dropped.
func (u *Upload) Headers(h http.Header) {}

// Encoder writes the canonical body of an upload, streaming.
type Encoder struct{}

// NewEncoder returns an Encoder that writes u's body to w.
func (u *Upload) NewEncoder(w io.Writer) *Encoder { return nil }

// Begin starts a file; bytes are then written to the returned writer.
func (e *Encoder) Begin(p *Part) (io.Writer, error) { return nil, nil }

// Close ends the body.
func (e *Encoder) Close() error { return nil }

// Class says how a file is to be judged.
type Class struct {
	// Code says that the text must be judged whole before it is written.
	Code bool
	// Language of the text, "" if unknown.
	Language string
	// SelfRunning says that the path runs, or changes what runs, by itself.
	SelfRunning bool
	// Why is a short reason: "shebang", "extension .py", "shell profile".
	Why string
}

// Classify tells code from data by the path and the first bytes.
func Classify(path string, head []byte) Class { return Class{Code: true} }

// WriteSubject is the subject of a write: text is the whole file where the
// class says code, "" for data.
func WriteSubject(path, username string, c Class, text string) guard.Subject { return guard.Subject{} }

// ReadSubject is the subject of GET /files, or a refusal where envd refuses the
// query.
func ReadSubject(r *http.Request) (guard.Subject, *refusal.Refusal) { return guard.Subject{}, nil }
