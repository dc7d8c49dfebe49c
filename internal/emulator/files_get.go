package emulator

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fileQuery are the query parameters of /files; nil means absent.
type fileQuery struct {
	path, username, signature *string
	expiration                *int64
}

// parseFileQuery reads the query as envd's generated code does: a parameter
// given twice is an error, and ";" voids the query.
func parseFileQuery(raw string) (fileQuery, error) {
	values, _ := url.ParseQuery(raw) // Its error is ignored by envd too.
	var q fileQuery
	var errs []error
	one := func(name string) *string {
		switch v := values[name]; len(v) {
		case 0:
			return nil
		case 1:
			return &v[0]
		default:
			errs = append(errs, fmt.Errorf("Invalid format for parameter %s: multiple values for single value parameter '%s'", name, name))
			return nil
		}
	}
	q.path, q.username, q.signature = one("path"), one("username"), one("signature")
	if v := one("signature_expiration"); v != nil {
		n, err := strconv.ParseInt(*v, 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("Invalid format for parameter signature_expiration: error binding string parameter: %w", err))
		}
		q.expiration = &n
	}
	if len(errs) > 0 {
		return q, errs[0]
	}
	return q, nil
}

// checkSignature applies envd's rules: nothing on an insecure sandbox; a token
// decides if it is there; else the signature must fit.
func (sb *sandbox) checkSignature(r *http.Request, q fileQuery, operation string) error {
	if sb.accessToken == "" {
		return nil
	}
	if token := r.Header.Get("X-Access-Token"); token != "" {
		if !equalToken(token, sb.accessToken) {
			return errors.New("access token present in header but does not match")
		}
		return nil
	}
	if q.signature == nil {
		return errors.New("missing signature query parameter")
	}
	parts := []string{deref(q.path), operation, deref(q.username), sb.accessToken}
	if q.expiration != nil {
		parts = append(parts, strconv.FormatInt(*q.expiration, 10))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
	if !equalToken(*q.signature, "v1_"+base64.RawStdEncoding.EncodeToString(sum[:])) {
		return errors.New("invalid signature")
	}
	if q.expiration != nil && *q.expiration < time.Now().Unix() {
		return errors.New("signature is already expired")
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// fileRequest does what reading and writing have in common.
func (sb *sandbox) fileRequest(w http.ResponseWriter, r *http.Request, operation string) (fileQuery, account, bool) {
	q, err := parseFileQuery(r.URL.RawQuery)
	if err != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return q, account{}, false
	}
	if err := sb.checkSignature(r, q, operation); err != nil {
		writeRESTError(w, http.StatusUnauthorized, err.Error())
		return q, account{}, false
	}
	name := defaultUser
	if q.username != nil {
		name = *q.username
	}
	u, ok := accounts[name]
	if !ok {
		writeRESTError(w, http.StatusUnauthorized, fmt.Sprintf("error looking up user '%s': user: unknown user %s", name, name))
		return q, u, false
	}
	return q, u, true
}

func (sb *sandbox) getFile(w http.ResponseWriter, r *http.Request) {
	q, u, ok := sb.fileRequest(w, r, "read")
	if !ok {
		return
	}
	p, err := expand(deref(q.path), u)
	if err != nil {
		writeRESTError(w, http.StatusBadRequest, fmt.Sprintf("error expanding and resolving path '%s': %v", deref(q.path), err))
		return
	}
	info, err := sb.fs.stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		writeRESTError(w, http.StatusNotFound, fmt.Sprintf("path '%s' does not exist", p))
		return
	case err != nil:
		writeRESTError(w, http.StatusInternalServerError, fmt.Sprintf("error checking if path exists '%s': %v", p, err))
		return
	case info.IsDir():
		writeRESTError(w, http.StatusBadRequest, fmt.Sprintf("path '%s' is a directory", p))
		return
	}
	encoding, err := acceptedEncoding(r.Header.Get("Accept-Encoding"))
	if err != nil {
		writeRESTError(w, http.StatusNotAcceptable, "error parsing Accept-Encoding: "+err.Error())
		return
	}
	w.Header().Set("Vary", "Accept-Encoding")
	if slices.ContainsFunc([]string{"Range", "If-Modified-Since", "If-None-Match", "If-Range"}, func(h string) bool { return r.Header.Get(h) != "" }) {
		if identityRejected(parseAccept(r.Header.Get("Accept-Encoding"))) {
			writeRESTError(w, http.StatusNotAcceptable, "identity encoding not acceptable for Range or conditional request")
			return
		}
		encoding = "identity"
	}
	file, err := sb.fs.open(p, os.O_RDONLY, 0)
	if err != nil {
		writeRESTError(w, http.StatusInternalServerError, fmt.Sprintf("error opening file '%s': %v", p, err))
		return
	}
	defer file.Close()
	w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": path.Base(p)}))
	if encoding == "gzip" {
		kind := mime.TypeByExtension(path.Ext(deref(q.path)))
		if kind == "" {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", kind)
		gz := gzip.NewWriter(w)
		_, _ = io.Copy(gz, file) // The client is gone if this fails.
		_ = gz.Close()
		return
	}
	http.ServeContent(w, r, deref(q.path), info.ModTime(), file)
}

type weightedEncoding struct {
	name string
	q    float64
}

func parseAccept(header string) []weightedEncoding {
	if header == "" {
		return nil
	}
	var out []weightedEncoding
	for item := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(item), ";")
		e := weightedEncoding{strings.ToLower(strings.TrimSpace(name)), 1}
		for param := range strings.SplitSeq(params, ";") {
			if v, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(param)), "q="); ok {
				if q, err := strconv.ParseFloat(v, 64); err == nil {
					e.q = q
				}
			}
		}
		out = append(out, e)
	}
	return out
}

func identityRejected(accepted []weightedEncoding) bool {
	rejected, wanted, wildcard := false, false, false
	for _, e := range accepted {
		switch {
		case e.name == "identity" && e.q == 0:
			rejected = true
		case e.name == "identity":
			wanted = true
		case e.name == "*" && e.q == 0:
			wildcard = true
		}
	}
	return rejected || (wildcard && !wanted)
}

// acceptedEncoding chooses gzip or identity, as envd does.
func acceptedEncoding(header string) (string, error) {
	accepted := parseAccept(header)
	rejected := identityRejected(accepted)
	slices.SortStableFunc(accepted, func(a, b weightedEncoding) int { return cmp.Compare(b.q, a.q) })
	for _, e := range accepted {
		switch {
		case e.q == 0:
		case e.name == "gzip", e.name == "*" && rejected:
			return "gzip", nil
		case e.name == "identity", e.name == "*":
			return "identity", nil
		}
	}
	if rejected {
		return "", errors.New("no acceptable encoding found, supported: [gzip]")
	}
	return "identity", nil
}
