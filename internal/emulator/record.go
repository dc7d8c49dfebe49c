package emulator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Record is one request as the emulator received it. Values that are
// credentials appear as Fingerprint gives them.
type Record struct {
	Seq     int         `json:"seq"`
	Time    time.Time   `json:"time"`
	Plane   string      `json:"plane"` // control, envd, files, interpreter, mcp, port
	Sandbox string      `json:"sandbox,omitempty"`
	Port    uint64      `json:"port,omitempty"`
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"`
	Query   string      `json:"query,omitempty"`
	Header  http.Header `json:"header"`
	// Body is the decoded message: protojson for RPC, the JSON for REST.
	Body json.RawMessage `json:"body,omitempty"`
	// Undecoded says that the body was not understood, or not looked at.
	Undecoded bool `json:"undecoded,omitempty"`
	// Of is the Seq of the request this record continues: a later message of
	// a client stream, or a file of an upload, once it was read.
	Of   int         `json:"of,omitempty"`
	File *FileRecord `json:"file,omitempty"`
}

// FileRecord is one uploaded file.
type FileRecord struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Head   string `json:"head"` // the first KiB, as text
}

// Fingerprint is how a credential appears in a Record: enough to recognise it,
// not enough to use it.
func Fingerprint(credential string) string {
	sum := sha256.Sum256([]byte(credential))
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// maxRecords bounds what is kept in memory; older records are dropped.
const maxRecords = 20000

type recorder struct {
	mu      sync.Mutex
	out     io.Writer
	seq     int
	records []Record
}

func (rec *recorder) all() []Record {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return append([]Record(nil), rec.records...)
}

func (rec *recorder) append(r Record) int {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.seq++
	r.Seq = rec.seq
	if rec.records = append(rec.records, r); len(rec.records) > maxRecords {
		rec.records = slices.Delete(rec.records, 0, maxRecords/2)
	}
	if rec.out != nil {
		if line, err := json.Marshal(r); err == nil {
			_, _ = rec.out.Write(append(line, '\n'))
		}
	}
	return r.Seq
}

// pendingRecord is a request whose body has not been decoded yet. The handler
// that decodes it commits it before acting.
type pendingRecord struct {
	rec *recorder
	mu  sync.Mutex
	r   Record
	seq int
}

type pendingKey struct{}

func pendingOf(ctx context.Context) *pendingRecord {
	p, _ := ctx.Value(pendingKey{}).(*pendingRecord)
	return p
}

func (rec *recorder) begin(r *http.Request, t target) *pendingRecord {
	return &pendingRecord{rec: rec, r: Record{
		Time: time.Now().UTC(), Plane: planeOf(t, r.URL.Path), Sandbox: t.sandbox, Port: t.port,
		Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(),
		Query: redactQuery(r.URL.RawQuery), Header: redactHeader(r.Header),
	}}
}

// commit appends the request with its decoded body; nil means undecoded. A
// second call appends a record that continues the first, so that every message
// of a client stream is there; a second nil does nothing.
func (p *pendingRecord) commit(body json.RawMessage) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seq == 0 {
		r := p.r
		r.Body, r.Undecoded = body, body == nil
		p.seq = p.rec.append(r)
		return
	}
	if body != nil {
		r := p.r
		r.Time, r.Body, r.Of = time.Now().UTC(), body, p.seq
		p.rec.append(r)
	}
}

// file appends an uploaded file of this request.
func (p *pendingRecord) file(f FileRecord) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.r
	r.Time, r.Of, r.File = time.Now().UTC(), p.seq, &f
	p.rec.append(r)
}

func planeOf(t target, path string) string {
	switch {
	case t.sandbox == "":
		return "control"
	case t.port == portEnvd && strings.HasPrefix(path, "/files"):
		return "files"
	case t.port == portEnvd:
		return "envd"
	case t.port == portInterpreter:
		return "interpreter"
	case t.port == portMCP:
		return "mcp"
	}
	return "port"
}

var credentialHeaders = []string{
	"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Access-Token",
	"E2b-Traffic-Access-Token", "X-Admin-Token",
}

func redactHeader(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range credentialHeaders {
		for i, v := range out[name] {
			// The user name of envd's Basic form is no secret, and tests need it.
			if name == "Authorization" && strings.HasPrefix(v, "Basic ") && !basicWithPassword(v) {
				continue
			}
			out[name][i] = Fingerprint(v)
		}
	}
	return out
}

func redactQuery(raw string) string {
	if !strings.Contains(raw, "signature") {
		return raw
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		if v, ok := strings.CutPrefix(pair, "signature="); ok {
			if plain, err := url.QueryUnescape(v); err == nil {
				v = plain
			}
			pairs[i] = "signature=" + Fingerprint(v)
		}
	}
	return strings.Join(pairs, "&")
}
