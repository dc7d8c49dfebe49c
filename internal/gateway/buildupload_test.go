package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// newStorageHouse is a vault house whose storage is another than the emulator's.
func newStorageHouse(t *testing.T, storage http.HandlerFunc, edits ...func(*Config)) *vaultHouse {
	t.Helper()
	e2b := newEmulator(t)
	v := &vaultHouse{e2b: e2b, guard: new(wordGuard), state: NewState()}
	v.house = newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			storage(w, r)
			return
		}
		e2b.ServeHTTP(w, r)
	}, func(cfg *Config) {
		vault(cfg)
		buildsFromPython(cfg)
		cfg.Guard, cfg.State = v.guard, v.state
		for _, edit := range edits {
			edit(cfg)
		}
	})
	return v
}

func TestAStorageThatFailsKeepsNothing(t *testing.T) {
	for name, storage := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Request-Id", "secret-id")
			http.Error(w, "<Error><Host>bucket.secret.example</Host></Error>", http.StatusForbidden)
		},
		"sends elsewhere": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://secret.example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"breaks off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		v := newStorageHouse(t, storage)
		id, build := v.template(t, keyA, "team-a-app")
		got := v.sendFiles(t, keyA, id, hashA, tarOf(t, packed{name: "a", text: "\x00"}))
		require.Equal(t, http.StatusBadGateway, got.Status, name)
		require.NotContains(t, got.Body+fmt.Sprint(got.Header), "secret", "%s: where E2B stores things is not told", name)
		require.Equal(t, http.StatusBadRequest, v.build(t, keyA, id, build, copyStep(hashA, "a", "/a")).Status, name)
		require.Zero(t, v.held(), name)
	}
}

func TestUploadsForBuildsAreBounded(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython, func(cfg *Config) {
		cfg.Body.UploadBytes, cfg.Body.CeilingBytes, cfg.Body.MessageBytes = 3<<20, 4<<20, 1<<20
	})
	id, build := v.template(t, keyA, "team-a-app")
	to := v.place(t, keyA, id, hashA).URL
	u, err := url.Parse(to)
	require.NoError(t, err)
	noise := func(n int) string {
		var b strings.Builder
		for i := range uint32(n / 4) {
			x := i * 2654435761
			b.Write([]byte{byte(x >> 24), byte(x >> 16), byte(x>>8) ^ byte(x), 0})
		}
		return b.String()
	}
	large := tarOf(t, packed{name: "a", text: noise(4 << 20)})
	require.Equal(t, http.StatusRequestEntityTooLarge, v.put(t, to, large).Status, "as its length says")
	require.Equal(t, http.StatusRequestEntityTooLarge, v.do(t, http.MethodPut, u.RequestURI(), nil, io.MultiReader(strings.NewReader(large))).Status, "in chunks")
	require.Equal(t, http.StatusAccepted, v.put(t, to, gzipMember(tarOf(t, packed{name: "a", text: strings.Repeat("\x00", 4<<20)}))).Status, "unpacked")
	require.Contains(t, v.build(t, keyA, id, build, copyStep(hashA, "a", "/a")).Body, "larger, unpacked")
	require.Equal(t, http.StatusTooManyRequests, v.put(t, to, tarOf(t, packed{name: "a", text: noise(5 << 19)})).Status, "half of the ceiling is for others")
	require.Equal(t, http.StatusAccepted, v.put(t, to, tarOf(t, packed{name: "a.py", text: strings.Repeat("#", 2<<20)})).Status, "code that is too long to be judged")
	require.Contains(t, v.build(t, keyA, id, build, copyStep(hashA, "a.py", "/a")).Body, "a.py")
	require.Empty(t, v.stored())
	require.Zero(t, v.held())
}

