// Package archive reads the files that an SDK of E2B uploads for a COPY step of a
// template build, a tar that may be gzipped, and writes them anew. What is stored
// is what was read here, so that tar in the build cannot read it differently.
//
// Source of what is done with it: the COPY command of E2B's builder, which
// unpacks the tar in a folder of its own and moves what the step names.
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Kind is what an entry is.
type Kind byte

// The kinds. What else a tar can hold (devices, pipes, sparse files) is refused.
const (
	File   Kind = 'f'
	Folder Kind = 'd'
	Link   Kind = 'l' // a symbolic link
)

// Entry is one file, folder or link of an archive.
type Entry struct {
	// Path is clean and relative to the root of the archive, which is ".".
	Path string
	Kind Kind
	// Mode holds the permission bits, of a folder also the sticky and the group's.
	Mode int64
	// Target is where a Link points, as it was written.
	Target string
	// Of is the path of the File whose content this File shares: a hard link; ""
	// for content of its own.
	Of string
	// Size and Digest (SHA-256) are those of a File's content.
	Size   int64
	Digest [sha256.Size]byte
}

// Limits bound an archive.
type Limits struct {
	// Bytes is the most that it may have unpacked, headers and padding included.
	Bytes int64
	// Entries is the most files, folders and links.
	Entries int
}

// maxNames bounds the bytes of all names and link targets of an archive.
const maxNames = 16 << 20

// maxName is the longest path that Linux takes, maxDepth how many folders deep one
// may be here.
const maxName, maxDepth = 4095, 200

// Rewrite reads an archive from src and writes the same files to dst, gzipped if
// they came so. Of each entry nothing but what Entry holds, the time of the last
// change in seconds and the content is kept. visit is shown every File that has
// content of its own and reads of it what it wants; an error of its is returned as
// it is. Any other error is a *refusal.Refusal, or what src or dst failed with.
//
// The entries are in the order of the archive, each path once, no path below
// anything but a Folder, and no Link leading out of the archive. What the archive
// holds below a Link must be what the Link leads to, and is left out.
func Rewrite(dst io.Writer, src io.Reader, limits Limits, visit func(Entry, io.Reader) error) ([]Entry, error) {
	in := bufio.NewReaderSize(src, 64<<10)
	magic, err := in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	plain, out := io.Reader(in), dst
	var z *gzip.Writer
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if plain, err = gzip.NewReader(in); err != nil {
			return nil, unreadable(err)
		}
		z, _ = gzip.NewWriterLevel(dst, gzip.BestSpeed) // fails for an unknown level only
		out = z
	}
	r := &rewriter{in: &capped{plain, limits.Bytes}, out: &sink{w: out}, limits: limits, seen: map[string]Entry{}, above: map[string]bool{}, visit: visit}
	if err := r.run(); err != nil {
		return nil, r.told(err)
	}
	if z != nil {
		if err := z.Close(); err != nil {
			return nil, err
		}
	}
	return r.entries, nil
}

