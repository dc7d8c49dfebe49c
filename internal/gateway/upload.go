package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// upload takes one POST /files through read, screen and forward at once, because
// its body may be larger than anything that may be held.
//
// Files that are code, and small files, are read whole and judged before the
// first byte goes upstream. From the first large data file on, or when enough is
// held, the body streams: a file after it is judged before its own bytes are
// sent, and a refusal then breaks the upload off.
type upload struct {
	c      *call
	parts  *files.Upload
	judged []judgedPart // read whole, in order
	held   int64        // bytes in judged
	next   *judgedPart  // the file that the stream starts with
	pipe   *io.PipeReader
	cancel context.CancelFunc // ends the call upstream
	done   chan struct{}

	mu  sync.Mutex
	ref *refusal.Refusal
}

// judgedPart is a file that was judged, and its content if that was read whole.
type judgedPart struct {
	part *files.Part
	text *body.Buffer
}

// maxJudged is how many files an upload may hold before it streams.
const maxJudged = 1000

// full reports whether the files held are enough.
func (u *upload) full() bool {
	return len(u.judged) >= maxJudged || u.held >= u.c.g.bodies.Config().MessageBytes
}

// readUpload reads and judges all that can be read and judged before forwarding.
func (c *call) readUpload() *refusal.Refusal {
	return c.takeUpload(files.NewUpload(c.r, c.uploadBody(), c.uploadOptions()))
}

// readVolumeFile does the same for a file of a volume.
func (c *call) readVolumeFile() *refusal.Refusal {
	return c.takeUpload(files.NewVolumeUpload(c.r, c.target.Params[route.ParamVolume], c.uploadBody(), c.uploadOptions()))
}

func (c *call) uploadBody() io.Reader {
	// The stream's answer may come before its end.
	_ = http.NewResponseController(c.w).EnableFullDuplex()
	return c.g.bodies.Upload(c.w, c.r)
}

func (c *call) uploadOptions() files.Options {
	return files.Options{MaxBytes: c.g.bodies.Config().UploadBytes}
}

func (c *call) takeUpload(parts *files.Upload, ref *refusal.Refusal) *refusal.Refusal {
	if ref != nil {
		return ref
	}
	u := &upload{c: c, parts: parts}
	for {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return refuseRead(err)
		}
		class, ran := u.classify(part)
		if u.full() || !class.Code && !part.Whole {
			j, ref := u.judge(part, class, ran)
			if ref != nil {
				return ref
			}
			u.next = &j
			break
		}
		text, ref := u.readWhole(part, class, ran)
		if ref != nil {
			return ref
		}
		u.judged = append(u.judged, judgedPart{part, text})
		u.held += text.Size()
	}
	c.upload = u
	c.body = u
	var ctx context.Context
	ctx, u.cancel = context.WithCancel(c.r.Context())
	c.r = c.r.WithContext(ctx)
	return nil
}

// judge judges a file of the stream: code is read whole for that, data is not.
func (u *upload) judge(part *files.Part, class files.Class, ran bool) (judgedPart, *refusal.Refusal) {
	if !class.Code {
		return judgedPart{part: part}, u.review(files.WriteSubject(part.Path, u.parts.Username, class, ""))
	}
	text, ref := u.readWhole(part, class, ran)
	return judgedPart{part, text}, ref
}

func (u *upload) classify(part *files.Part) (class files.Class, ran bool) {
	box := u.c.target.Sandbox
	if u.c.target.Plane == route.Volume {
		box = volumeKey(u.c.volume.name)
	}
	return u.c.g.state.files.classify(box, part.Path, part.Head)
}

// readWhole reads a file to its end and judges it.
func (u *upload) readWhole(part *files.Part, class files.Class, ran bool) (*body.Buffer, *refusal.Refusal) {
	limit := u.c.g.bodies.Config().MessageBytes
	buf, err := u.c.g.bodies.Spool(part, limit)
	if errors.Is(err, body.ErrTooLarge) {
		ref := refusal.New(refusal.CodeTooLarge, "the file "+part.Path+" is code ("+class.Why+") and too large to be judged, so it was not written. Write it as smaller files, or as data with another name.")
		return nil, ref
	}
	if err != nil {
		return nil, refuseRead(err)
	}
	u.c.spool = append(u.c.spool, buf)
	var text []byte
	if class.Code {
		if text, err = buf.Bytes(); err != nil {
			return nil, refuseRead(err)
		}
	}
	return buf, u.review(writeSubjects(part.Path, u.parts.Username, class, ran, string(text))...)
}

