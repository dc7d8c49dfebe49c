package files_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// file is one file as envd would write it.
type file struct{ path, content string }

// envd does what the sandbox's daemon does with an upload, as far as its source
// tells: which path each file is written to, before the home is resolved.
func envd(r *http.Request) ([]file, error) {
	body := io.Reader(r.Body)
	encoding, _, _ := strings.Cut(r.Header.Get("Content-Encoding"), ";")
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = z
	default:
		return nil, errors.New("encoding")
	}
	r.Body = io.NopCloser(body)
	query := r.URL.Query()
	if len(query["path"]) > 1 {
		return nil, errors.New("path repeated")
	}
	path, named := query.Get("path"), query.Has("path")
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if mediaType == "application/octet-stream" {
		if !named {
			return nil, errors.New("no path")
		}
		content, err := io.ReadAll(r.Body)
		return []file{{path, string(content)}}, err
	}
	form, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	var out []file
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if part.FormName() != "file" {
			continue
		}
		target := path
		if !named {
			_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			if err != nil {
				return nil, err
			}
			var ok bool
			if target, ok = params["filename"]; !ok {
				return nil, errors.New("no filename")
			}
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		out = append(out, file{target, string(content)})
	}
}

func request(query, contentType, encoding, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://sandbox.test/files", strings.NewReader(body))
	r.URL.RawQuery = query
	r.Header.Set("Content-Type", contentType)
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	return r
}

// read returns what is judged, and the request that is forwarded.
func read(r *http.Request) ([]file, *http.Request, error) {
	u, ref := files.NewUpload(r, r.Body, files.Options{MaxBytes: 1 << 20})
	if ref != nil {
		return nil, nil, ref
	}
	var judged []file
	var body bytes.Buffer
	enc := u.NewEncoder(&body)
	for {
		part, err := u.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		head := string(part.Head)
		w, err := enc.Begin(part)
		if err != nil {
			return nil, nil, err
		}
		content, err := io.ReadAll(io.TeeReader(part, w))
		if err != nil {
			return nil, nil, err
		}
		if part.Whole != (len(content) == len(head)) || !strings.HasPrefix(string(content), head) {
			return nil, nil, fmt.Errorf("head of %d bytes does not fit a file of %d", len(head), len(content))
		}
		judged = append(judged, file{part.Path, string(content)})
	}
	if err := enc.Close(); err != nil {
		return nil, nil, err
	}
	out := httptest.NewRequest(http.MethodPost, "http://sandbox.test/files", &body)
	out.URL.RawQuery = u.RawQuery
	out.Header = r.Header.Clone()
	u.Headers(out.Header)
	return judged, out, nil
}

