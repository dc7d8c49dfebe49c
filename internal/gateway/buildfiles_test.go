package gateway

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/emulator"
)

// packed is one entry of a tar.
type packed struct {
	name, text, link string
	kind             byte // tar.TypeReg if 0
	mode             int64
}

func tarOf(t testing.TB, entries ...packed) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.text))}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

var hashA, hashB = strings.Repeat("a1", 32), strings.Repeat("b2", 32)

type uploadPlace struct {
	Present bool
	URL     string
}

// place asks where files go, as the SDK does.
func (v *vaultHouse) place(t *testing.T, key, template, hash string) uploadPlace {
	t.Helper()
	got := v.api(t, key, "GET", "/templates/"+template+"/files/"+hash, "")
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	var p uploadPlace
	require.NoError(t, json.Unmarshal([]byte(got.Body), &p))
	return p
}

// put sends files to an upload URL, without a key.
func (v *vaultHouse) put(t *testing.T, to, archive string) answer {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	return v.do(t, http.MethodPut, u.RequestURI(), nil, strings.NewReader(archive))
}

// sendFiles uploads files as a client does.
func (v *vaultHouse) sendFiles(t *testing.T, key, template, hash, archive string) answer {
	t.Helper()
	return v.put(t, v.place(t, key, template, hash).URL, archive)
}

// copyStep is a COPY step of a build.
func copyStep(hash string, args ...string) string {
	b, _ := json.Marshal(map[string]any{"type": "COPY", "args": args, "filesHash": hash})
	return string(b)
}

func (v *vaultHouse) build(t *testing.T, key, id, build string, steps ...string) answer {
	t.Helper()
	return v.api(t, key, "POST", "/v2/templates/"+id+"/builds/"+build, `{"fromImage":"python:3.12","steps":[`+strings.Join(steps, ",")+`]}`)
}

// stored are the files that reached E2B's storage, as tar would unpack them.
func (v *vaultHouse) stored() []string {
	var names []string
	for _, r := range v.e2b.Recorded() {
		if r.File != nil && strings.HasPrefix(r.Path, "/__upload/") {
			names = append(names, r.File.Path+": "+r.File.Head)
		}
	}
	return names
}

func lastBuild(t *testing.T, e2b *emulator.Emulator) (hashes []string) {
	t.Helper()
	for _, r := range slices.Backward(e2b.Recorded()) {
		if strings.Contains(r.Path, "/builds/") && r.Method == http.MethodPost {
			var body struct{ Steps []struct{ FilesHash string } }
			require.NoError(t, json.Unmarshal(r.Body, &body))
			for _, s := range body.Steps {
				hashes = append(hashes, s.FilesHash)
			}
			return hashes
		}
	}
	return nil
}

