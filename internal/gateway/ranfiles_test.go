package gateway

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shell reads its script while it runs, and a pipe with a name only then: what is
// written to a file that was run is judged as code, however its path is spelled.
func TestFilesThatWereRunAreJudgedWhenWritten(t *testing.T) {
	l := newLab(t)
	upload := func(path, text string) int {
		return l.send(t, wire{target: "/files?path=" + path, headers: l.to("49983", "Content-Type", "application/octet-stream"), body: text}).Status
	}
	require.Equal(t, http.StatusOK, upload("/home/user/new.txt", "evil"))
	require.Equal(t, http.StatusOK, upload("/home/user/x.txt", "ls\nsleep 9\n"))
	pid := l.start(t, `{"process":{"cmd":"/bin/bash","args":["/home/user/x.txt"]},"stdin":false}`)
	for _, path := range []string{"/home/user/x.txt", "x.txt", "/home/user/./a/../x.txt", "~/x.txt", "//home/user//x.txt"} {
		require.Equal(t, http.StatusForbidden, upload(path, "ls\nsleep 9\nevil"), path)
		require.Equal(t, http.StatusOK, upload(path, "ls\nsleep 9\n"), path)
	}
	require.Equal(t, http.StatusForbidden, l.send(t, wire{target: "/filesystem.Filesystem/Move", headers: l.to("49983", "Content-Type", "application/json"), body: `{"source":"new.txt","destination":"x.txt"}`}).Status)
	require.Equal(t, http.StatusForbidden, l.send(t, wire{target: "/files/compose", headers: l.to("49983", "Content-Type", "application/json"), body: `{"source_paths":["new.txt"],"destination":"x.txt"}`}).Status)

	cat := l.start(t, `{"process":{"cmd":"/bin/bash","args":["-c","cat >> x.txt"]},"stdin":true}`)
	require.Equal(t, http.StatusForbidden, l.input(t, cat, "evil").Status)
	require.Equal(t, http.StatusOK, l.input(t, cat, "ls\n").Status)
	require.NotEqual(t, pid, cat)

	// Another sandbox has files of its own.
	_, ran := newFileMemory().classify(l.sandbox, "x.txt", nil)
	require.False(t, ran)
}
