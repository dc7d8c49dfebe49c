package gateway

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rawEncoding is one way to write the upload of a file to a volume.
type rawEncoding struct {
	name   string
	apply  func(wire) wire
	served bool // E2B's clients, or HTTP's, may write it so
}

func rawEncodings() []rawEncoding {
	edit := func(change func(w *wire)) func(wire) wire {
		return func(w wire) wire {
			change(&w)
			return w
		}
	}
	set := func(name, value string) func(wire) wire {
		return func(w wire) wire { return w.set(name, value) }
	}
	query := func(q string) func(wire) wire {
		return func(w wire) wire {
			p, _, _ := strings.Cut(w.target, "?")
			w.target = p + "?" + q
			return w
		}
	}
	at := func(change func(string) string) func(wire) wire {
		return func(w wire) wire {
			p, q, _ := strings.Cut(w.target, "?")
			w.target = change(p) + "?" + q
			return w
		}
	}
	return []rawEncoding{
		{"plain", edit(func(*wire) {}), true},

		{"upper-case content type", set("Content-Type", "APPLICATION/Octet-Stream"), true},
		{"a content type's parameter", set("Content-Type", "application/octet-stream; charset=utf-16"), true},
		{"no content type", set("Content-Type", ""), false},
		{"a form", set("Content-Type", "multipart/form-data; boundary=x"), false},
		{"JSON", set("Content-Type", "application/json"), false},
		{"two content types", func(w wire) wire { return w.add("Content-Type", "text/plain") }, false},
		{"the same content type twice", func(w wire) wire { return w.add("Content-Type", w.get("Content-Type")) }, true},
		{"identity", set("Content-Encoding", "identity"), true},
		{"gzip", func(w wire) wire {
			w.body = gzipMember(w.body)
			return w.set("Content-Encoding", "gzip")
		}, false},
		{"gzip announced, sent plain", set("Content-Encoding", "gzip"), false},
		{"deflate", set("Content-Encoding", "deflate"), false},
		{"identity, then gzip", func(w wire) wire { return w.set("Content-Encoding", "identity").add("Content-Encoding", "gzip") }, false},
		{"a part of the file", set("Content-Range", "bytes 0-3/4"), false},
		{"a transfer encoding", set("Transfer-Encoding", "gzip, chunked"), false},

		{"one-byte chunks", edit(func(w *wire) { w.pieces = true }), true},
		{"HTTP/1.0", edit(func(w *wire) { w.proto = "HTTP/1.0" }), true},
		{"h2c", edit(func(w *wire) { w.proto = "h2c" }), true},
		{"HTTP/2 over TLS", edit(func(w *wire) { w.proto = "h2" }), true},
		{"Expect: 100-continue", edit(func(w *wire) { w.expect = true }), true},
		{"trailers", edit(func(w *wire) { w.trailer = []string{"Content-Type", "text/plain"} }), true},
		{"a length beside chunks", func(w wire) wire {
			w.pieces = true
			return w.set("Content-Length", "3")
		}, true},
		{"two lengths", func(w wire) wire { return w.add("Content-Length", "3") }, false},
		{"a content type dropped on the way", set("Connection", "Content-Type"), false},
		{"method override", set("X-HTTP-Method-Override", "DELETE"), true},
		{"POST", edit(func(w *wire) { w.method = "POST" }), false},
		{"PATCH", edit(func(w *wire) { w.method = "PATCH" }), false},
		{"a method in another case", edit(func(w *wire) { w.method = "put" }), false},

		{"an absolute-form target", edit(func(w *wire) { w.target = "http://gw.example" + w.target }), true},
		{"another host in the target", edit(func(w *wire) { w.target = "http://api.elsewhere.example" + w.target }), true}, // net/http goes by it
		{"an encoded method", at(func(s string) string { return strings.Replace(s, "/file", "/%66ile", 1) }), true},
		{"an encoded plane", at(func(s string) string { return strings.Replace(s, "/volumecontent", "/%76olumecontent", 1) }), true},
		{"an encoded slash", at(func(s string) string { return strings.Replace(s, "/file", "%2ffile", 1) }), false},
		{"a double slash", at(func(s string) string { return "/" + s }), false},
		{"a dot segment", at(func(s string) string { return "/." + s }), false},
		{"an encoded parent segment", at(func(s string) string { return "/x/%2e%2e" + s }), false},
		{"a trailing slash", at(func(s string) string { return s + "/" }), false},
		{"a path parameter", at(func(s string) string { return s + ";x=1" }), false},
		{"a path in another case", at(strings.ToUpper), false},
		{"a NUL in the path", at(func(s string) string { return s + "%00" }), false},

		{"everything escaped", query("%70ath=%2F%78%2E%73%68&force=true"), true},
		{"escaped twice", query("path=%252Fx.sh&force=true"), true}, // a name with a percent sign
		{"a relative path", query("path=x.sh&force=true"), true},
		{"a parent in the path", query("path=%2Fa%2F..%2Fx.sh&force=true"), true},
		{"above the root", query("path=..%2F..%2Fx.sh&force=true"), true},
		{"slashes in the path", query("path=%2F%2F%2Fx.sh%2F&force=true"), true},
		{"a backslash in the path", query("path=%5Cx.sh&force=true"), true}, // a letter of the name
		{"white space after the path", query("path=%2Fx.sh+&force=true"), false},
		{"a line break in the path", query("path=%2Fx.sh%0a&force=true"), false},
		{"a NUL in the file's path", query("path=%2Fx.sh%00.txt&force=true"), false},
		{"two paths", query("path=%2Fx.txt&path=%2Fx.sh&force=true"), false},
		{"a path in brackets", query("path%5B%5D=%2Fx.sh&force=true"), false},
		{"a key in another case", query("Path=%2Fx.sh&force=true"), false},
		{"a shadowing key in another case", query("path=%2Fx.txt&PATH=%2Fx.sh&force=true"), false},
		{"a semicolon", query("path=%2Fx.txt;path=%2Fx.sh&force=true"), false},
		{"a broken escape", query("path=%2Fx.sh%zz&force=true"), false},
		{"an unknown key", query("path=%2Fx.sh&force=true&offset=1"), false},
		{"a mode with more than permissions", query("path=%2Fx.sh&force=true&mode=8389101"), false},
		{"no path", query("force=true"), false},
	}
}