func zip(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

const formType = "multipart/form-data; boundary=B"

func form(parts ...string) string {
	return "--B\r\n" + strings.Join(parts, "\r\n--B\r\n") + "\r\n--B--\r\n"
}

func formFile(params, content string) string {
	return "Content-Disposition: form-data; name=\"file\"; " + params + "\r\n\r\n" + content
}

// TestUploadAgreesWithDaemon compares, for every way to name a file, what is
// judged here with what the daemon makes of the original and of the canonical
// body.
func TestUploadAgreesWithDaemon(t *testing.T) {
	big := strings.Repeat("0123456789", 20_000)
	tests := map[string]struct {
		query, contentType, encoding, body string
		want                               []file
		refused                            bool
		// stricter is set where the daemon takes what is refused here on purpose.
		stricter bool
	}{
		"raw":                         {query: "path=%2Fhome%2Fuser%2Fa.txt", contentType: "application/octet-stream", body: "hello", want: []file{{"/home/user/a.txt", "hello"}}},
		"raw, larger than the head":   {query: "path=a", contentType: "application/octet-stream", body: big, want: []file{{"a", big}}},
		"raw, empty":                  {query: "path=a", contentType: "application/octet-stream", want: []file{{"a", ""}}},
		"raw, type in upper case":     {query: "path=a", contentType: "Application/Octet-Stream; x=y", body: "b", want: []file{{"a", "b"}}},
		"raw, gzip":                   {query: "path=a", contentType: "application/octet-stream", encoding: "gzip", body: zip("hello"), want: []file{{"a", "hello"}}},
		"raw, gzip in any case":       {query: "path=a", contentType: "application/octet-stream", encoding: " GZip ;q=1", body: zip("hello"), want: []file{{"a", "hello"}}},
		"raw, two gzip members":       {query: "path=a", contentType: "application/octet-stream", encoding: "gzip", body: zip("hel") + zip("lo"), want: []file{{"a", "hello"}}},
		"raw, gzip, cut short":        {query: "path=a", contentType: "application/octet-stream", encoding: "gzip", body: zip("hello")[:12], refused: true},
		"raw, gzip, empty":            {query: "path=a", contentType: "application/octet-stream", encoding: "gzip", refused: true},
		"raw, gzip, junk behind":      {query: "path=a", contentType: "application/octet-stream", encoding: "gzip", body: zip("hello") + "junk", refused: true},
		"raw, gzip twice":             {query: "path=a", contentType: "application/octet-stream", encoding: "gzip, gzip", body: zip(zip("hello")), refused: true},
		"raw, zstd":                   {query: "path=a", contentType: "application/octet-stream", encoding: "zstd", body: "x", refused: true},
		"raw without path":            {contentType: "application/octet-stream", body: "x", refused: true},
		"raw with empty path":         {query: "path=", contentType: "application/octet-stream", body: "x", refused: true, stricter: true},
		"path with plus":              {query: "path=a+b", contentType: "application/octet-stream", body: "x", want: []file{{"a b", "x"}}},
		"path twice":                  {query: "path=a&path=b", contentType: "application/octet-stream", body: "x", refused: true},
		"path in upper case":          {query: "Path=a", contentType: "application/octet-stream", body: "x", refused: true},
		"semicolon in the query":      {query: "path=/ok;path=/etc/passwd", contentType: formType, body: form(formFile(`filename="x"`, "1")), refused: true, stricter: true},
		"broken escape in the query":  {query: "path=%zz", contentType: formType, body: form(formFile(`filename="x"`, "1")), refused: true, stricter: true},
		"nul in the path":             {query: "path=a%00b", contentType: "application/octet-stream", body: "x", refused: true, stricter: true},
		"two user names":              {query: "path=a&username=user&username=root", contentType: "application/octet-stream", body: "x", refused: true, stricter: true},
		"form":                        {contentType: formType, body: form(formFile(`filename="/a/b.txt"`, "1"), formFile(`filename="~/c"`, "2")), want: []file{{"/a/b.txt", "1"}, {"~/c", "2"}}},
		"form with a quoted boundary": {contentType: `multipart/form-data; boundary="B"`, body: form(formFile(`filename="a"`, "1")), want: []file{{"a", "1"}}},
		"form, mixed":                 {contentType: "multipart/mixed; boundary=B", body: form(formFile(`filename="a"`, "1")), want: []file{{"a", "1"}}},
		"form, other kind":            {contentType: "multipart/related; boundary=B", body: form(formFile(`filename="a"`, "1")), refused: true},
		"form without boundary":       {contentType: "multipart/form-data", body: form(formFile(`filename="a"`, "1")), refused: true},
		"form, gzip":                  {contentType: formType, encoding: "gzip", body: zip(form(formFile(`filename="a"`, "1"))), want: []file{{"a", "1"}}},
		"form, line feeds only":       {contentType: formType, body: "--B\nContent-Disposition: form-data; name=file; filename=a\n\n1\n--B--\n", want: []file{{"a", "1"}}},
		"form without files":          {contentType: formType, body: form("Content-Disposition: form-data; name=\"other\"\r\n\r\nx")},
		"form, other fields ignored":  {contentType: formType, body: form("Content-Disposition: form-data; name=\"path\"\r\n\r\n/etc/passwd", formFile(`filename="a"`, "1")), want: []file{{"a", "1"}}},
		"form, attachment ignored":    {contentType: formType, body: form("Content-Disposition: attachment; name=\"file\"; filename=\"x\"\r\n\r\n1")},
		"query beats the filename":    {query: "path=%2Fa", contentType: formType, body: form(formFile(`filename="/b"`, "1")), want: []file{{"/a", "1"}}},
		"query and no filename":       {query: "path=%2Fa", contentType: formType, body: form("Content-Disposition: form-data; name=\"file\"\r\n\r\n1"), want: []file{{"/a", "1"}}},
		"query and two files":         {query: "path=%2Fa", contentType: formType, body: form(formFile(`filename="/b"`, "1"), formFile(`filename="/c"`, "2")), refused: true, stricter: true},
		"no filename":                 {contentType: formType, body: form("Content-Disposition: form-data; name=\"file\"\r\n\r\n1"), refused: true},
		"empty filename":              {contentType: formType, body: form(formFile(`filename=""`, "1")), refused: true, stricter: true},
		"filename star wins":          {contentType: formType, body: form(formFile(`filename="ok.txt"; filename*=utf-8''%2Fetc%2Fcron.d%2Fx`, "1")), want: []file{{"/etc/cron.d/x", "1"}}},
		"filename in pieces":          {contentType: formType, body: form(formFile(`filename*0="/etc/"; filename*1="passwd"`, "1")), want: []file{{"/etc/passwd", "1"}}},
		"filename in encoded pieces":  {contentType: formType, body: form(formFile(`filename*0*=utf-8''%2Fetc; filename*1="/x y"`, "1")), want: []file{{"/etc/x y", "1"}}},
		"filename with backslashes":   {contentType: formType, body: form(formFile(`filename="C:\dir\x.sh"`, "1")), want: []file{{`C:\dir\x.sh`, "1"}}},
		"filename with quotes":        {contentType: formType, body: form(formFile(`filename="a\"b"`, "1")), want: []file{{`a"b`, "1"}}},
		"filename as an encoded word": {contentType: formType, body: form(formFile(`filename="=?utf-8?Q?=2Fetc=2Fpasswd?="`, "1")), want: []file{{"=?utf-8?Q?=2Fetc=2Fpasswd?=", "1"}}},
		"filename star in pieces":     {contentType: formType, body: form(formFile(`filename="a"; filename*0*=utf-8''%2Fetc; filename*1*=%2Fpasswd`, "1")), want: []file{{"/etc/passwd", "1"}}},
		"filename twice, two cases":   {contentType: formType, body: form(formFile(`filename="a"; FileName="/etc/passwd"`, "1"))},
		"filename not in ASCII":       {contentType: formType, body: form(formFile(`filename="ä/🚀.py"`, "1")), want: []file{{"ä/🚀.py", "1"}}},
		"filename with line break":    {contentType: formType, body: form(formFile(`filename*=utf-8''a%0D%0Ab`, "1")), want: []file{{"a\r\nb", "1"}}},
		"filename not in UTF-8":       {contentType: formType, body: form(formFile(`filename*=utf-8''a%FFb`, "1")), want: []file{{"a\xffb", "1"}}},
		"filename with nul":           {contentType: formType, body: form(formFile(`filename*=utf-8''a%00b`, "1")), refused: true, stricter: true},
		"filename twice is no file":   {contentType: formType, body: form(formFile(`filename="a"; filename="b"`, "1"))},
		"quoted-printable is decoded": {contentType: formType, body: form("Content-Disposition: form-data; name=file; filename=a.sh\r\nContent-Transfer-Encoding: Quoted-Printable\r\n\r\n=72=6D -rf =2F"), want: []file{{"a.sh", "rm -rf /"}}},
		"base64 is not decoded":       {contentType: formType, body: form("Content-Disposition: form-data; name=file; filename=a\r\nContent-Transfer-Encoding: base64\r\n\r\ncm0="), want: []file{{"a", "cm0="}}},
		"two dispositions":            {contentType: formType, body: form("Content-Disposition: form-data; name=file; filename=a\r\nContent-Disposition: form-data; name=file; filename=b\r\n\r\n1"), want: []file{{"a", "1"}}},
		"form cut in a file":          {contentType: formType, body: "--B\r\n" + formFile(`filename="a"`, "12"), refused: true},
		"form cut in a header":        {contentType: formType, body: "--B\r\n" + formFile(`filename="a"`, "")[:40]},
		"form cut before its end":     {contentType: formType, body: strings.TrimSuffix(form(formFile(`filename="a"`, "1")), "--B--\r\n"), refused: true},
		"junk around the form":        {contentType: formType, body: "preamble\r\n" + form(formFile(`filename="a"`, "1")) + "epilogue", want: []file{{"a", "1"}}},
		"content like a boundary":     {contentType: formType, body: form(formFile(`filename="a"`, "x\r\n--Bx\r\ny")), want: []file{{"a", "x\r\n--Bx\r\ny"}}},
		"no content type":             {query: "path=a", body: "x", refused: true},
		"json":                        {query: "path=a", contentType: "application/json", body: "{}", refused: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			daemon, daemonErr := envd(request(tt.query, tt.contentType, tt.encoding, tt.body))
			judged, forwarded, err := read(request(tt.query, tt.contentType, tt.encoding, tt.body))
			if tt.refused {
				require.Error(t, err)
				assert.Equal(t, tt.stricter, daemonErr == nil, "daemon: %v, %v", daemon, daemonErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, judged)
			if tt.query == "path=" {
				return
			}
			require.NoError(t, daemonErr)
			assert.Equal(t, daemon, judged, "the daemon reads the original otherwise")
			again, err := envd(forwarded)
			require.NoError(t, err)
			assert.Equal(t, judged, again, "the daemon reads the canonical body otherwise")
			assert.Empty(t, forwarded.Header.Get("Content-Encoding"))
		})
	}
}

// A signed URL without a path has an empty one: the part's name counts then, and
// no empty path may be forwarded that a daemon could take for a name.
func TestEmptyPathOfSignedURLIsDropped(t *testing.T) {
	r := request("username=user&path=&signature=v1_x%2Fy&future=1", formType, "", form(formFile(`filename="/tmp/x"`, "1")))
	judged, forwarded, err := read(r)
	require.NoError(t, err)
	assert.Equal(t, []file{{"/tmp/x", "1"}}, judged)
	assert.Equal(t, url.Values{"username": {"user"}, "signature": {"v1_x/y"}, "future": {"1"}}, forwarded.URL.Query())
}

func TestUploadIsBounded(t *testing.T) {
	for name, r := range map[string]*http.Request{
		"plain": request("path=a", "application/octet-stream", "", strings.Repeat("x", 1<<20+1)),
		"gzip":  request("path=a", "application/octet-stream", "gzip", zip(strings.Repeat("x", 1<<20+1))),
		"form":  request("", formType, "", form(formFile(`filename="a"`, strings.Repeat("x", 1<<20)))),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(r)
			var ref *refusal.Refusal
			require.ErrorAs(t, err, &ref)
			assert.Equal(t, refusal.CodeTooLarge, ref.Code)
		})
	}
}