// review asks the guard about one file. Once the stream runs, the call's own
// record is written already, so a file met later gets a line of its own.
func (u *upload) review(subjects ...guard.Subject) *refusal.Refusal {
	if u.c.errand != nil {
		return nil // judged before
	}
	if u.done == nil {
		return u.c.review(subjects)
	}
	if ref := u.c.spendGuardCalls(len(subjects)); ref != nil {
		return ref
	}
	for _, subject := range subjects {
		if ref := u.c.recordLate(u.c.ask(u.c.r.Context(), subject)); ref != nil {
			return ref
		}
	}
	return nil
}

// FileSubject is what a guard is asked about a file that is written to path, for
// whoever wants to ask without writing it.
func FileSubject(path, text string) guard.Subject {
	class := files.Classify(path, []byte(text[:min(len(text), files.HeadBytes)]))
	return files.WriteSubject(path, "", class, text)
}

// apply starts the stream: it implements outgoing.
func (u *upload) apply(r *http.Request) {
	u.parts.Headers(r.Header)
	r.URL.RawQuery = u.parts.RawQuery // as it was judged
	r.ContentLength = -1
	pr, pw := io.Pipe()
	u.pipe, u.done = pr, make(chan struct{})
	r.Body = pr
	go func() {
		defer close(u.done)
		err := u.writeSafely(newPatientWriter(pw, u.c.g.cfg.IdleTimeout, u.giveUp))
		var ref *refusal.Refusal
		if errors.As(err, &ref) {
			u.fail(ref)
		}
		_ = pw.CloseWithError(err)
	}()
}

// giveUp ends an upload that the upstream has stopped reading: nothing else
// would, since the client, too, waits.
func (u *upload) giveUp() {
	u.fail(refusal.New(refusal.CodeUpstreamIdle, fmt.Sprintf("the sandbox has read nothing of this upload for %s; it is probably gone. The file may be there in part.", u.c.g.cfg.IdleTimeout)))
	u.cancel()
}

// fail keeps the first reason why the stream broke off.
func (u *upload) fail(ref *refusal.Refusal) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ref == nil {
		u.ref = ref
	}
}

// writeSafely is write on a goroutine of its own, where a panic would end the
// process and every call in it.
func (u *upload) writeSafely(w io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = u.c.refusePanic(p)
		}
	}()
	return u.write(w)
}

func (u *upload) write(w io.Writer) error {
	enc := u.parts.NewEncoder(w)
	for _, j := range u.judged {
		if err := j.copyTo(enc); err != nil {
			return err
		}
	}
	for j := u.next; j != nil; {
		if err := j.copyTo(enc); err != nil {
			return err
		}
		part, err := u.parts.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return refuseRead(err)
		}
		class, ran := u.classify(part)
		next, ref := u.judge(part, class, ran)
		if ref != nil {
			return ref
		}
		j = &next
	}
	return enc.Close()
}

// copyTo writes one file and gives back what was held of it.
func (j judgedPart) copyTo(enc *files.Encoder) error {
	var content io.Reader = j.part
	if j.text != nil {
		content = j.text.Reader()
		defer j.text.Close()
	}
	w, err := enc.Begin(j.part)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, content); err != nil {
		var ref *refusal.Refusal
		if errors.Is(err, io.ErrClosedPipe) || errors.As(err, &ref) {
			return err
		}
		return refuseRead(err)
	}
	return nil
}

// refusal is what broke the stream off; nil if nothing of ours did.
func (u *upload) refusal() *refusal.Refusal {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ref
}

// stop ends the stream and waits for it, so that nothing reads the client's body
// after the handler has returned. A client that stands still is cut off.
func (u *upload) stop() {
	u.cancel()
	if u.done == nil {
		return
	}
	_ = u.pipe.CloseWithError(io.ErrClosedPipe)
	select {
	case <-u.done:
	default:
		u.c.clientBody.cut(u.c)
		<-u.done
	}
}
