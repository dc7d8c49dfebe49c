package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/e2b/archive"
	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// maxArchiveEntries is the most files, folders and links of one COPY step.
const maxArchiveEntries = 50_000

// Files are judged some at a time: at most so many, or so many bytes of text.
const batchSubjects, batchBytes = 64, 4 << 20

// buildFiles takes the upload of a COPY step's files through read, screen and
// forward. Nothing is sent on before all of it is judged.
type buildFiles struct {
	c *call
	// canonical is the archive as it will be stored.
	canonical *body.Buffer
	archived
	held   int // bytes of text in files
	batch  []guard.Subject
	queued int // bytes of text in batch
	// refused says that the upload was read and found wanting: its client learns
	// why from the build that needs it.
	refused bool
	place   *url.URL
}

// readFiles reads, judges and rewrites the archive.
func (c *call) readFiles() *refusal.Refusal {
	limit := c.g.bodies.Config().UploadBytes
	if c.r.ContentLength > limit {
		return refuseRead(body.ErrTooLarge)
	}
	if enc := c.r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return refusal.New(refusal.CodeUnsupported, "the files of a build are sent as they are, without Content-Encoding.")
	}
	src := &keptError{Reader: http.MaxBytesReader(nil, io.NopCloser(c.g.bodies.Upload(c.w, c.r)), limit)}
	f := &buildFiles{c: c, canonical: c.g.archives.Create(), archived: archived{files: map[string]archivedFile{}}}
	c.files = f
	c.spool = append(c.spool, f.canonical)
	entries, err := archive.Rewrite(f.canonical, src, archive.Limits{Bytes: limit, Entries: maxArchiveEntries}, f.visit)
	if err == nil {
		err = f.flush()
	}
	var ref *refusal.Refusal
	switch {
	case err == nil:
	case src.err != nil:
		return refuseRead(src.err)
	case errors.As(err, &ref):
		return c.refuseFiles(src, ref)
	default:
		return refuseRead(err)
	}
	f.entries = entries
	f.name = c.g.archiveName(c.client, c.target.Params[route.ParamFiles], archive.Digest(entries))
	return nil
}

// refuseFiles reads the rest of an upload that is refused, so that its client,
// which still sends, gets the answer, and keeps the reason for the build.
func (c *call) refuseFiles(src *keptError, ref *refusal.Refusal) *refusal.Refusal {
	if _, err := io.Copy(io.Discard, src); err != nil {
		return refuseRead(err)
	}
	c.files.refused = true
	c.g.state.archives.put(c.archiveKey(), &archived{refused: ref.Reason})
	return ref
}

func (c *call) archiveKey() archiveKey {
	return archiveKey{c.client, c.target.Params[route.ParamFiles]}
}

// visit judges a file by its name and text. Where it will be is not known yet: see
// buildSubjects.
func (f *buildFiles) visit(e archive.Entry, content io.Reader) error {
	head := make([]byte, min(e.Size, files.HeadBytes))
	if _, err := io.ReadFull(content, head); err != nil {
		return err
	}
	known := archivedFile{class: files.Classify("/src/"+e.Path, head)}
	limit := int64(archiveTextBytes - f.held)
	if known.class.Code {
		limit = f.c.g.bodies.Config().MessageBytes
		if e.Size > limit {
			return refusal.New(refusal.CodeTooLarge, fmt.Sprintf("Blocked: %s among the files of a COPY step is code (%s) and too large to be judged. Leave it out with .dockerignore, or download it in a RUN step.", e.Path, known.class.Why))
		}
	}
	switch {
	case e.Size <= limit:
		all := make([]byte, e.Size)
		copy(all, head)
		if _, err := io.ReadFull(content, all[len(head):]); err != nil {
			return err
		}
		known.text, known.content = files.ReadContent(all)
		if known.class.Code {
			if err := f.judge(files.WriteSubject(e.Path, "", known.class, string(all))); err != nil {
				return err
			}
		}
	default:
		_, known.content = files.ReadContent(head)
		known.forgotten = known.content == files.Text
	}
	if f.held+len(known.text) > archiveTextBytes {
		known.text, known.forgotten = "", true
	}
	f.held += len(known.text)
	f.files[e.Path] = known
	return nil
}