// The headers of a part are held in memory whole, so they are bounded; what is
// not a file is passed over however long it is.
func TestPartHeadersAreBounded(t *testing.T) {
	head := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n"
	for name, tt := range map[string]struct {
		body   string
		served bool
	}{
		"ordinary":            {head + "\r\nx\r\n--b--\r\n", true},
		"long headers":        {head + "X-Padding: " + strings.Repeat("x", 200<<10) + "\r\n\r\nx\r\n--b--\r\n", false},
		"many headers":        {head + strings.Repeat("X-Padding: x\r\n", 20<<10) + "\r\nx\r\n--b--\r\n", false},
		"a long preamble":     {strings.Repeat("x\r\n", 100<<10) + head + "\r\nx\r\n--b--\r\n", false},
		"a long other field":  {"--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n" + strings.Repeat("x", 1<<20) + "\r\n" + head + "\r\nx\r\n--b--\r\n", true},
		"a long file first":   {head + "\r\n" + strings.Repeat("x", 1<<20) + "\r\n" + head + "\r\nx\r\n--b--\r\n", true},
		"headers without end": {head + strings.Repeat("x", 200<<10), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "http://sandbox.test/files", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			u, ref := files.NewUpload(r, r.Body, files.Options{})
			require.Nil(t, ref)
			var last string
			for {
				p, err := u.Next()
				if errors.Is(err, io.EOF) {
					require.True(t, tt.served)
					require.Equal(t, "x", last)
					return
				}
				if !tt.served {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				content, err := io.ReadAll(p)
				require.NoError(t, err)
				last = string(content)
			}
		})
	}
}

