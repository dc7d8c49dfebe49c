package files

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func signed(t testing.TB, method, query string) SignedURL {
	t.Helper()
	u, ok, ref := ReadSignedURL(httptest.NewRequest(method, "/files?"+query, nil))
	require.Nil(t, ref)
	require.True(t, ok)
	return u
}

// The signatures are those of E2B's JavaScript SDK for the token "ea_1".
func TestSignedWithKnowsTheSDKsSignatures(t *testing.T) {
	for name, tc := range map[string]struct{ method, query string }{
		"read":                  {"GET", "path=a.txt&signature=" + url.QueryEscape("v1_"+sum("a.txt:read::ea_1"))},
		"write":                 {"POST", "path=a.txt&signature=" + url.QueryEscape("v1_"+sum("a.txt:write::ea_1"))},
		"with a user":           {"GET", "path=a.txt&username=root&signature=" + url.QueryEscape("v1_"+sum("a.txt:read:root:ea_1"))},
		"with an expiry":        {"GET", "path=a.txt&signature_expiration=1700000000&signature=" + url.QueryEscape("v1_"+sum("a.txt:read::ea_1:1700000000"))},
		"without a path":        {"POST", "signature=" + url.QueryEscape("v1_"+sum(":write::ea_1"))},
		"with an empty path":    {"POST", "path=&signature=" + url.QueryEscape("v1_"+sum(":write::ea_1"))},
		"the path as it stands": {"GET", "path=~%2F..%2Fa%20b&signature=" + url.QueryEscape("v1_"+sum("~/../a b:read::ea_1"))},
	} {
		t.Run(name, func(t *testing.T) {
			u := signed(t, tc.method, tc.query)
			require.True(t, u.SignedWith("ea_1"))
			require.False(t, u.SignedWith("ea_2"))
			require.False(t, u.SignedWith(""))
		})
	}
	require.Equal(t, "v1_OR/HtLjZWrBvREbFlrF/fc+DP23YzzNzYTUrUPVeOLc", SignedURL{Path: "a.txt"}.sign("ea_1"), "what the SDK computes")
}

func TestSignedWithCoversEverythingThatActs(t *testing.T) {
	good := "path=a.txt&username=user&signature_expiration=1700000000&signature=" + url.QueryEscape("v1_"+sum("a.txt:read:user:ea_1:1700000000"))
	require.True(t, signed(t, "GET", good).SignedWith("ea_1"))
	for name, tc := range map[string]struct{ method, query string }{
		"another path":       {"GET", strings.Replace(good, "a.txt", "b.txt", 1)},
		"a longer path":      {"GET", strings.Replace(good, "a.txt", "a.txt%3Aread", 1)},
		"another user":       {"GET", strings.Replace(good, "username=user", "username=root", 1)},
		"no user":            {"GET", strings.Replace(good, "&username=user", "", 1)},
		"another operation":  {"POST", good},
		"a later end":        {"GET", strings.Replace(good, "1700000000", "1800000000", 1)},
		"no end":             {"GET", strings.Replace(good, "&signature_expiration=1700000000", "", 1)},
		"padded":             {"GET", good + "%3D"},
		"an empty signature": {"GET", "path=a.txt&signature="},
	} {
		t.Run(name, func(t *testing.T) { require.False(t, signed(t, tc.method, tc.query).SignedWith("ea_1")) })
	}
}

func TestReadSignedURL(t *testing.T) {
	for name, query := range map[string]string{
		"no query": "", "a token's call": "path=a.txt&username=user", "another name": "path=a&Signature=v1_x",
	} {
		t.Run(name, func(t *testing.T) {
			_, ok, ref := ReadSignedURL(httptest.NewRequest("GET", "/files?"+query, nil))
			require.Nil(t, ref)
			require.False(t, ok)
		})
	}
	for name, query := range map[string]string{
		"two signatures":     "path=a&signature=v1_x&signature=v1_y",
		"two paths":          "path=a&path=b&signature=v1_x",
		"an end in words":    "path=a&signature=v1_x&signature_expiration=tomorrow",
		"an empty end":       "path=a&signature=v1_x&signature_expiration=",
		"an end beyond time": "path=a&signature=v1_x&signature_expiration=99999999999999999999",
		"a broken escape":    "path=%zz&signature=v1_x",
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/files", nil)
			r.URL.RawQuery = query
			_, ok, ref := ReadSignedURL(r)
			require.False(t, ok)
			require.NotNil(t, ref)
			require.Equal(t, http.StatusBadRequest, ref.Status)
		})
	}
}

func TestExpired(t *testing.T) {
	now := time.Unix(1700000000, 999)
	for query, want := range map[string]bool{
		"signature=v1_x": false,
		"signature=v1_x&signature_expiration=1700000001": false,
		"signature=v1_x&signature_expiration=1700000000": false,
		"signature=v1_x&signature_expiration=1699999999": true,
		"signature=v1_x&signature_expiration=0":          true,
		"signature=v1_x&signature_expiration=-5":         true,
	} {
		require.Equal(t, want, signed(t, "GET", query).Expired(now), query)
	}
}

func TestResign(t *testing.T) {
	u := signed(t, "POST", "x=1&path=a%20b&username=user&signature_expiration=%2B1700000000&signature=v1_sealed")
	query, err := url.ParseQuery(u.Resign("ea_1"))
	require.NoError(t, err)
	require.Equal(t, url.Values{
		"x": {"1"}, "path": {"a b"}, "username": {"user"}, "signature_expiration": {"1700000000"},
		"signature": {"v1_" + sum("a b:write:user:ea_1:1700000000")},
	}, query)
	require.Equal(t, "v1_sealed", u.signature, "the URL itself is not changed")

	query, err = url.ParseQuery(u.Resign(""))
	require.NoError(t, err)
	require.Equal(t, url.Values{"x": {"1"}, "path": {"a b"}, "username": {"user"}}, query)
}

// What is re-signed is what was read: the same call, signed with the other token.
func FuzzResign(f *testing.F) {
	f.Add(true, "path=a.txt&username=user&signature=v1_x&signature_expiration=5")
	f.Add(false, "signature=&path=%2Fetc%2Fpasswd")
	f.Fuzz(func(t *testing.T, write bool, query string) {
		method := http.MethodGet
		if write {
			method = http.MethodPost
		}
		r := httptest.NewRequest(method, "/files", nil)
		r.URL.RawQuery = query
		u, ok, ref := ReadSignedURL(r)
		if !ok || ref != nil {
			return
		}
		r.URL.RawQuery = u.Resign("inner")
		again, ok, ref := ReadSignedURL(r)
		require.Nil(t, ref)
		require.True(t, ok)
		require.True(t, again.SignedWith("inner"))
		require.Equal(t, []any{u.Path, u.Username, u.Write, u.Expires, u.Expiration}, []any{again.Path, again.Username, again.Write, again.Expires, again.Expiration})
	})
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return base64.RawStdEncoding.EncodeToString(digest[:])
}
