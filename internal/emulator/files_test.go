package emulator

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const octet = "application/octet-stream"

func (b box) read(path string) string {
	b.t.Helper()
	a := b.envd(http.MethodGet, "/files?path="+url.QueryEscape(path), "")
	require.Equal(b.t, http.StatusOK, a.status, a.body)
	return a.body
}

// part is one part of a multipart body.
func part(disposition, content string, headers ...string) string {
	return "--XX\r\nContent-Disposition: " + disposition + "\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n" + content + "\r\n"
}

// The forms were measured against the real daemon: path wins over file names,
// every spelling of a file name counts, quoted-printable is decoded.
func TestUploadForms(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	const multi, end = "multipart/form-data; boundary=XX", "--XX--\r\n"
	for _, tt := range []struct {
		name, query, kind, body string
		headers                 []string
		path, content           string
	}{
		{"octet stream", "path=o.txt", octet, "octet", nil, "/home/user/o.txt", "octet"},
		{"octet stream, gzip in another case", "path=g.txt", octet, zipped(t, "zipped"), []string{"Content-Encoding", "GZIP;q=1"}, "/home/user/g.txt", "zipped"},
		{"root's home", "path=r.txt&username=root", octet, "r", nil, "/root/r.txt", "r"},
		{"a plus is a space", "path=a+b", octet, "s", nil, "/home/user/a b", "s"},
		{"dots stay in the answer", "path=/tmp/x/../y", octet, "d", nil, "/tmp/x/../y", "d"},
		{"multipart, the path wins", "path=/tmp/q", multi, part(`form-data; name="file"; filename="ignored"`, "1") + end, nil, "/tmp/q", "1"},
		{"multipart, file name with folders", "", multi, part(`form-data; name="file"; filename="d/m2"`, "2") + end, nil, "/home/user/d/m2", "2"},
		{"multipart, ~", "", multi, part(`form-data; name="file"; filename="~/t"`, "2") + end, nil, "/home/user/t", "2"},
		{"multipart, extended file name", "", multi, part(`form-data; name="file"; filename="plain"; filename*=UTF-8''%2Ftmp%2Fstar`, "3") + end, nil, "/tmp/star", "3"},
		{"multipart, continued file name", "", multi, part(`form-data; name="file"; filename*0="/tmp/"; filename*1="cont"`, "4") + end, nil, "/tmp/cont", "4"},
		{"multipart/mixed", "", "multipart/mixed; boundary=XX", part(`form-data; name="file"; filename="/tmp/mixed"`, "5") + end, nil, "/tmp/mixed", "5"},
		{"multipart, other names are ignored", "", multi, part(`form-data; name="other"; filename="/tmp/no"`, "x") + part(`form-data; name="file"; filename="/tmp/yes"`, "6") + end, nil, "/tmp/yes", "6"},
		{"multipart, quoted-printable", "", multi, part(`form-data; name="file"; filename="/tmp/qp"`, "h=65llo", "Content-Transfer-Encoding: quoted-printable") + end, nil, "/tmp/qp", "hello"},
		{"multipart, base64 is not decoded", "", multi, part(`form-data; name="file"; filename="/tmp/b64"`, "aGVsbG8=", "Content-Transfer-Encoding: base64") + end, nil, "/tmp/b64", "aGVsbG8="},
		{"multipart, gzip", "path=/tmp/mg", multi, zipped(t, part(`form-data; name="file"; filename="x"`, "7")+end), []string{"Content-Encoding", "gzip"}, "/tmp/mg", "7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := b.envd(http.MethodPost, "/files?"+tt.query, tt.body, append([]string{"Content-Type", tt.kind}, tt.headers...)...)
			require.Equal(t, http.StatusOK, a.status, a.body)
			require.Equal(t, "text/plain; charset=utf-8", a.header.Get("Content-Type"))
			require.Equal(t, tt.path, jsonList(t, a.body)[0]["path"])
			require.Len(t, jsonList(t, a.body), 1)
			require.Equal(t, tt.content, b.read(tt.path))
		})
	}
}