// In an absolute path ".." is resolved before the path is judged, and the path is
// forwarded that way: the kernel would follow symbolic links first.
func TestPathsAreResolvedByName(t *testing.T) {
	const linked = "/var/run/../etc/bash.bashrc"
	for name, want := range map[string]string{
		linked: "/var/etc/bash.bashrc", "/a/../b/": "/b/", "/..": "/", "/a/./b": "/a/./b", "/a..b/c": "/a..b/c",
		"../x": "../x", "~/../x": "~/../x", "a/../b": "a/../b",
	} {
		require.Equal(t, want, files.Canonical(name), name)
	}

	raw := httptest.NewRequest("POST", "http://sandbox.test/files?path="+url.QueryEscape(linked), strings.NewReader("x"))
	raw.Header.Set("Content-Type", "application/octet-stream")
	u, ref := files.NewUpload(raw, raw.Body, files.Options{})
	require.Nil(t, ref)
	require.Equal(t, "path=%2Fvar%2Fetc%2Fbash.bashrc", u.RawQuery)
	p, err := u.Next()
	require.NoError(t, err)
	require.Equal(t, "/var/etc/bash.bashrc", p.Path)

	form := httptest.NewRequest("POST", "http://sandbox.test/files", strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\""+linked+"\"\r\n\r\nx\r\n--b--\r\n"))
	form.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	u, ref = files.NewUpload(form, form.Body, files.Options{})
	require.Nil(t, ref)
	p, err = u.Next()
	require.NoError(t, err)
	require.Equal(t, "/var/etc/bash.bashrc", p.Path)

	s, rawQuery, ref := files.ReadSubject(httptest.NewRequest("GET", "http://sandbox.test/files?username=a&path="+linked, nil))
	require.Nil(t, ref)
	require.Equal(t, "/var/etc/bash.bashrc", s.Target)
	require.Equal(t, "path=%2Fvar%2Fetc%2Fbash.bashrc&username=a", rawQuery)

	_, rawQuery, ref = files.ReadSubject(httptest.NewRequest("GET", "http://sandbox.test/files?username=a&path=/b%20c", nil))
	require.Nil(t, ref)
	require.Equal(t, "username=a&path=/b%20c", rawQuery, "what needs no change is not changed")

	_, _, ref = files.ReadSubject(httptest.NewRequest("GET", "http://sandbox.test/files?signature=v1_x&path="+linked, nil))
	require.NotNil(t, ref, "the signature covers the path as it was written")
}

