package gateway

import (
	"archive/tar"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// uploads are ways to send the files of a COPY step; files is the tar. Those that
// are served arrive as they were judged.
var uploads = map[string]struct {
	apply  func(w wire, files string) wire
	served bool
}{
	"plain":                      {func(w wire, _ string) wire { return w }, true},
	"gzip":                       {func(w wire, files string) wire { w.body = gzipMember(files); return w }, true},
	"two gzip members":           {func(w wire, files string) wire { w.body = zip(files); return w }, true},
	"an empty gzip member first": {func(w wire, files string) wire { w.body = gzipMember("") + gzipMember(files); return w }, true},
	"gzip of a gzip":             {func(w wire, files string) wire { w.body = gzipMember(gzipMember(files)); return w }, false},
	"garbage after gzip":         {func(w wire, files string) wire { w.body = gzipMember(files) + "x"; return w }, false},
	"zeros after gzip":           {func(w wire, files string) wire { w.body = gzipMember(files) + "\x00\x00"; return w }, false},
	"a gzip cut off":             {func(w wire, files string) wire { w.body = gzipMember(files)[:60]; return w }, false},
	"bytes before gzip":          {func(w wire, files string) wire { w.body = "\n" + gzipMember(files); return w }, false},
	"more padding":               {func(w wire, files string) wire { w.body = files + strings.Repeat("\x00", 10240); return w }, true},
	"an archive behind the end":  {func(w wire, files string) wire { w.body = files + files; return w }, false},
	"cut off in a file":          {func(w wire, files string) wire { w.body = files[:520]; return w }, false},
	"no end":                     {func(w wire, files string) wire { w.body = files[:len(files)-1024]; return w }, true},
	"xz":                         {func(w wire, files string) wire { w.body = "\xfd7zXZ\x00" + files; return w }, false},
	"zstd":                       {func(w wire, files string) wire { w.body = "\x28\xb5\x2f\xfd" + files; return w }, false},
	"zip":                        {func(w wire, files string) wire { w.body = "PK\x03\x04" + files; return w }, false},
	"nothing":                    {func(w wire, _ string) wire { w.body = ""; return w }, true}, // an archive of no files
	"Content-Encoding: gzip":     {func(w wire, files string) wire { w.body = gzipMember(files); return w.set("Content-Encoding", "gzip") }, false},
	"Content-Encoding: identity": {func(w wire, _ string) wire { return w.set("Content-Encoding", "identity") }, true},
	"another content type":       {func(w wire, _ string) wire { return w.set("Content-Type", "multipart/form-data; boundary=x") }, true},
	"one-byte chunks":            {func(w wire, _ string) wire { w.pieces = true; return w }, true},
	"HTTP/1.0":                   {func(w wire, _ string) wire { w.proto = "HTTP/1.0"; return w }, true},
	"h2c":                        {func(w wire, _ string) wire { w.proto = "h2c"; return w }, true},
	"HTTP/2 over TLS":            {func(w wire, _ string) wire { w.proto = "h2"; return w }, true},
	"h2c of unknown length":      {func(w wire, _ string) wire { w.proto, w.pieces = "h2c", true; return w }, true},
	"Expect: 100-continue":       {func(w wire, _ string) wire { w.expect = true; return w }, true},
	"trailers":                   {func(w wire, _ string) wire { w.trailer = []string{"Content-Type", "text/plain"}; return w }, true},
	"a length beside chunks":     {func(w wire, _ string) wire { w.pieces = true; return w.set("Content-Length", "3") }, true},
	"two lengths":                {func(w wire, _ string) wire { return w.add("Content-Length", "3") }, false},
	"POST":                       {func(w wire, _ string) wire { w.method = http.MethodPost; return w }, false},
	"PATCH":                      {func(w wire, _ string) wire { w.method = http.MethodPatch; return w }, false},
	"method override":            {func(w wire, _ string) wire { return w.set("X-HTTP-Method-Override", "GET") }, true},
	"an absolute-form target":    {func(w wire, _ string) wire { w.target = "http://gw.example" + w.target; return w }, true},
	"a double slash":             {func(w wire, _ string) wire { w.target = "/" + w.target; return w }, false},
	"a dot segment":              {func(w wire, _ string) wire { w.target = "/." + w.target; return w }, false},
	"an encoded letter":          {func(w wire, _ string) wire { w.target = strings.Replace(w.target, "/f", "/%66", 1); return w }, true},
	"a hash in upper case": {func(w wire, _ string) wire {
		w.target = strings.Replace(w.target, hashA, strings.ToUpper(hashA), 1)
		return w
	}, false},
	"another parameter":           {func(w wire, _ string) wire { w.target += "&x=1"; return w }, true},
	"the parameter twice":         {func(w wire, _ string) wire { w.target += "&token=x"; return w }, false},
	"a semicolon":                 {func(w wire, _ string) wire { w.target += ";token=x"; return w }, false},
	"another API key":             {func(w wire, _ string) wire { return w.set("X-API-KEY", "e2b_dd") }, true},
	"the path of the storage":     {func(w wire, _ string) wire { w.target = "/__upload/x/" + hashA + "?X-Signature=emulator"; return w }, false},
	"headers for E2B's storage":   {func(w wire, _ string) wire { return w.set("X-Amz-Copy-Source", "/other/object") }, true},
	"a sandbox's routing headers": {func(w wire, _ string) wire { return w.set("E2b-Sandbox-Id", "x").set("E2b-Sandbox-Port", "49983") }, false},
	"a forwarded host":            {func(w wire, _ string) wire { return w.set("X-Forwarded-Host", "evil.example") }, true},
	"gzip with name and comment": {func(w wire, files string) wire {
		z := gzipMember(files)
		w.body = z[:3] + "\x18" + z[4:10] + "name\x00comment\x00" + z[10:]
		return w
	}, true},
	"deflate without gzip":         {func(w wire, files string) wire { z := gzipMember(files); w.body = z[10 : len(z)-8]; return w }, false},
	"a long body of bad beginning": {func(w wire, _ string) wire { w.body = strings.Repeat("no tar", 400_000); return w }, false},
}

// In every way of sending them: the files that reach E2B are those that were judged,
// or none do.
func TestMatrixOfUploadsForBuilds(t *testing.T) {
	l := newLab(t, buildsFromPython)
	template := strings.Split(l.newTemplate(t), "/")[3]
	place := l.send(t, wire{method: http.MethodGet, target: "/templates/" + template + "/files/" + hashA, headers: []string{"X-API-KEY", labKey}})
	require.Equal(t, http.StatusCreated, place.Status, place.Body)
	var p uploadPlace
	require.NoError(t, json.Unmarshal([]byte(place.Body), &p))
	to, err := url.Parse(p.URL)
	require.NoError(t, err)
	require.Equal(t, "gw.example", to.Host)

	for name, u := range uploads {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{"ls-benign", "ls-evil"} {
				files := tarOf(t, packed{name: "d/", kind: tar.TypeDir, mode: 0o755}, packed{name: "d/run.sh", text: text}, packed{name: "d/data", text: "\x00data"})
				w := u.apply(wire{method: http.MethodPut, target: to.RequestURI(), body: files}, files)
				records, subjects := l.mark()
				got := l.send(t, w)
				arrived, saw := l.since(records, subjects)
				var stored []string
				for _, r := range arrived {
					if strings.HasPrefix(r.Path, "/__upload/") {
						require.Empty(t, r.Header.Values("X-Amz-Copy-Source"))
						require.Empty(t, r.Header.Values("Content-Encoding"))
						if r.File != nil {
							stored = append(stored, r.File.Path+" "+r.File.Head)
						}
					}
				}
				if text == "ls-evil" || !u.served {
					require.Empty(t, stored)
					if name != "nothing" {
						require.True(t, refused(got) || got.Status == http.StatusAccepted, "%d %s", got.Status, got.Body)
					}
					continue
				}
				require.Equal(t, http.StatusOK, got.Status, got.Body)
				if name != "nothing" {
					require.Equal(t, []string{"d/ ", "d/run.sh ls-benign", "d/data \x00data"}, stored)
					require.True(t, sawText(saw, "ls-benign"))
				}
			}
		})
	}
	require.Zero(t, l.held(), "what was held is given back")
}
