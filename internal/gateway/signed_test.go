package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
)

// signedQuery signs as E2B's SDKs do.
func signedQuery(token, path, operation string, expires int64) string {
	covered := path + ":" + operation + "::" + token
	query := url.Values{}
	if path != "" {
		query.Set("path", path)
	}
	if expires != 0 {
		covered += fmt.Sprint(":", expires)
		query.Set("signature_expiration", fmt.Sprint(expires))
	}
	sum := sha256.Sum256([]byte(covered))
	query.Set("signature", "v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))
	return query.Encode()
}

func fileForm(t *testing.T, filename, text string) (contentType string, body *bytes.Buffer) {
	t.Helper()
	body = new(bytes.Buffer)
	w := multipart.NewWriter(body)
	part, err := w.CreateFormFile("file", filename)
	require.NoError(t, err)
	_, err = part.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return w.FormDataContentType(), body
}

// Signed URLs carry nothing but the signature: with a host that names the
// sandbox, with E2B's routing headers, and with neither (e2b-dev/E2B#1158).
func TestSignedURLsWork(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	v.create(t, keyB, `{"templateID":"base"}`)
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	v.create(t, keyA, `{"templateID":"base"}`)
	later := time.Now().Add(time.Minute).Unix()
	for name, header := range map[string][]string{
		"by host":    {"Host", "49983-" + sb.ID + ".gw.example"},
		"by headers": {"E2b-Sandbox-Id", sb.ID, "E2b-Sandbox-Port", "49983"},
		"by neither": nil,
	} {
		t.Run(name, func(t *testing.T) {
			contentType, body := fileForm(t, "x.txt", "by URL "+name)
			got := v.do(t, "POST", "/files?"+signedQuery(sb.Envd, "signed.txt", "write", later), headers(append(header, "Content-Type", contentType)...), body)
			require.Equal(t, 200, got.Status, got.Body)
			got = v.do(t, "GET", "/files?"+signedQuery(sb.Envd, "signed.txt", "read", 0), headers(header...), nil)
			require.Equal(t, 200, got.Status, got.Body)
			require.Equal(t, "by URL "+name, got.Body)
		})
	}
	for _, subject := range v.guard.saw() {
		require.Equal(t, "team-a", subject.Labels["client"])
		require.Equal(t, sb.ID, subject.Labels["sandbox"])
	}
	for _, r := range v.reached() {
		require.NotContains(t, r.Query, url.QueryEscape(sb.Envd))
		require.Empty(t, r.Header["X-Access-Token"])
	}
}

func TestSignaturesAreChecked(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t))
	sb, other := v.create(t, keyA, `{"templateID":"base"}`), v.create(t, keyA, `{"templateID":"base"}`)
	real := v.real(t, sb.ID)
	good := signedQuery(sb.Envd, "a.txt", "read", 0)
	for name, query := range map[string]string{
		"with E2B's own token":     signedQuery(real.Envd, "a.txt", "read", 0),
		"with another sandbox's":   signedQuery(other.Envd, "a.txt", "read", 0),
		"with the traffic token":   signedQuery(sb.Traffic, "a.txt", "read", 0),
		"with the empty token":     signedQuery("", "a.txt", "read", 0),
		"for another path":         strings.Replace(good, "a.txt", "b.txt", 1),
		"for writing":              signedQuery(sb.Envd, "a.txt", "write", 0),
		"for another user":         good + "&username=root",
		"with an end that was cut": strings.Replace(signedQuery(sb.Envd, "a.txt", "read", time.Now().Unix()-60), "signature_expiration", "x", 1),
		"expired":                  signedQuery(sb.Envd, "a.txt", "read", time.Now().Unix()-60),
		"empty":                    "path=a.txt&signature=",
	} {
		t.Run(name, func(t *testing.T) {
			v.forgive()
			for _, header := range [][]string{{"E2b-Sandbox-Id", sb.ID, "E2b-Sandbox-Port", "49983"}, {"E2b-Sandbox-Id", sb.ID, "E2b-Sandbox-Port", "49983", "E2b-Traffic-Access-Token", sb.Traffic}} {
				got := v.nothingSpent(t, func() answer { return v.do(t, "GET", "/files?"+query, headers(header...), nil) })
				require.Equal(t, 401, got.Status, got.Body)
			}
			if name == "with another sandbox's" {
				return // it has a meaning of its own
			}
			got := v.nothingSpent(t, func() answer { return v.do(t, "GET", "/files?"+query, nil, nil) })
			require.Contains(t, []int{400, 401}, got.Status, got.Body)
		})
	}
}

