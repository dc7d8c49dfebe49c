package emulator

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strings"
)

// writtenFile is one entry of an upload's answer.
type writtenFile struct {
	Metadata map[string]string `json:"metadata,omitempty"`
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
}

// restError is an error with the status it is answered with.
type restError struct {
	status int
	err    error
}

func (e *restError) Error() string { return e.err.Error() }
func (e *restError) Unwrap() error { return e.err }

func failed(status int, format string, args ...any) error {
	return &restError{status, fmt.Errorf(format, args...)}
}

func (sb *sandbox) postFiles(w http.ResponseWriter, r *http.Request) {
	pending := pendingOf(r.Context())
	q, u, ok := sb.fileRequest(w, r, "write")
	if !ok {
		return
	}
	body, err := contentDecoded(r)
	if err != nil {
		writeRESTError(w, http.StatusBadRequest, "error decompressing request body: "+err.Error())
		return
	}
	metadata, err := metadataOf(r.Header)
	if err != nil {
		writeRESTError(w, http.StatusBadRequest, "invalid metadata: "+err.Error())
		return
	}
	description, _ := json.Marshal(map[string]any{"path": q.path, "username": q.username, "metadata": metadata}) // Strings always marshal.
	pending.commit(description)

	up := &upload{sb: sb, user: u, query: q, metadata: metadata, pending: pending, written: []writtenFile{}}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind == "application/octet-stream":
		err = up.raw(body)
	case strings.HasPrefix(kind, "multipart/"):
		r.Body = io.NopCloser(body)
		err = up.multipart(r)
	default:
		err = failed(http.StatusBadRequest, "unsupported content type: %s, expected multipart/form-data or application/octet-stream",
			r.Header.Get("Content-Type"))
	}
	if err != nil {
		status := http.StatusInternalServerError
		var re *restError
		if errors.As(err, &re) {
			status = re.status
		}
		writeRESTError(w, status, err.Error())
		return
	}
	answer, err := json.Marshal(up.written)
	if err != nil {
		writeRESTError(w, http.StatusInternalServerError, err.Error())
		return
	}
	_, _ = w.Write(answer) // The client is gone if this fails.
}

// upload writes the files of one request.
type upload struct {
	sb       *sandbox
	user     account
	query    fileQuery
	metadata map[string]string
	pending  *pendingRecord
	written  []writtenFile
}

func (up *upload) raw(body io.Reader) error {
	if up.query.path == nil {
		return failed(http.StatusBadRequest, "path query parameter is required for raw body upload")
	}
	p, err := expand(*up.query.path, up.user)
	if err != nil {
		return failed(http.StatusBadRequest, "error resolving path: %w", err)
	}
	return up.write(p, body)
}

func (up *upload) multipart(r *http.Request) error {
	reader, err := r.MultipartReader()
	if err != nil {
		return failed(http.StatusInternalServerError, "error parsing multipart form: %w", err)
	}
	for {
		// NextPart, not NextRawPart: a quoted-printable part is decoded.
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failed(http.StatusInternalServerError, "error reading form: %w", err)
		}
		if part.FormName() != "file" {
			continue
		}
		p, err := up.pathOf(part)
		if err != nil {
			return failed(http.StatusBadRequest, "%w", err)
		}
		if err := up.write(p, part); err != nil {
			return err
		}
	}
}

// pathOf gives a part's path: the query's wins, else the whole file name
// parameter with its folders, in every form MIME knows.
func (up *upload) pathOf(part *multipart.Part) (string, error) {
	name := deref(up.query.path)
	if up.query.path == nil {
		_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			return "", fmt.Errorf("error getting multipart custom part file name: %w", err)
		}
		var ok bool
		if name, ok = params["filename"]; !ok {
			return "", errors.New("error getting multipart custom part file name: filename not found in Content-Disposition header")
		}
	}
	p, err := expand(name, up.user)
	if err != nil {
		return "", fmt.Errorf("error resolving path: %w", err)
	}
	for _, f := range up.written {
		if f.Path == p {
			return "", fmt.Errorf("you cannot upload multiple files to the same path '%s' in one upload request, only the first specified file was uploaded", p)
		}
	}
	return p, nil
}

// write puts one file in place and records it.
func (up *upload) write(p string, content io.Reader) error {
	sb := up.sb
	if err := sb.ensureDirs(path.Dir(p), up.user); err != nil {
		return failed(http.StatusInternalServerError, "error ensuring directories: %w", err)
	}
	switch info, err := sb.fs.stat(p); {
	case err == nil && info.IsDir():
		return failed(http.StatusBadRequest, "path is a directory: %s", p)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return failed(http.StatusInternalServerError, "error getting file info: %w", err)
	}
	file, err := sb.fs.open(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return failed(http.StatusInternalServerError, "error opening file: %w", err)
	}
	sb.own(path.Clean(p), up.user, up.metadata)
	if err := errors.Join(up.pending.copy(file, p, content), file.Close()); err != nil {
		return failed(http.StatusInternalServerError, "error writing file: %w", err)
	}
	up.written = append(up.written, writtenFile{Name: path.Base(p), Path: p, Type: "file", Metadata: up.metadata})
	return nil
}

// own sets who a file belongs to, and its metadata.
func (sb *sandbox) own(p string, u account, metadata map[string]string) {
	if resolved, err := sb.fs.resolve(p, true); err == nil {
		p = resolved
	}
	sb.fs.setAttrs(p, fileAttrs{owner: u.name, metadata: metadata})
	if sb.spawn.confined {
		root, r, err := sb.fs.at(p, true)
		if err == nil {
			_ = root.Lchown(r, int(u.uid), int(u.uid)) // Only a nicety of what stat shows.
		}
	}
}