func TestFilesOfABuildAreSeenStoredAndCopied(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")

	before := v.place(t, keyA, id, hashA)
	require.False(t, before.Present)
	u, err := url.Parse(before.URL)
	require.NoError(t, err)
	require.Equal(t, v.url, "http://"+u.Host, "the upload passes the gateway")
	require.NotContains(t, before.URL, "X-Signature", "E2B's own URL stays here")

	files := tarOf(t, packed{name: "app/", kind: tar.TypeDir, mode: 0o755}, packed{name: "app/main.py", text: "print(1)"}, packed{name: "app/data.csv", text: "1,2"}, packed{name: "app/latest", link: "data.csv", kind: tar.TypeSymlink})
	sent := v.put(t, before.URL, gzipMember(files))
	require.Equal(t, http.StatusOK, sent.Status, sent.Body)
	require.Equal(t, []string{"app/: ", "app/main.py: print(1)", "app/data.csv: 1,2", "app/latest -> data.csv: "}, v.stored())
	for _, r := range v.reached() {
		if r.Method == http.MethodPut {
			require.Equal(t, int64(len(r.Body)), r.ContentLength, "S3 takes no chunks")
			require.Empty(t, r.Header.Get("X-Api-Key"), "the storage is no business of the key")
			require.True(t, bytes.HasPrefix(r.Body, []byte("\x1f\x8b")))
		}
	}
	saw := v.guard.saw()
	require.Len(t, saw, 1)
	require.Equal(t, guard.Subject{Kind: guard.KindFile, Language: "python", Text: "print(1)", Target: "app/main.py"}, guard.Subject{Kind: saw[0].Kind, Language: saw[0].Language, Text: saw[0].Text, Target: saw[0].Target})

	require.True(t, v.place(t, keyA, id, hashA).Present)
	got := v.build(t, keyA, id, build, copyStep(hashA, "app", "/srv/app/", "", ""), `{"type":"RUN","args":["python main.py"]}`)
	require.Equal(t, http.StatusAccepted, got.Status, got.Body)
	hashes := lastBuild(t, v.e2b)
	require.NotEqual(t, hashA, hashes[0], "E2B knows the files by a name of the gateway's")
	require.Contains(t, v.api(t, keyA, "GET", "/templates/"+id+"/builds/"+build+"/status", "").Body, `"ready"`)
}

func TestFilesThatDoHarmAreNotStored(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	for name, entries := range map[string][]packed{
		"code":                        {{name: "run.sh", text: "do evil"}},
		"by shebang":                  {{name: "run", text: "#!/bin/sh\ndo evil"}},
		"after much else":             {{name: "x.bin", text: strings.Repeat("\x00", 3<<20)}, {name: "run.sh", text: "do evil"}},
		"an absolute path":            {{name: "/etc/passwd", text: "x"}},
		"a path that leaves":          {{name: "a/../../etc/passwd", text: "x"}},
		"a link that leaves":          {{name: "l", link: "../../etc/cron.d", kind: tar.TypeSymlink}},
		"an absolute link":            {{name: "l", link: "/etc/cron.d", kind: tar.TypeSymlink}},
		"a file through a link":       {{name: "d/", kind: tar.TypeDir}, {name: "l", link: "d", kind: tar.TypeSymlink}, {name: "l/x", text: "x"}},
		"a folder through a link":     {{name: "d/", kind: tar.TypeDir}, {name: "l", link: "d", kind: tar.TypeSymlink}, {name: "l/x/", kind: tar.TypeDir}},
		"another file through a link": {{name: "d/x", text: "x"}, {name: "l", link: "d", kind: tar.TypeSymlink}, {name: "l/x", text: "y"}},
		"a link through a link":       {{name: "d/x", link: "y", kind: tar.TypeSymlink}, {name: "l", link: "d", kind: tar.TypeSymlink}, {name: "l/x", link: "z", kind: tar.TypeSymlink}},
		"a hard link that leaves":     {{name: "l", link: "../x", kind: tar.TypeLink}},
		"a device":                    {{name: "l", kind: tar.TypeChar}},
		"a pipe":                      {{name: "l", kind: tar.TypeFifo}},
		"a name twice":                {{name: "a", text: "x"}, {name: "./a", text: "y"}},
	} {
		got := v.sendFiles(t, keyA, id, hashA, gzipMember(tarOf(t, entries...)))
		require.Equal(t, http.StatusAccepted, got.Status, "%s: SDKs show nothing of this answer but its status: %s", name, got.Body)
		require.Contains(t, got.Header.Get("E2b-Guard"), "code=policy", name)
		require.False(t, v.place(t, keyA, id, hashA).Present, name)

		start := v.build(t, keyA, id, build, copyStep(hashA, ".", "/app"))
		require.Equal(t, http.StatusForbidden, start.Status, name)
		require.Contains(t, start.Body, "step 1 (COPY)", name)
	}
	for _, r := range v.reached() {
		require.NotEqual(t, http.MethodPut, r.Method, "not a byte is stored")
	}
	got := v.sendFiles(t, keyA, id, hashA, gzipMember(tarOf(t, packed{name: "run.sh", text: "do good"})))
	require.Equal(t, http.StatusOK, got.Status, "the same client's next upload is judged anew")
}

