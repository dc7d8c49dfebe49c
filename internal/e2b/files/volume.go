package files

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// VolumePath is what a call for a volume's content is about.
type VolumePath struct {
	// Path is absolute, from the volume's root, and canonical.
	Path string
	// RawQuery is the query to forward: it says the same path.
	RawQuery string

	volume string
}

// volumeParams are the parameters of E2B's API for the content of volumes. A later
// one might change where, or what, is written.
var volumeParams = map[string]func(string) bool{
	"path":  func(string) bool { return true },
	"uid":   wholeNumber,
	"gid":   wholeNumber,
	"depth": wholeNumber,
	"mode":  plainMode,
	"force": func(v string) bool { return v == "true" || v == "false" },
}

func wholeNumber(v string) bool {
	_, err := strconv.ParseUint(v, 10, 32)
	return err == nil
}

func plainMode(v string) bool {
	n, err := strconv.ParseUint(v, 10, 32)
	return err == nil && PlainMode(int64(n)) //nolint:gosec // At most 32 bits.
}

// PlainMode reports whether a file's mode says no more than who may read, write
// and execute it. E2B hands its higher bits to Go, where they mean set-user-id and
// more.
func PlainMode(mode int64) bool { return mode >= 0 && mode <= 0o777 }

// ReadVolumePath reads the query of a call for the content of a volume. A path that
// E2B could take for another is refused.
func ReadVolumePath(r *http.Request, volume string) (VolumePath, *refusal.Refusal) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return VolumePath{}, invalid("The query cannot be read: percent-encode \"%\" and \";\" in paths.")
	}
	for name, values := range query {
		ok, known := volumeParams[name]
		switch {
		case !known:
			return VolumePath{}, invalid("The query parameter " + strconv.QuoteToASCII(name) + " is none that e2bguard knows here, so it cannot tell what it does. Leave it out.")
		case len(values) > 1:
			return VolumePath{}, invalid("The query parameter " + name + " is given more than once. Give it once.")
		case !ok(values[0]):
			return VolumePath{}, invalid("The query parameter " + name + " is " + strconv.QuoteToASCII(values[0]) + ", which is not passed: uid, gid and depth are whole numbers, mode one of at most 511 (0o777), force true or false.")
		}
	}
	given := query.Get("path")
	p := VolumePath{Path: path.Clean("/" + given), RawQuery: r.URL.RawQuery, volume: volume}
	switch {
	case given == "":
		return VolumePath{}, invalid("The query names no path. Name it in the parameter path.")
	case strings.ContainsRune(given, 0) || !utf8.ValidString(given):
		return VolumePath{}, invalid("The path contains a NUL byte or is no UTF-8, which not all servers take as it is.")
	case strings.TrimSpace(given) != given || strings.TrimSpace(p.Path) != p.Path:
		return VolumePath{}, invalid("The path begins or ends with white space, which some servers drop. Leave it out.")
	}
	if p.Path != given {
		query.Set("path", p.Path)
		p.RawQuery = query.Encode()
	}
	return p, nil
}

// Judged is the path as a guard sees it: below /mnt, where nothing runs by itself,
// for nobody knows where the volume is, or will be, mounted. See MountPoint.
func (p VolumePath) Judged() string { return path.Join("/mnt", p.volume, p.Path) }

// Subjects are what a guard must see of a call that does not write a file's content.
// action is as in guard.LabelAction. A hidden file that is read from the volume's root
// is judged as one of a home besides: whole homes are kept in volumes.
func (p VolumePath) Subjects(action string) []guard.Subject {
	subjects := []guard.Subject{subject(action, p.Judged(), "", "", "")}
	if action == "read" && strings.HasPrefix(p.Path, "/.") {
		subjects = append(subjects, subject(action, "~"+p.Path, "", "", ""))
	}
	return subjects
}

// NewVolumeUpload reads the head of an upload of one file to a volume. It refuses
// bodies in any form but the one that E2B documents.
func NewVolumeUpload(r *http.Request, volume string, body io.Reader, o Options) (*Upload, *refusal.Refusal) {
	if ref := refuseRepeated(r.Header); ref != nil {
		return nil, ref
	}
	p, ref := ReadVolumePath(r, volume)
	if ref != nil {
		return nil, ref
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, unsupported("Content-Encoding " + strconv.QuoteToASCII(coding) + " is not supported for a volume. Send the file plain.")
	}
	if r.Header.Get("Content-Range") != "" {
		return nil, unsupported("A part of a file cannot be judged. Send the whole file, without Content-Range.")
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/octet-stream" {
		return nil, unsupported("A file of a volume is uploaded as application/octet-stream.")
	}
	if body, ref = decompressed("", body, o.MaxBytes); ref != nil {
		return nil, ref
	}
	return &Upload{path: p.Judged(), RawQuery: p.RawQuery, body: body}, nil
}