func TestUploadRefusals(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	const multi, end = "multipart/form-data; boundary=XX", "--XX--\r\n"
	one := part(`form-data; name="file"; filename="f"`, "1")
	for _, tt := range []struct {
		name, method, query, kind, body string
		headers                         []string
		status                          int
		message                         string
	}{
		{"no path", "POST", "", octet, "x", nil, 400, "path query parameter is required for raw body upload"},
		{"path twice", "POST", "path=a&path=b", octet, "x", nil, 400, "multiple values"},
		{"a semicolon voids the query", "POST", "path=a;b=c", octet, "x", nil, 400, "path query parameter is required"},
		{"another type", "POST", "path=a", "text/plain", "x", nil, 400, "unsupported content type: text/plain"},
		{"a folder", "POST", "path=/tmp", octet, "x", nil, 400, "path is a directory: /tmp"},
		{"below a file", "POST", "path=/etc/hostname/x", octet, "x", nil, 500, "path is a file: /etc/hostname"},
		{"two parts for one path", "POST", "path=a", multi, one + one + end, nil, 400, "you cannot upload multiple files to the same path"},
		{"no file name", "POST", "", multi, part(`form-data; name="file"`, "1") + end, nil, 400, "filename not found"},
		{"two encodings", "POST", "path=a", octet, "x", []string{"Content-Encoding", "gzip, gzip"}, 400, "unsupported Content-Encoding"},
		{"deflate", "POST", "path=a", octet, "x", []string{"Content-Encoding", "deflate"}, 400, "unsupported Content-Encoding"},
		{"not gzip", "POST", "path=a", octet, "x", []string{"Content-Encoding", "gzip"}, 400, "failed to create gzip reader"},
		{"an unknown user", "POST", "path=a&username=bob", octet, "x", nil, 401, "error looking up user 'bob'"},
		{"another user's home", "POST", "path=~bob/x", octet, "x", nil, 400, "cannot expand user-specific home dir"},
		{"PUT", "PUT", "path=a", octet, "x", nil, 405, ""},
		{"HEAD", "HEAD", "path=a", "", "", nil, 405, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := b.envd(tt.method, "/files?"+tt.query, tt.body, append([]string{"Content-Type", tt.kind}, tt.headers...)...)
			require.Equal(t, tt.status, a.status, a.body)
			require.Contains(t, a.body, tt.message)
		})
	}
}

func TestDownloads(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=a.txt", "0123456789", "Content-Type", octet).status)
	ranged := b.envd(http.MethodGet, "/files?path=a.txt", "", "Range", "bytes=2-4")
	require.Equal(t, http.StatusPartialContent, ranged.status)
	require.Equal(t, "234", ranged.body)
	gz := b.envd(http.MethodGet, "/files?path=a.txt", "", "Accept-Encoding", "gzip, deflate")
	require.Equal(t, "gzip", gz.header.Get("Content-Encoding"))
	require.Equal(t, "text/plain; charset=utf-8", gz.header.Get("Content-Type"))
	require.Equal(t, "inline; filename=a.txt", gz.header.Get("Content-Disposition"))
	require.Equal(t, "identity", encodingOf(t, "br;q=1, *;q=0.5"))
	require.Equal(t, "gzip", encodingOf(t, "identity;q=0, *"))
	_, err := acceptedEncoding("identity;q=0, br")
	require.Error(t, err)
	missing := b.envd(http.MethodGet, "/files?path=%2Fnope", "")
	require.Equal(t, http.StatusNotFound, missing.status)
	require.JSONEq(t, `{"code":404,"message":"path '/nope' does not exist"}`, missing.body)
	require.Equal(t, http.StatusBadRequest, b.envd(http.MethodGet, "/files?path=/tmp", "").status)
}

func encodingOf(t *testing.T, header string) string {
	t.Helper()
	e, err := acceptedEncoding(header)
	require.NoError(t, err)
	return e
}