// judge has a subject judged, with others.
func (f *buildFiles) judge(s guard.Subject) error {
	f.batch, f.queued = append(f.batch, s), f.queued+len(s.Text)
	if len(f.batch) < batchSubjects && f.queued < batchBytes {
		return nil
	}
	return f.flush()
}

func (f *buildFiles) flush() error {
	batch := f.batch
	f.batch, f.queued = nil, 0
	if ref := f.c.reviewMany(batch); ref != nil {
		return ref
	}
	return nil
}

// reviewMany is review for files, of which there may be more than one record should
// hold: what passed gets records of its own. A refusal names the file.
func (c *call) reviewMany(subjects []guard.Subject) *refusal.Refusal {
	for len(subjects) > 0 {
		n := min(len(subjects), batchSubjects)
		if len(c.rulings)+n > maxSubjects {
			if ref := c.mustRecord(audit.Decision{Decision: c.outcome.Decision, Late: true}, c.rulings); ref != nil {
				return ref
			}
			c.log(levelOf(c.outcome.Decision), c.outcome.Decision, c.rulings)
			c.rulings = nil
		}
		before := len(c.rulings)
		if ref := c.review(subjects[:n]); ref != nil {
			for _, res := range c.rulings[before:] {
				if !res.ruling.Allow {
					ref.Reason = res.subject.Target + ": " + ref.Reason
					break
				}
			}
			return ref
		}
		subjects = subjects[n:]
	}
	return nil
}

// enforceUpload asks E2B where the files are to be sent.
func (c *call) enforceUpload() *refusal.Refusal {
	ctx, cancel := context.WithTimeout(c.r.Context(), lookupTimeout)
	defer cancel()
	answer, err := c.g.askAPI(ctx, http.MethodGet, "templates/"+url.PathEscape(c.target.Params[route.ParamTemplate])+"/files/"+c.files.name, "", c.r.Header)
	if err == nil && answer.status >= http.StatusMultipleChoices {
		err = fmt.Errorf("E2B answered %d", answer.status)
	}
	place := ""
	if err == nil {
		_, place, err = control.UploadPlace(answer.body)
	}
	if err == nil {
		c.files.place, err = url.Parse(place)
	}
	if err == nil && c.files.place.Host == "" {
		err = errors.New("E2B named no URL")
	}
	if err != nil {
		return refuseStorage(fmt.Errorf("asking where the files of a build go: %w", err))
	}
	return nil
}

// storeFiles sends the files to E2B's storage, which wants to know their length
// and nothing else, and answers the client.
func (c *call) storeFiles() {
	f := c.files
	req, err := http.NewRequestWithContext(c.r.Context(), http.MethodPut, f.place.String(), f.canonical.Reader())
	if err != nil {
		c.refuse(refuseStorage(err))
		return
	}
	req.ContentLength = f.canonical.Size()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(f.canonical.Reader()), nil }
	req.Header.Set("User-Agent", ownAgent)
	c.forwarded = true
	resp, err := c.g.fwd.control.RoundTrip(req)
	if err == nil {
		c.answered = resp.StatusCode
		_, _ = io.CopyN(io.Discard, resp.Body, maxStorageAnswer)
		_ = resp.Body.Close()
		if resp.StatusCode >= http.StatusMultipleChoices {
			err = fmt.Errorf("the storage answered %d", resp.StatusCode)
		}
	}
	if err != nil {
		c.refuse(refuseStorage(err))
		return
	}
	c.g.state.archives.put(c.archiveKey(), &f.archived)
	c.w.Header().Set("E2b-Guard", c.guardHeader())
	c.w.WriteHeader(http.StatusOK)
}

// maxStorageAnswer is as much of the storage's answer as is read for its
// connection's sake.
const maxStorageAnswer = 64 << 10

func refuseStorage(err error) *refusal.Refusal {
	ref := refusal.New(refusal.CodeUpstream, "the files of a build could not be stored with E2B. Build again in a moment.")
	ref.Err, ref.Retryable = err, true
	return ref
}

// keptError keeps what its reader failed with, to tell it from what was read.
type keptError struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (k *keptError) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		k.err = err
	}
	return n, err
}