// Digest is a digest of all that the entries say of the files, whatever their
// order: two archives with the same one unpack to the same.
func Digest(entries []Entry) [sha256.Size]byte {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, byName)
	h := sha256.New()
	for _, e := range sorted {
		h.Write([]byte{byte(e.Kind)})
		_ = binary.Write(h, binary.BigEndian, e.Mode)
		for _, text := range []string{e.Path, e.Target, string(e.Digest[:])} {
			_ = binary.Write(h, binary.BigEndian, int64(len(text)))
			h.Write([]byte(text))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// rewriter is one archive on its way through.
type rewriter struct {
	in      *capped
	out     *sink
	limits  Limits
	entries []Entry
	seen    map[string]Entry // by path
	above   map[string]bool  // folders that paths name, whether they are entries or not
	through []Entry
	names   int
	visit   func(Entry, io.Reader) error
}

func (r *rewriter) run() error {
	tr, tw := tar.NewReader(r.in), tar.NewWriter(r.out)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		e, isThrough, err := r.entry(h)
		if err != nil {
			return err
		}
		if isThrough {
			err = r.passOver(tr, h, e)
		} else {
			err = r.copy(tw, tr, h, e)
		}
		if err != nil {
			return err
		}
	}
	if err := r.rest(); err != nil {
		return err
	}
	if err := r.checkThrough(); err != nil {
		return err
	}
	return tw.Close()
}

// passOver reads an entry whose path leads through a link. The SDKs send what is in
// a folder once more below each link to it; tar would write it where it is already.
func (r *rewriter) passOver(content io.Reader, h *tar.Header, e Entry) error {
	if h.Typeflag == tar.TypeReg {
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		e.Digest = [sha256.Size]byte(sum.Sum(nil))
	}
	r.through = append(r.through, e)
	if len(r.through) > r.limits.Entries {
		return r.tooMany()
	}
	return nil
}

// checkThrough makes sure that what was passed over is there.
func (r *rewriter) checkThrough() error {
	for _, e := range r.through {
		name, _ := r.resolve(path.Dir(e.Path))
		there, ok := r.seen[path.Join(name, path.Base(e.Path))]
		if !ok || there.Kind != e.Kind || there.Digest != e.Digest || there.Target != e.Target {
			return denied(e.Path, "lies below a symbolic link, and is not the same as what the link leads to")
		}
	}
	return nil
}

// resolve follows the links in a path; moved says that there are some.
func (r *rewriter) resolve(name string) (resolved string, moved bool) {
	for range maxLinks {
		next, ok := throughLink(name, r.seen)
		if !ok {
			break
		}
		name, moved = next, true
	}
	return name, moved
}

func (r *rewriter) tooMany() error {
	return refusal.New(refusal.CodeTooLarge, fmt.Sprintf("The files of a COPY step are more than the %d that this gateway takes in one. Leave folders such as node_modules and .git out with .dockerignore.", r.limits.Entries))
}

// rest reads what stands behind the end of the archive: padding, and nothing that
// another reader could take for more of it.
func (r *rewriter) rest() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.in.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return invalid("something follows the end of the archive")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry checks a header against those before it. isThrough says that its path leads
// through a link.
func (r *rewriter) entry(h *tar.Header) (e Entry, isThrough bool, err error) {
	if len(r.entries) >= r.limits.Entries {
		return Entry{}, false, r.tooMany()
	}
	if r.names += len(h.Name) + len(h.Linkname); r.names > maxNames {
		return Entry{}, false, refusal.New(refusal.CodeTooLarge, "The names of the files of a COPY step are longer in all than this gateway takes.")
	}
	if e, err = readHeader(h); err != nil {
		return Entry{}, false, err
	}
	if _, twice := r.seen[e.Path]; twice {
		return Entry{}, false, denied(h.Name, "is there twice, so it is not clear which is meant")
	}
	if e.Kind != Folder && (e.Path == "." || r.above[e.Path]) {
		return Entry{}, false, denied(h.Name, "is both a folder and something else")
	}
	if e.Kind == Link {
		if err := checkTarget(e); err != nil {
			return Entry{}, false, err
		}
	}
	if h.Typeflag == tar.TypeLink {
		if err := r.share(&e, h); err != nil {
			return Entry{}, false, err
		}
	}
	if _, isThrough := r.resolve(path.Dir(e.Path)); isThrough {
		return e, true, nil
	}
	for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
		if above, ok := r.seen[dir]; ok && above.Kind != Folder {
			return Entry{}, false, denied(h.Name, "lies below something that is no folder")
		}
		r.above[dir] = true
	}
	return e, false, nil
}

// readHeader reads one header by itself.
func readHeader(h *tar.Header) (Entry, error) {
	name, err := cleanName(h.Name)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Path: name, Mode: h.Mode & 0o777}
	switch h.Typeflag {
	case tar.TypeReg:
		e.Kind, e.Size = File, h.Size
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return Entry{}, denied(h.Name, "is a sparse file; leave it out")
			}
		}
	case tar.TypeLink:
		e.Kind = File
	case tar.TypeDir:
		e.Kind, e.Mode = Folder, h.Mode&0o3777
	case tar.TypeSymlink:
		e.Kind, e.Target = Link, h.Linkname
	case tar.TypeGNUSparse:
		return Entry{}, denied(h.Name, "is a sparse file; leave it out")
	default:
		return Entry{}, denied(h.Name, "is neither a file nor a folder nor a link; leave it out")
	}
	return e, nil
}

// share finds the file whose content a hard link shares.
func (r *rewriter) share(e *Entry, h *tar.Header) error {
	target, err := cleanName(h.Linkname)
	if err != nil {
		return err
	}
	of, ok := r.seen[target]
	if !ok || of.Kind != File {
		return denied(h.Name, "is a hard link to something that is no file of the archive before it")
	}
	e.Of, e.Size, e.Digest, e.Mode = of.Path, of.Size, of.Digest, of.Mode
	if of.Of != "" {
		e.Of = of.Of
	}
	return nil
}