func sign(token, path, operation, user string, expiration ...int64) string {
	parts := []string{path, operation, user, token}
	for _, e := range expiration {
		parts = append(parts, strconv.FormatInt(e, 10))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
	return url.QueryEscape("v1_" + base64.RawStdEncoding.EncodeToString(sum[:]))
}

func TestSignatures(t *testing.T) {
	l := newLab(t, Options{})
	b := l.newBox()
	require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=f", "x", "Content-Type", octet).status)
	anonymous := box{l, b.id, "", ""}
	past, future := time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Minute).Unix()
	stamp := func(at int64) string { return "&signature_expiration=" + strconv.FormatInt(at, 10) }
	for _, tt := range []struct {
		name, method, query string
		headers             []string
		status              int
		message             string
	}{
		{"none", "GET", "path=f", nil, 401, "missing signature query parameter"},
		{"right", "GET", "path=f&signature=" + sign(b.token, "f", "read", ""), nil, 200, ""},
		{"of another operation", "GET", "path=f&signature=" + sign(b.token, "f", "write", ""), nil, 401, "invalid signature"},
		{"of another spelling of the path", "GET", "path=./f&signature=" + sign(b.token, "f", "read", ""), nil, 401, "invalid signature"},
		{"of another user", "GET", "path=f&username=root&signature=" + sign(b.token, "f", "read", ""), nil, 401, "invalid signature"},
		{"of another token", "GET", "path=f&signature=" + sign("ea_x", "f", "read", ""), nil, 401, "invalid signature"},
		{"not yet expired", "GET", "path=f&signature=" + sign(b.token, "f", "read", "", future) + stamp(future), nil, 200, ""},
		{"expired", "GET", "path=f&signature=" + sign(b.token, "f", "read", "", past) + stamp(past), nil, 401, "signature is already expired"},
		{"with the expiration cut off", "GET", "path=f&signature=" + sign(b.token, "f", "read", "", past), nil, 401, "invalid signature"},
		{"write", "POST", "path=w&signature=" + sign(b.token, "w", "write", ""), nil, 200, ""},
		{"a wrong token beats a right signature", "GET", "path=f&signature=" + sign(b.token, "f", "read", ""), []string{"X-Access-Token", "ea_x"}, 401, "does not match"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := anonymous.envd(tt.method, "/files?"+tt.query, "y", append([]string{"Content-Type", octet}, tt.headers...)...)
			require.Equal(t, tt.status, a.status, a.body)
			require.Contains(t, a.body, tt.message)
		})
	}
	// A signature for the empty path is a licence to write anywhere.
	body := part(`form-data; name="file"; filename="/etc/profile.d/x.sh"`, "echo hi") + "--XX--\r\n"
	a := anonymous.envd(http.MethodPost, "/files?signature="+sign(b.token, "", "write", ""), body, "Content-Type", "multipart/form-data; boundary=XX")
	require.Equal(t, http.StatusOK, a.status)
	compose := anonymous.envd(http.MethodPost, "/files/compose?signature="+sign(b.token, "", "write", ""), `{}`)
	require.Equal(t, http.StatusUnauthorized, compose.status, "only GET and POST of /files take signatures")
}

func TestMetadataFollowsTheFile(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	a := b.envd(http.MethodPost, "/files?path=m", "x", "Content-Type", octet, "X-Metadata-Author", "me")
	require.Equal(t, `[{"metadata":{"author":"me"},"name":"m","path":"/home/user/m","type":"file"}]`, a.body)
	entry, err := b.stat("m")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"author": "me"}, entry.GetMetadata())
	require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=m", "x", "Content-Type", octet).status)
	entry, err = b.stat("m")
	require.NoError(t, err)
	require.Empty(t, entry.GetMetadata(), "writing again replaces it")
}

func TestCompose(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for _, f := range []string{"c1", "c2"} {
		require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=/tmp/"+f, f, "Content-Type", octet).status)
	}
	// Keys in any case, the last duplicate wins, trailing bytes are ignored.
	a := b.envd(http.MethodPost, "/files/compose", `{"SOURCE_PATHS":["/x"],"source_paths":["/tmp/c1","/tmp/c2"],"Destination":"/tmp/d/c3","username":"root"} trailing`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.JSONEq(t, `{"name":"c3","path":"/tmp/d/c3","type":"file"}`, a.body)
	require.Equal(t, "c1c2", b.read("/tmp/d/c3"))
	require.Equal(t, http.StatusNotFound, b.envd(http.MethodGet, "/files?path=/tmp/c1", "").status, "the sources are gone")
	for body, message := range map[string]string{
		`{`:                              "invalid request body",
		`{"destination":"/tmp"}`:         "source_paths must not be empty",
		`{"source_paths":["/tmp/d/c3"]}`: "destination is required",
		`{"source_paths":["/tmp/no"],"destination":"/tmp/x"}`:                       "source file not found: /tmp/no",
		`{"source_paths":["/tmp"],"destination":"/tmp/x"}`:                          "source path is not a regular file: /tmp",
		`{"source_paths":["/tmp/d/c3"],"destination":"/tmp/d/c3"}`:                  "cannot be the same as destination",
		`{"source_paths":["/tmp/d/c3"],"destination":"/tmp/x","username":"nobody"}`: "error looking up user 'nobody'",
	} {
		require.Contains(t, b.envd(http.MethodPost, "/files/compose", body).body, message, body)
	}
	require.Equal(t, "c1c2", b.read("/tmp/d/c3"))
}