// Of more text than is kept, what would be code where it is copied is refused.
func TestWhatIsNotRememberedIsNotGuessed(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	long := strings.Repeat("long ", archiveTextBytes/5)
	files := tarOf(t, packed{name: "d/a.dat", text: long}, packed{name: "d/b.dat", text: "do evil"}, packed{name: "d/tool", text: "\x7fELF\x00" + strings.Repeat("x", 9<<20)}, packed{name: "d/c.sh", text: "echo fine"})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(files)).Status)
	got := v.build(t, keyA, id, build, copyStep(hashA, "d", "/etc/cron.d"))
	require.Equal(t, http.StatusForbidden, got.Status)
	require.Contains(t, got.Body, "too large to be judged there")
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "d", "/srv")).Status)

	files = tarOf(t, packed{name: "tool", text: "\x7fELF\x00" + strings.Repeat("x", 9<<20)})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(files)).Status)
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "tool", "/usr/local/bin/")).Status)
	saw := v.guard.saw()
	require.Equal(t, "/usr/local/bin/tool", saw[len(saw)-1].Target)
	require.Equal(t, "/usr/local/bin/tool", saw[len(saw)-1].Labels[guard.LabelUnseen], "a program has no text to judge")

	files = tarOf(t, packed{name: "pic.png", text: "\x89PNG\r\x00\n"})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(files)).Status)
	for _, destination := range []string{"/usr/lib/x/", "/etc/x.png"} {
		require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "pic.png", destination)).Status)
		saw := v.guard.saw()
		require.NotEmpty(t, saw[len(saw)-1].Labels[guard.LabelUnseen], "nor has a picture")
	}
}

func TestArchivesAreForgottenWhenThereAreTooMany(t *testing.T) {
	m := newArchiveMemory()
	for i := range 30 {
		text := strings.Repeat("x", archiveTextBytes)
		m.put(archiveKey{"a", fmt.Sprint(i)}, &archived{name: "n", files: map[string]archivedFile{"f": {text: text}}})
	}
	require.LessOrEqual(t, m.bytes, archiveBytesKept)
	_, ok := m.get(archiveKey{"a", "0"})
	require.False(t, ok)
	_, ok = m.get(archiveKey{"a", "29"})
	require.True(t, ok)
	for i := range 30 {
		m.put(archiveKey{"a", fmt.Sprint(i)}, &archived{refused: "x"})
	}
	require.Equal(t, 30, m.bytes)
}

func TestAnUploadThatBreaksOffIsNotStored(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython, func(cfg *Config) { cfg.Body.ReadTimeout = 50 * time.Millisecond })
	id, _ := v.template(t, keyA, "team-a-app")
	u, err := url.Parse(v.place(t, keyA, id, hashA).URL)
	require.NoError(t, err)
	files := tarOf(t, packed{name: "a", text: strings.Repeat("\x00", 100_000)})
	send := func() net.Conn {
		conn, err := net.Dial("tcp", u.Host)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", u.RequestURI(), u.Host, len(files), files[:50_000])
		require.NoError(t, err)
		return conn
	}
	conn := send()
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(got), "408", "a client that stands still")
	require.NoError(t, conn.Close())
	require.NoError(t, send().Close(), "a client that leaves")
	require.Eventually(t, func() bool { return v.held() == 0 }, 5*time.Second, 5*time.Millisecond)
	require.Empty(t, v.stored())
	require.False(t, v.place(t, keyA, id, hashA).Present)
}

type brokenGuard struct{}

func (brokenGuard) Review(context.Context, guard.Subject) (guard.Verdict, error) {
	return guard.Verdict{}, errors.New("out of order")
}

func TestFilesWithoutAVerdictAreNotStored(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython, func(cfg *Config) { cfg.Guard = brokenGuard{} })
	id, build := v.template(t, keyA, "team-a-app")
	require.Equal(t, http.StatusAccepted, v.sendFiles(t, keyA, id, hashA, tarOf(t, packed{name: "a.sh", text: "x"})).Status)
	require.Contains(t, v.build(t, keyA, id, build, copyStep(hashA, "a.sh", "/a")).Body, "no verdict")
	require.Empty(t, v.stored())
}