// What is data by its name is code where it may run by itself.
func TestFilesAreJudgedWhereABuildPutsThem(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	files := tarOf(t, packed{name: "conf/", kind: tar.TypeDir, mode: 0o755}, packed{name: "conf/job.dat", text: "* * * * * root do evil"}, packed{name: "conf/also.dat", link: "conf/job.dat", kind: tar.TypeLink}, packed{name: "conf/x.dat", text: "fine"})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(files)).Status)
	require.Empty(t, v.guard.saw(), "it is data so far")

	for name, steps := range map[string][]string{
		"a folder of jobs":             {copyStep(hashA, "conf", "/etc/cron.d")},
		"one with a slash":             {copyStep(hashA, "conf/*.dat", "/etc/cron.d/")},
		"below the folder":             {`{"type":"WORKDIR","args":["/etc"]}`, copyStep(hashA, "conf", "cron.d")},
		"by a variable":                {`{"type":"ENV","args":["D","/etc/cron.d"]}`, copyStep(hashA, "conf", "${D}")},
		"by the folder and a variable": {`{"type":"ENV","args":["D","/etc"]}`, `{"type":"WORKDIR","args":["$D"]}`, copyStep(hashA, "conf", "./x/../cron.d")},
		"a folder that is not known":   {`{"type":"WORKDIR","args":["$WHERE"]}`, copyStep(hashA, "conf", "x")},
		"a home that is not known":     {`{"type":"USER","args":["daemon"]}`, copyStep(hashA, "conf", "x")},
		"ADD":                          {strings.Replace(copyStep(hashA, "conf", "/usr/local/bin"), "COPY", "ADD", 1)},
	} {
		got := v.build(t, keyA, id, build, steps...)
		require.Equal(t, http.StatusForbidden, got.Status, "%s: %s", name, got.Body)
		require.Contains(t, got.Body, "evil", name)
	}
	got := v.build(t, keyA, id, build, copyStep(hashA, "conf", "/srv/data"))
	require.Equal(t, http.StatusAccepted, got.Status, got.Body)
}

func TestAFileThatIsRenamedIsJudgedByItsNewName(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(tarOf(t, packed{name: "job.dat", text: "do evil"}))).Status)
	for _, destination := range []string{"/app/run.sh", "/etc/cron.d", "/etc/cron.d/", "/home/user/.bashrc", ".bashrc", "/app/Makefile"} {
		got := v.build(t, keyA, id, build, copyStep(hashA, "job.dat", destination))
		require.Equal(t, http.StatusForbidden, got.Status, "%s: %s", destination, got.Body)
	}
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "job.dat", "/app/")).Status)
}

// A link that is harmless by itself is a way round what a later step is judged by.
func TestLinksOfABuildLeadNowhereElse(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	tree := tarOf(t, packed{name: "t/", kind: tar.TypeDir}, packed{name: "t/l", link: "etc/cron.d", kind: tar.TypeSymlink}, packed{name: "t/up/out", link: "../../data", kind: tar.TypeSymlink}, packed{name: "data", text: "x"})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(tree)).Status)
	require.Contains(t, v.build(t, keyA, id, build, copyStep(hashA, "t", "/")).Body, "symbolic link", "out of the folder that is copied")

	tree = tarOf(t, packed{name: "t/", kind: tar.TypeDir}, packed{name: "t/l", link: "etc/cron.d", kind: tar.TypeSymlink}, packed{name: "t/.bashrc", link: "notes.txt", kind: tar.TypeSymlink}, packed{name: "t/notes.txt", text: "do evil"})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(tree)).Status)
	require.Contains(t, v.build(t, keyA, id, build, copyStep(hashA, "t", "/srv")).Body, "evil", "a file is judged by its links' names, too")

	tree = tarOf(t, packed{name: "t/", kind: tar.TypeDir}, packed{name: "t/l", link: "etc/cron.d", kind: tar.TypeSymlink})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(tree)).Status)
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashB, gzipMember(tarOf(t, packed{name: "job.dat", text: "do evil"}))).Status)
	require.Contains(t, v.build(t, keyA, id, build, copyStep(hashA, "t", "/"), copyStep(hashB, "job.dat", "/l/job")).Body, "leads through /l")
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "t", "/")).Status)
}