// Whoever holds a signed upload URL without a path can write any file.
func TestUploadURLsWithoutAPathAreRefused(t *testing.T) {
	e2b := newEmulator(t)
	v := newVaultHouse(t, e2b)
	sb := v.create(t, keyA, `{"templateID":"base"}`)
	upload := func(v *vaultHouse) answer {
		contentType, body := fileForm(t, "anywhere.txt", "x")
		return v.do(t, "POST", "/files?"+signedQuery(sb.Envd, "", "write", 0), sb.to("49983", "Content-Type", contentType), body)
	}
	got := v.nothingSpent(t, func() answer { return upload(v) })
	require.Equal(t, 403, got.Status, got.Body)
	require.Contains(t, got.Body, "signed_uploads")

	open := newVaultHouse(t, e2b, func(cfg *Config) { cfg.UnboundUploads = true })
	got = upload(open)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, 200, v.do(t, "GET", "/files?path=anywhere.txt", sb.to("49983", "X-Access-Token", sb.Envd), nil).Status)
}

// A URL that was signed before the seal key was changed stays good, and a gateway
// that was restarted asks E2B for what it needs.
func TestSignaturesOutliveRestartsAndKeys(t *testing.T) {
	e2b := newEmulator(t)
	sb := newVaultHouse(t, e2b).create(t, keyA, `{"templateID":"base"}`)
	v := newVaultHouse(t, e2b, func(cfg *Config) { cfg.Seal = testSealer("22", "11") })
	contentType, body := fileForm(t, "x", "x")
	got := v.do(t, "POST", "/files?"+signedQuery(sb.Envd, "a.txt", "write", 0), sb.to("49983", "Content-Type", contentType), body)
	require.Equal(t, 200, got.Status, got.Body)
}

// Clients that hold E2B's own tokens sign with them: only the sandbox is found.
func TestPassThroughFindsTheSandboxOfASignedURL(t *testing.T) {
	e2b := newEmulator(t)
	h := newHouse(t, e2b.ServeHTTP, nil)
	got := h.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", "e2b_cc"), strings.NewReader(`{"templateID":"base"}`))
	require.Equal(t, 201, got.Status, got.Body)
	sb := parseMade(t, got.Body)
	contentType, body := fileForm(t, "x", "hello")
	got = h.do(t, "POST", "/files?"+signedQuery(sb.Envd, "a.txt", "write", 0), headers("Content-Type", contentType), body)
	require.Equal(t, 200, got.Status, got.Body)
	got = h.do(t, "GET", "/files?"+signedQuery(sb.Envd, "a.txt", "read", 0), nil, nil)
	require.Equal(t, "hello", got.Body)
	require.Equal(t, 400, h.do(t, "GET", "/files?"+signedQuery("ea_x", "a.txt", "read", 0), nil, nil).Status)
}

func BenchmarkFindingASignature(b *testing.B) {
	state := NewState()
	for i := range sandboxesSearched {
		state.remember(fmt.Sprint("i", i), sandbox{client: "team-a", envdKnown: true})
	}
	cfg := Config{}
	vault(&cfg)
	c := &call{g: &Gateway{cfg: cfg, clients: make([]knownClient, 1)}}
	for b.Loop() {
		_, _, _ = state.find(func(id string, sb sandbox) bool { return c.signedFor(files.SignedURL{}, id, sb) })
	}
}