// Every file that was judged is on record, and so is what was refused; no password of
// a registry is.
func TestBuildsAreOnRecord(t *testing.T) {
	b, edit := audited(t, audit.Options{})
	v := newVaultHouse(t, newEmulator(t), buildsFromPython, edit)
	id, build := v.template(t, keyA, "team-a-app")
	var entries []packed
	for i := range 300 {
		entries = append(entries, packed{name: fmt.Sprintf("m%d.py", i), text: "print(1)"})
	}
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, tarOf(t, entries...)).Status)
	require.Equal(t, http.StatusAccepted, v.sendFiles(t, keyA, id, hashB, tarOf(t, packed{name: "a.sh", text: "do evil"})).Status)
	for i, registry := range []string{
		`{"type":"registry","username":"hush-user","password":"hush-hush"}`, `{"type":"aws","awsAccessKeyId":"hush-id","awsSecretAccessKey":"hush-hush","awsRegion":"x"}`,
		`{"type":"gcp","serviceAccountJson":"{\"private_key\":\"hush-hush\"}"}`, `{"type":"registry","password":"hush-hush","password":"x"}`, `{"type":"registry","password":{"hush-hush":1}}`, `"hush-hush"`, `["hush-hush"]`,
	} {
		for _, image := range []string{"python", "evil/x"} {
			for _, step := range []string{`{"type":"RUN","args":["echo one"]}`, `{"type":"RUN","args":["do evil"]}`, copyStep(hashA, ".", "/app"), copyStep(hashB, "a.sh", "/app")} {
				got := v.api(t, keyA, "POST", "/v2/templates/"+id+"/builds/"+build, `{"fromImage":"`+image+`","fromImageRegistry":`+registry+`,"steps":[`+step+`]}`)
				require.NotContains(t, got.Body+fmt.Sprint(got.Header), "hush", "%d: %s", i, registry)
			}
		}
	}
	decisions, _ := b.records(t)
	judged, blocked := 0, 0
	for _, d := range decisions {
		if d.Operation == "template.file_upload" {
			judged += len(d.Decision.Subjects)
			if d.Decision.Decision == "block" {
				blocked++
				require.Contains(t, d.Decision.Reason, "a.sh")
			}
		}
	}
	require.Equal(t, 301, judged)
	require.Equal(t, 1, blocked)
	raw, err := os.ReadFile(b.path)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "hush")
	require.NotContains(t, string(raw), "token=")
	for _, entry := range v.log.All() {
		line, err := json.Marshal(entry.ContextMap())
		require.NoError(t, err)
		require.NotContains(t, entry.Message+string(line), "hush")
		require.NotContains(t, entry.Message+string(line), "token=")
	}
}

func TestAReloadKeepsWhatWasUploaded(t *testing.T) {
	e2b := newEmulator(t)
	first := newVaultHouse(t, e2b, buildsFromPython)
	id, build := first.template(t, keyA, "team-a-app")
	require.Equal(t, http.StatusOK, first.sendFiles(t, keyA, id, hashA, tarOf(t, packed{name: "a", text: "\x00"})).Status)
	second := newVaultHouse(t, e2b, buildsFromPython, func(cfg *Config) { cfg.State = first.state })
	require.Equal(t, http.StatusAccepted, second.build(t, keyA, id, build, copyStep(hashA, "a", "/a")).Status)
	restarted := newVaultHouse(t, e2b, buildsFromPython)
	to := restarted.place(t, keyA, id, hashA)
	require.False(t, to.Present, "the SDK then sends them again")
	require.Equal(t, http.StatusOK, restarted.put(t, to.URL, tarOf(t, packed{name: "a", text: "\x00"})).Status)
	require.Equal(t, http.StatusAccepted, restarted.build(t, keyA, id, build, copyStep(hashA, "a", "/a")).Status)
}

func TestUploadsForBuildsNeedTheOption(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, _ := v.template(t, keyA, "team-a-app")
	u, err := url.Parse(v.place(t, keyA, id, hashA).URL)
	require.NoError(t, err)
	closed := newVaultHouse(t, v.e2b, func(cfg *Config) { cfg.Policy.Builds = policy.Builds{} })
	require.Equal(t, http.StatusForbidden, closed.do(t, http.MethodPut, u.RequestURI(), nil, strings.NewReader("x")).Status)
	require.Equal(t, http.StatusForbidden, closed.api(t, keyA, "GET", "/templates/"+id+"/files/"+hashA, "").Status)
}