func TestAClientsBuildHasItsOwnFilesOnly(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	other, otherBuild := v.template(t, keyB, "team-b-app")
	files := gzipMember(tarOf(t, packed{name: "a.txt", text: "secret of a"}))
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, files).Status)
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "a.txt", "/a.txt")).Status)
	name := lastBuild(t, v.e2b)[0]

	for _, hash := range []string{hashA, name} {
		got := v.build(t, keyB, other, otherBuild, copyStep(hash, "a.txt", "/a.txt"))
		require.Equal(t, http.StatusBadRequest, got.Status, got.Body)
		require.Contains(t, got.Body, "Build again")
		require.False(t, v.place(t, keyB, other, hash).Present, "though E2B has it")
	}
	require.Equal(t, http.StatusBadRequest, v.build(t, keyA, id, build, copyStep(name, "a.txt", "/a.txt")).Status, "E2B's name means nothing here")
	require.Equal(t, http.StatusNotFound, v.api(t, keyB, "GET", "/templates/"+id+"/files/"+hashA, "").Status, "another's template")

	// Files sent past the gateway under the client's name are not what is built.
	direct := v.direct(t, "GET", "/templates/"+id+"/files/"+hashB, headers("X-API-KEY", "e2b_real"), nil)
	var p uploadPlace
	require.NoError(t, json.Unmarshal([]byte(direct.Body), &p))
	u, err := url.Parse(p.URL)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, v.direct(t, "PUT", u.RequestURI(), nil, strings.NewReader("anything")).Status)
	require.False(t, v.place(t, keyA, id, hashB).Present)
	require.Equal(t, http.StatusBadRequest, v.build(t, keyA, id, build, copyStep(hashB, "a.txt", "/a.txt")).Status)
}

// Whatever is sent under the same name after a build was judged, the build gets
// what was judged.
func TestABuildGetsTheFilesThatWereJudged(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	first := v.place(t, keyA, id, hashA)
	require.Equal(t, http.StatusOK, v.put(t, first.URL, tarOf(t, packed{name: "job", text: "\x00fine"})).Status)
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "job", "/srv/job")).Status)
	judged := lastBuild(t, v.e2b)[0]
	require.Equal(t, http.StatusOK, v.put(t, first.URL, tarOf(t, packed{name: "job", text: "\x00other"})).Status)
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "job", "/srv/job")).Status)
	require.NotEqual(t, judged, lastBuild(t, v.e2b)[0])

	// The same files have the same name, however they are packed: E2B's cache of
	// layers goes by it.
	again := tarOf(t, packed{name: "./job", text: "\x00fine"})
	require.Equal(t, http.StatusOK, v.put(t, first.URL, gzipMember(again[:600])+gzipMember(again[600:])).Status)
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "job", "/srv/job")).Status)
	require.Equal(t, judged, lastBuild(t, v.e2b)[0])
}

