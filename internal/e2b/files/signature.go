package files

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// The query parameters of a signed URL. Source: envd and E2B's SDKs, which
// compute the signature themselves.
const (
	paramSignature  = "signature"
	paramExpiration = "signature_expiration"
)

// SignedURL is what a signature on a /files URL covers: everything envd acts on
// but the content, and the path as it stands in the query.
type SignedURL struct {
	Path, Username string
	// Write says that the URL uploads.
	Write bool
	// Expires says that the signature has an end, Expiration, in Unix seconds.
	Expires    bool
	Expiration int64

	signature string
	query     url.Values
}

// ReadSignedURL reads the query of a GET or POST to /files. The second result is
// false if it has no signature. It refuses what envd refuses and what envd and
// this package could read differently.
func ReadSignedURL(r *http.Request) (SignedURL, bool, *refusal.Refusal) {
	query, ref := parseQuery(r)
	if ref != nil {
		return SignedURL{}, false, ref
	}
	if !query.Has(paramSignature) {
		return SignedURL{}, false, nil
	}
	u := SignedURL{
		Path: query.Get("path"), Username: query.Get("username"), Write: r.Method == http.MethodPost,
		signature: query.Get(paramSignature), query: query,
	}
	if query.Has(paramExpiration) {
		at, err := strconv.ParseInt(query.Get(paramExpiration), 10, 64)
		if err != nil {
			return SignedURL{}, false, invalid("The query parameter signature_expiration is not a number of seconds.")
		}
		u.Expires, u.Expiration = true, at
	}
	return u, true, nil
}

// SignedWith reports whether the signature was made with a token. It takes the
// same time for every signature.
func (u SignedURL) SignedWith(token string) bool {
	return subtle.ConstantTimeCompare([]byte(u.sign(token)), []byte(u.signature)) == 1
}

// Expired reports whether the signature's end has passed. envd counts whole
// seconds, and the last one as not passed.
func (u SignedURL) Expired(now time.Time) bool { return u.Expires && u.Expiration < now.Unix() }

// Resign returns the URL's query, signed with another token instead; with no
// signature at all for "", a sandbox that asks for none.
func (u SignedURL) Resign(token string) string {
	query := make(url.Values, len(u.query))
	for name, values := range u.query {
		query[name] = values
	}
	query.Del(paramSignature)
	query.Del(paramExpiration)
	if token != "" {
		query.Set(paramSignature, u.sign(token))
		if u.Expires {
			query.Set(paramExpiration, strconv.FormatInt(u.Expiration, 10))
		}
	}
	return query.Encode()
}

// sign computes a signature as envd does.
func (u SignedURL) sign(token string) string {
	operation := "read"
	if u.Write {
		operation = "write"
	}
	covered := []string{u.Path, operation, u.Username, token}
	if u.Expires {
		covered = append(covered, strconv.FormatInt(u.Expiration, 10))
	}
	sum := sha256.Sum256([]byte(strings.Join(covered, ":")))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}