// copy writes a file's content and records the file.
func (p *pendingRecord) copy(to io.Writer, name string, content io.Reader) error {
	digest := sha256.New()
	head := &headWriter{limit: 1 << 10}
	n, err := io.Copy(to, io.TeeReader(content, io.MultiWriter(digest, head)))
	p.file(FileRecord{Path: name, Size: n, SHA256: hex.EncodeToString(digest.Sum(nil)), Head: string(head.data)})
	return err
}

type headWriter struct {
	data  []byte
	limit int
}

func (h *headWriter) Write(b []byte) (int, error) {
	h.data = append(h.data, b[:min(len(b), h.limit-len(h.data))]...)
	return len(b), nil
}

// contentDecoded undoes Content-Encoding: gzip or identity, nothing else.
func contentDecoded(r *http.Request) (io.Reader, error) {
	header := r.Header.Get("Content-Encoding")
	name, _, _ := strings.Cut(header, ";")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		gz, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, fmt.Errorf("failed to create gzip reader: %w", err)
		}
		return gz, nil
	}
	return nil, fmt.Errorf("unsupported Content-Encoding: %s, supported: [gzip]", header)
}

// metadataOf collects the X-Metadata-* headers.
func metadataOf(h http.Header) (map[string]string, error) {
	var out map[string]string
	for name, values := range h {
		key, ok := strings.CutPrefix(name, "X-Metadata-")
		if !ok || key == "" || len(values) == 0 {
			continue
		}
		for _, c := range values[0] {
			if c < ' ' || c > '~' {
				return nil, fmt.Errorf("value of %q must be printable ASCII", strings.ToLower(key))
			}
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[strings.ToLower(key)] = values[0]
	}
	return out, nil
}

// composeFiles joins files into one and removes them. The body is read as
// leniently as encoding/json reads.
func (sb *sandbox) composeFiles(w http.ResponseWriter, r *http.Request) {
	var req struct {
		SourcePaths []string `json:"source_paths"`
		Destination string   `json:"destination"`
		Username    *string  `json:"username"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeRESTError(w, http.StatusBadRequest, "invalid request body: "+err.Error())
		return
	}
	body, _ := json.Marshal(req) // Strings always marshal.
	pendingOf(r.Context()).commit(body)
	entry, err := sb.compose(req.SourcePaths, req.Destination, req.Username)
	if err != nil {
		status := http.StatusInternalServerError
		var re *restError
		if errors.As(err, &re) {
			status = re.status
		}
		writeRESTError(w, status, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(entry) // The client is gone if this fails.
}

func (sb *sandbox) compose(sources []string, destination string, username *string) (*writtenFile, error) {
	if len(sources) == 0 {
		return nil, failed(http.StatusBadRequest, "source_paths must not be empty")
	}
	if destination == "" {
		return nil, failed(http.StatusBadRequest, "destination is required")
	}
	name := defaultUser
	if username != nil {
		name = *username
	}
	u, ok := accounts[name]
	if !ok {
		return nil, failed(http.StatusUnauthorized, "error looking up user '%s': user: unknown user %s", name, name)
	}
	to, err := expand(destination, u)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "error resolving destination path: %w", err)
	}
	from := make([]string, len(sources))
	for i, src := range sources {
		p, err := expand(src, u)
		if err != nil {
			return nil, failed(http.StatusBadRequest, "error resolving source path %q: %w", src, err)
		}
		if p == to {
			return nil, failed(http.StatusBadRequest, "source path %q cannot be the same as destination", src)
		}
		info, err := sb.fs.stat(p)
		if err != nil {
			return nil, failed(http.StatusNotFound, "source file not found: %s", src)
		}
		if !info.Mode().IsRegular() {
			return nil, failed(http.StatusBadRequest, "source path is not a regular file: %s", src)
		}
		from[i] = p
	}
	if err := sb.ensureDirs(path.Dir(to), u); err != nil {
		return nil, failed(http.StatusInternalServerError, "error ensuring directories: %w", err)
	}
	// Under another name first, so that a failure leaves an old file whole.
	temp := to + ".e2b-compose." + newUUID() + ".tmp"
	if err := sb.concatenate(temp, from); err != nil {
		return nil, errors.Join(failed(http.StatusInternalServerError, "error composing: %w", err), sb.fs.removeAll(temp))
	}
	if err := sb.fs.rename(temp, to); err != nil {
		return nil, errors.Join(failed(http.StatusInternalServerError, "error finalizing compose: %w", err), sb.fs.removeAll(temp))
	}
	sb.own(path.Clean(to), u, nil)
	for _, p := range from {
		if err := sb.fs.removeAll(p); err != nil {
			return nil, failed(http.StatusInternalServerError, "error removing source: %w", err)
		}
	}
	return &writtenFile{Name: path.Base(to), Path: to, Type: "file"}, nil
}

func (sb *sandbox) concatenate(to string, from []string) error {
	dst, err := sb.fs.open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	for _, p := range from {
		src, err := sb.fs.open(p, os.O_RDONLY, 0)
		if err != nil {
			return errors.Join(err, dst.Close())
		}
		_, err = io.Copy(dst, src)
		_ = src.Close()
		if err != nil {
			return errors.Join(err, dst.Close())
		}
	}
	return dst.Close()
}