func TestUploadURLsOpenWhatTheyWereGivenFor(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, _ := v.template(t, keyA, "team-a-app")
	second, _ := v.template(t, keyA, "team-a-two")
	good := v.place(t, keyA, id, hashA).URL
	u, err := url.Parse(good)
	require.NoError(t, err)
	sealed := u.Query().Get("token")
	at := func(template, hash, query string) string {
		return "/templates/" + template + "/files/" + hash + "?" + query
	}
	for _, path := range []string{
		at(second, hashA, "token="+sealed), at(id, hashB, "token="+sealed), at(id, hashA, ""), at(id, hashA, "token=x"), at(id, hashA, "upload="+sealed), at(id, hashA, "token="+sealed+"&token="+sealed),
		at(id, hashA, "token="+sealed[:len(sealed)-2]), at(id, hashA, "token="+sealedEnvd(id, "team-a", "x")),
	} {
		got := v.nothingSpent(t, func() answer {
			return v.do(t, http.MethodPut, path, headers("X-API-KEY", keyA), strings.NewReader(tarOf(t, packed{name: "a", text: "b"})))
		})
		require.Equal(t, http.StatusUnauthorized, got.Status, path)
	}
	for _, hash := range []string{"x", strings.ToUpper(hashA), hashA + "0", hashA[:63], "..", hashA[:60] + "%22;"} {
		require.GreaterOrEqual(t, v.api(t, keyA, "GET", "/templates/"+id+"/files/"+hash, "").Status, 400, hash)
	}
}

func TestACopyStepSaysNothingElse(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, tarOf(t, packed{name: "a", text: "\x00b"})).Status)
	for _, step := range []string{
		copyStep(hashA, "a", `/x"; id; "`), copyStep(hashA, "a", "/x$(id)"), copyStep(hashA, "a", "/x`id`"), copyStep(hashA, "a", "/x\nid"), copyStep(hashA, "a", `/x\`),
		copyStep(hashA, `a"`, "/x"), copyStep(hashA, "$HOME", "/x"), copyStep(hashA, "../a", "/x"), copyStep(hashA, "/a", "/x"), copyStep(hashA, "b/../../a", "/x"), copyStep(hashA, "", "/x"), copyStep(hashA, "a", ""),
		copyStep(hashA, "a", "/x", "root; id"), copyStep(hashA, "a", "/x", "", "4755"), copyStep(hashA, "a", "/x", "", "u+s"), copyStep(hashA, "a", "/x", "", "", "x"), copyStep(hashA, "a"),
		copyStep("", "a", "/x"), copyStep(strings.ToUpper(hashA), "a", "/x"), copyStep(hashA+`"; id`, "a", "/x"), copyStep(hashA, "a", "/$UNSET/x"),
		`{"type":"RUN","args":["true"],"filesHash":"` + hashA + `"}`, `{"type":"ENV","args":["TAR_OPTIONS","--xattrs"]},` + copyStep(hashA, "a", "/x"),
	} {
		require.Equal(t, http.StatusForbidden, v.build(t, keyA, id, build, step).Status, step)
	}
	for _, step := range []string{copyStep(hashA, "a", "/x", "root", "0755"), copyStep(hashA, "./a", "/x y/", "dev:dev", ""), copyStep(hashA, "a*", "/x", "1000:1000")} {
		require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, step).Status, step)
	}
}

func TestFilesOfABuildWithoutClientKeys(t *testing.T) {
	e2b := newEmulator(t)
	guard := new(wordGuard)
	h := &vaultHouse{e2b: e2b, guard: guard, house: newHouse(t, e2b.ServeHTTP, func(cfg *Config) {
		cfg.Guard = guard
		buildsFromPython(cfg)
	})}
	id, build := h.template(t, keyA, "app")
	to := h.place(t, keyA, id, hashA)
	require.NotContains(t, to.URL, keyA)
	require.Equal(t, http.StatusAccepted, h.put(t, to.URL, tarOf(t, packed{name: "a.sh", text: "do evil"})).Status)
	require.Equal(t, http.StatusOK, h.put(t, to.URL, tarOf(t, packed{name: "a.sh", text: "do good"})).Status)
	require.Equal(t, http.StatusBadRequest, h.build(t, keyB, id, build, copyStep(hashA, "a.sh", "/a.sh")).Status, "what another key has sent")
	require.Equal(t, http.StatusAccepted, h.build(t, keyA, id, build, copyStep(hashA, "a.sh", "/a.sh")).Status)
}