// copy writes an entry and shows its content.
func (r *rewriter) copy(tw *tar.Writer, content io.Reader, h *tar.Header, e Entry) error {
	out := &tar.Header{Name: e.Path, Mode: e.Mode, ModTime: h.ModTime.Truncate(1e9)}
	switch {
	case e.Kind == Folder:
		out.Typeflag, out.Name = tar.TypeDir, e.Path+"/"
	case e.Kind == Link:
		out.Typeflag, out.Linkname = tar.TypeSymlink, e.Target
	case e.Of != "":
		out.Typeflag, out.Linkname = tar.TypeLink, e.Of
	default:
		out.Typeflag, out.Size = tar.TypeReg, e.Size
	}
	if err := tw.WriteHeader(out); err != nil {
		return invalidName(h.Name, err, r.out.err)
	}
	if e.Kind == File && e.Of == "" {
		sum := sha256.New()
		shown := io.TeeReader(content, io.MultiWriter(tw, sum))
		if err := r.visit(e, shown); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, shown); err != nil {
			return err
		}
		e.Digest = [sha256.Size]byte(sum.Sum(nil))
	}
	r.seen[e.Path] = e
	r.entries = append(r.entries, e)
	return nil
}

// told makes of an error what it means to the client. Those of the ends, of visit
// and of this package say it themselves.
func (r *rewriter) told(err error) error {
	var ref *refusal.Refusal
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &ref), r.out.err != nil:
		return err
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &corrupt):
		return unreadable(err)
	default:
		return err
	}
}

// cleanName checks the name of an entry and makes it canonical.
func cleanName(name string) (string, error) {
	switch {
	case name == "":
		return "", invalid("an entry of the archive has no name")
	case len(name) > maxName || strings.Count(name, "/") > maxDepth:
		return "", denied(name, "has a name that is longer, or has more folders in it, than this gateway takes")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || c == 0x7f }):
		return "", denied(name, "has a name with control characters or not in UTF-8")
	case name[0] == '/':
		return "", denied(name, "has an absolute path; a COPY step takes files of the folder of the build")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", denied(name, `has a path with ".." in it, which may leave the folder it is unpacked in`)
	}
	return path.Clean(name), nil
}

// checkTarget refuses links out of the archive. ".." may stand at the beginning
// only: behind the name of another link it would lead elsewhere than it says.
func checkTarget(e Entry) error {
	if e.Target == "" || len(e.Target) > maxName || !utf8.ValidString(e.Target) || strings.ContainsFunc(e.Target, func(c rune) bool { return c < 0x20 || c == 0x7f }) {
		return denied(e.Path, "is a symbolic link to nothing that could be a path")
	}
	if !within(".", e) {
		return denied(e.Path, fmt.Sprintf("is a symbolic link to %q, which is not among the files that are copied; copy the file itself, or use resolveSymlinks", shorten(e.Target)))
	}
	return nil
}

// within reports whether a link stays below a folder of the archive.
func within(folder string, e Entry) bool {
	if strings.HasPrefix(e.Target, "/") {
		return false
	}
	named := false
	for part := range strings.SplitSeq(e.Target, "/") {
		if part == ".." && named {
			return false
		}
		named = named || part != "" && part != "." && part != ".."
	}
	return inside(folder, path.Join(path.Dir(e.Path), e.Target))
}

// inside reports whether a clean relative path is a folder or below it.
func inside(folder, name string) bool {
	if folder == "." {
		return name != ".." && !strings.HasPrefix(name, "../")
	}
	return name == folder || strings.HasPrefix(name, folder+"/")
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
		return 0, refusal.New(refusal.CodeTooLarge, "The files of a COPY step are larger, unpacked, than this gateway takes. Leave folders such as node_modules and .git out with .dockerignore, or download large files in a RUN step.")
	}
	return n, err
}

// sink keeps the error of its writer, to tell it from others.
type sink struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

func invalidName(name string, err, outErr error) error {
	if outErr != nil {
		return err
	}
	return denied(name, "has a name or a size that a tar cannot hold")
}

func denied(name, what string) error {
	return refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: %q among the files of a COPY step %s. Do not retry by another route.", shorten(name), what))
}

func invalid(what string) error {
	return refusal.New(refusal.CodeInvalid, "The files of a COPY step could not be read, so they were not stored: "+what+".")
}

func unreadable(err error) error {
	ref := refusal.New(refusal.CodeInvalid, "The files of a COPY step could not be read as a tar, gzipped or not, so they were not stored.")
	ref.Err = err
	return ref
}

func shorten(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