// For an upload to a volume in every encoding: either the guard saw exactly the text
// and the path that arrived, or the call was refused and nothing arrived.
func TestMatrixOfUploadsToAVolume(t *testing.T) {
	l := newLab(t, openVolumes)
	made := l.send(t, wire{target: "/volumes", headers: []string{"X-API-KEY", labKey, "Content-Type", "application/json"}, body: `{"name":"data"}`})
	require.Equal(t, http.StatusCreated, made.Status, made.Body)
	var m madeVolume
	require.NoError(t, json.Unmarshal([]byte(made.Body), &m))
	for _, e := range rawEncodings() {
		t.Run(e.name, func(t *testing.T) {
			for _, word := range []string{"benign", "evil"} {
				text := "#!/bin/sh\necho " + word + "\n"
				w := e.apply(wire{
					method: http.MethodPut, target: "/volumecontent/" + m.VolumeID + "/file?path=%2Fx.sh&force=true", body: text,
					headers: []string{"Authorization", "Bearer " + m.Token, "Content-Type", "application/octet-stream"},
				})
				records, subjects := l.mark()
				got := l.send(t, w)
				arrived, saw := l.since(records, subjects)
				if word == "evil" || !e.served {
					require.True(t, refused(got), "%d %s", got.Status, got.Body)
					for _, r := range arrived {
						require.Nil(t, r.File, "a file arrived")
					}
					continue
				}
				require.Equal(t, http.StatusCreated, got.Status, got.Body)
				require.Len(t, arrived, 2)
				file := arrived[1].File
				require.NotNil(t, file)
				require.Equal(t, http.MethodPut, arrived[1].Method)
				require.Len(t, saw, 1)
				require.Equal(t, file.Head, saw[0].Text)
				require.Equal(t, text, file.Head)
				require.Equal(t, path.Join("/mnt", m.VolumeID, file.Path), saw[0].Target)
			}
		})
	}
}