func TestManyFilesAreJudgedAll(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	var entries []packed
	for i := range 700 {
		entries = append(entries, packed{name: fmt.Sprintf("src/m%d.py", i), text: fmt.Sprintf("print(%d)", i)})
	}
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(tarOf(t, entries...))).Status)
	require.Len(t, v.guard.saw(), 700)
	require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, copyStep(hashA, "src", "/usr/lib/python3/dist-packages")).Status)
	require.Len(t, v.guard.saw(), 1400, "once more where they are imported from by all programs")
	entries[650].text = "do evil"
	require.Equal(t, http.StatusAccepted, v.sendFiles(t, keyA, id, hashA, gzipMember(tarOf(t, entries...))).Status)
}

// Data by its name and place is code for the command that runs it.
func TestACommandIsJudgedWithTheCopiedFilesThatItRuns(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython)
	id, build := v.template(t, keyA, "team-a-app")
	files := tarOf(t, packed{name: "app/notes.txt", text: "echo text of the notes"}, packed{name: "app/other.txt", text: "echo other"}, packed{name: "app/outer.txt", text: "sh /srv/app/notes.txt"})
	require.Equal(t, http.StatusOK, v.sendFiles(t, keyA, id, hashA, gzipMember(files)).Status)
	for name, steps := range map[string][]string{
		"by its path":         {copyStep(hashA, "app", "/srv/app"), `{"type":"RUN","args":["sh /srv/app/notes.txt"]}`},
		"in its folder":       {`{"type":"WORKDIR","args":["/srv/app"]}`, copyStep(hashA, "app", "."), `{"type":"RUN","args":["bash notes.txt"]}`},
		"by a variable":       {`{"type":"ENV","args":["APP","/srv/app"]}`, `{"type":"WORKDIR","args":["$APP"]}`, copyStep(hashA, "app", "$APP"), `{"type":"RUN","args":["bash ./notes.txt"]}`},
		"by a file that does": {copyStep(hashA, "app", "/srv/app"), `{"type":"RUN","args":["sh /srv/app/outer.txt"]}`},
	} {
		before := len(v.guard.saw())
		require.Equal(t, http.StatusAccepted, v.build(t, keyA, id, build, steps...).Status, name)
		var with []string
		for _, s := range v.guard.saw()[before:] {
			for _, f := range s.Files {
				if s.Kind == guard.KindBuild && s.Target == "" {
					with = append(with, f.Path+": "+f.Text)
				}
			}
		}
		require.Contains(t, with, "/srv/app/notes.txt: echo text of the notes", name)
		require.NotContains(t, with, "/srv/app/other.txt: echo other", name)
	}
}

// The URL is built of what the client reached the gateway by.
func TestUploadURLsLeadToTheGateway(t *testing.T) {
	v := newVaultHouse(t, newEmulator(t), buildsFromPython, func(cfg *Config) { cfg.PublicDomain = "gw.test" })
	id, _ := v.template(t, keyA, "team-a-app")
	for _, c := range []struct{ host, proto, want string }{
		{"", "", v.url}, {"api.gw.test", "", "http://api.gw.test"}, {"api.gw.test", "https", "https://api.gw.test"},
	} {
		req, err := http.NewRequest(http.MethodGet, v.url+"/templates/"+id+"/files/"+hashA, nil)
		require.NoError(t, err)
		req.Host = c.host
		req.Header.Set("X-API-Key", keyA)
		req.Header.Set("X-Forwarded-Proto", c.proto)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		var p uploadPlace
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&p))
		require.NoError(t, resp.Body.Close())
		require.True(t, strings.HasPrefix(p.URL, c.want+"/templates/"+id+"/files/"+hashA+"?token="), p.URL)
	}
}
