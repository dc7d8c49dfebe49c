package files

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func volumeRequest(query string) *http.Request {
	return &http.Request{URL: &url.URL{Path: "/volumecontent/v/file", RawQuery: query}, Header: http.Header{}}
}

func TestAVolumesPathIsForwardedAsItIsJudged(t *testing.T) {
	for query, want := range map[string][2]string{
		"path=%2Fa%2Fb.txt&mode=420": {"/a/b.txt", "path=%2Fa%2Fb.txt&mode=420"}, // as it was sent
		"path=/a/b.txt":              {"/a/b.txt", "path=/a/b.txt"},
		"path=b.txt":                 {"/b.txt", "path=%2Fb.txt"},
		"path=..%2F..%2Fb.txt":       {"/b.txt", "path=%2Fb.txt"},
		"path=%2Fa%2F.%2F..%2Fb%2F":  {"/b", "path=%2Fb"},
		"path=.&depth=2":             {"/", "depth=2&path=%2F"},
		"path=%2F%252e%252e%2Fx":     {"/%2e%2e/x", "path=%2F%252e%252e%2Fx"},
		"path=a+b":                   {"/a b", "path=%2Fa+b"},
	} {
		p, ref := ReadVolumePath(volumeRequest(query), "v")
		require.Nil(t, ref, query)
		require.Equal(t, want, [2]string{p.Path, p.RawQuery}, query)
		require.Equal(t, path.Join("/mnt/v", p.Path), p.Judged())
	}
}

func TestAHiddenFileOfAVolumeIsJudgedAsOneOfAHomeToo(t *testing.T) {
	targets := func(query, action string) (out []string) {
		p, ref := ReadVolumePath(volumeRequest(query), "v")
		require.Nil(t, ref)
		for _, s := range p.Subjects(action) {
			out = append(out, s.Target)
		}
		return out
	}
	require.Equal(t, []string{"/mnt/v/.ssh/id_rsa", "~/.ssh/id_rsa"}, targets("path=.ssh/id_rsa", "read"))
	require.Equal(t, []string{"/mnt/v/x/.ssh/id_rsa"}, targets("path=x/.ssh/id_rsa", "read"))
	require.Equal(t, []string{"/mnt/v/.ssh/id_rsa"}, targets("path=.ssh/id_rsa", "remove"))
}

// What E2B reads of the query that is forwarded is the path that was judged.
func FuzzReadVolumePath(f *testing.F) {
	f.Fuzz(func(t *testing.T, query string) {
		p, ref := ReadVolumePath(volumeRequest(query), "v")
		if ref != nil {
			return
		}
		values, err := url.ParseQuery(p.RawQuery)
		require.NoError(t, err)
		for name, v := range values {
			require.Len(t, v, 1)
			require.Contains(t, volumeParams, name)
		}
		got := values.Get("path")
		require.Equal(t, p.Path, got)
		require.Equal(t, path.Clean(got), got)
		require.True(t, strings.HasPrefix(got, "/"))
		require.Equal(t, strings.TrimSuffix("/mnt/v"+got, "/"), p.Judged())
		again, ref := ReadVolumePath(volumeRequest(p.RawQuery), "v")
		require.Nil(t, ref)
		require.Equal(t, p, again)
	})
}
