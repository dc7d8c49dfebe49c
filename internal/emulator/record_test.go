package emulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestEveryRequestIsRecordedDecoded(t *testing.T) {
	var out safeBuffer
	l := newLab(t, Options{Record: &out})
	b := l.create("/v2/sandboxes", `{ "templateID": "code-interpreter-v1", "envVars": {"A": "1"} }`)
	b.start(command("echo hi"))
	b.envd(http.MethodPost, "/files?path=f", "content", "Content-Type", octet)
	b.envd(http.MethodPost, "/process.Process/Start", "garbage", "Content-Type", "application/connect+json")
	b.exec(`{"code":"1","env_vars":{"X":"y"}}`)
	b.envd(http.MethodGet, "/files?path=f&signature=v1_secret", "")
	l.do(http.MethodGet, "/x", "", b.headers("3999")...)

	records := l.e.Recorded()
	var got []string
	for _, r := range records {
		got = append(got, r.Plane+" "+r.Path+" "+string(r.Body))
	}
	require.Equal(t, []string{
		`control /v2/sandboxes {"templateID":"code-interpreter-v1","envVars":{"A":"1"}}`,
		`envd /process.Process/Start {"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"]},"stdin":false}`,
		`files /files {"metadata":null,"path":"f","username":null}`,
		`files /files `,
		`envd /process.Process/Start `,
		`interpreter /execute {"code":"1","env_vars":{"X":"y"}}`,
		`files /files {"path":"f","username":""}`,
		`port /x `,
	}, got)
	require.Equal(t, &FileRecord{
		Path: "/home/user/f", Size: 7, Head: "content",
		SHA256: "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73",
	}, records[3].File)
	require.Equal(t, records[2].Seq, records[3].Of)
	require.True(t, records[4].Undecoded)
	require.False(t, records[5].Undecoded)

	require.Equal(t, Fingerprint("any"), records[0].Header.Get("X-Api-Key"))
	require.Equal(t, Fingerprint(b.token), records[1].Header.Get("X-Access-Token"))
	require.Equal(t, "path=f&signature="+Fingerprint("v1_secret"), records[6].Query)
	require.NotContains(t, out.String(), b.token)
	require.NotContains(t, out.String(), "v1_secret")

	var fromFile []Record
	for line := range strings.Lines(out.String()) {
		var r Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		fromFile = append(fromFile, r)
	}
	require.Len(t, fromFile, len(records))
	require.Equal(t, records[1].Body, fromFile[1].Body)
}

// A record is there before its command has done anything.
func TestRecordsComeBeforeTheOperation(t *testing.T) {
	l := newLab(t, Options{})
	b := l.newBox()
	before := len(l.e.Recorded())
	_, stream := b.background(command("sleep 1000"))
	require.NotNil(t, stream)
	require.Len(t, l.e.Recorded(), before+1)
	require.Contains(t, string(l.e.Recorded()[before].Body), "sleep 1000")
}

func TestBasicUserIsShownUnlessItHasAPassword(t *testing.T) {
	h := redactHeader(http.Header{"Authorization": {"Basic cm9vdDo="}})
	require.Equal(t, "Basic cm9vdDo=", h.Get("Authorization"))
	h = redactHeader(http.Header{"Authorization": {"Basic cm9vdDpwYXNz"}})
	require.Equal(t, Fingerprint("Basic cm9vdDpwYXNz"), h.Get("Authorization"))
}