func TestUploadReportsWhyTheBodyBrokeOff(t *testing.T) {
	broken := errors.New("too slow")
	r := request("path=a", "application/octet-stream", "", "")
	u, ref := files.NewUpload(r, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), files.Options{})
	require.Nil(t, ref)
	_, err := u.Next()
	require.ErrorIs(t, err, broken)
}

func TestRepeatedHeadersMustAgree(t *testing.T) {
	r := request("path=a", "application/octet-stream", "gzip", "x")
	r.Header.Add("Content-Encoding", "identity")
	_, ref := files.NewUpload(r, r.Body, files.Options{})
	require.NotNil(t, ref)
	assert.Equal(t, refusal.CodeInvalid, ref.Code)
}

// FuzzMultipartPath checks that the daemon writes the files it finds in the
// canonical body to the paths that were judged, with the same content.
func FuzzMultipartPath(f *testing.F) {
	f.Add("", formType, []byte(form(formFile(`filename="/a"`, "1"))))
	f.Add("path=x", formType, []byte(form(formFile(`filename*0*=utf-8''%2Fa; filename*1=b`, "1"))))
	f.Add("", `multipart/mixed; boundary="B"`, []byte(form("Content-Disposition: form-data; name=file; filename=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41")))
	f.Fuzz(func(t *testing.T, query, contentType string, body []byte) {
		judged, forwarded, err := read(request(query, contentType, "", string(body)))
		if err != nil {
			return
		}
		original, err := envd(request(query, contentType, "", string(body)))
		if err != nil && !strings.Contains(query, "path=") {
			t.Fatalf("the daemon refuses what is read here: %v", err)
		}
		again, err := envd(forwarded)
		if err != nil {
			t.Fatalf("the daemon refuses the canonical body: %v", err)
		}
		if fmt.Sprint(again) != fmt.Sprint(judged) {
			t.Fatalf("the daemon writes %q, judged %q (original %q)", again, judged, original)
		}
	})
}

func BenchmarkUpload(b *testing.B) {
	content := strings.Repeat("x", 8<<20)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, _ := w.CreateFormFile("file", "/data/a.csv")
	_, _ = io.WriteString(part, content)
	_ = w.Close()
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := request("", w.FormDataContentType(), "", "")
		u, ref := files.NewUpload(r, bytes.NewReader(body.Bytes()), files.Options{})
		if ref != nil {
			b.Fatal(ref)
		}
		p, err := u.Next()
		if err != nil {
			b.Fatal(err)
		}
		enc := u.NewEncoder(io.Discard)
		out, err := enc.Begin(p)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(out, p); err != nil {
			b.Fatal(err)
		}
	}
}
