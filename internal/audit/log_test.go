package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/e2bguard/e2bguard/internal/redact"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_CRASH"); path != "" {
		writeUntilKilled(path)
	}
	if path := os.Getenv("AUDIT_TEST_FULL"); path != "" {
		os.Exit(writeUntilFull(path))
	}
	goleak.VerifyTestMain(m)
}

func decision(id string) Record {
	return Record{
		Kind: KindDecision, ID: id, Call: &Call{Client: "team-a", Sandbox: "sbx", Operation: "process.start"},
		Decision: &Decision{Decision: "pass", Mode: "enforce"},
	}
}

func newLog(t *testing.T, path string, opts Options) *Log {
	t.Helper()
	l := New(path, opts)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func appendAll(t *testing.T, l *Log, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, l.Append(context.Background(), decision(id)))
	}
}

// filesOf are all files of a log, as a shell would list them.
func filesOf(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(strings.TrimSuffix(path, ".jsonl") + "*.jsonl")
	require.NoError(t, err)
	return files
}

func verifyOne(t *testing.T, path string, opts VerifyOptions) ChainReport {
	t.Helper()
	reports, err := Verify(filesOf(t, path), opts)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	return reports[0]
}

func read(t *testing.T, path string) []Record {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var all []Record
	unread, _, err := Read(f, func(r Record, _ []byte) bool { all = append(all, r); return true })
	require.NoError(t, err)
	require.Zero(t, unread)
	return all
}

func TestRecordsAreOnDiskWhenAppendReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := newLog(t, path, Options{})
	appendAll(t, l, "a", "b")
	all := read(t, path)
	require.Len(t, all, 3)
	assert.Equal(t, []Kind{KindOpen, KindDecision, KindDecision}, []Kind{all[0].Kind, all[1].Kind, all[2].Kind})
	assert.Equal(t, "b", all[2].ID)
	assert.Equal(t, "team-a", all[2].Client)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// slowDisk is a handle that counts its syncs; the first lasts until it is told to
// go on.
type slowDisk struct {
	handle
	syncs      int
	begun, end chan struct{}
}

func (d *slowDisk) Sync() error {
	if d.syncs++; d.syncs == 1 {
		close(d.begun)
		<-d.end
	}
	return d.handle.Sync()
}

// luisgf/infrabroker PR 256: an fsync for each line serialises all requests.
func TestAppendsShareSyncs(t *testing.T) {
	const calls = 64
	l := New(filepath.Join(t.TempDir(), "audit.jsonl"), Options{})
	require.NoError(t, l.Start(context.Background()))
	disk := &slowDisk{handle: l.file.f, begun: make(chan struct{}), end: make(chan struct{})}
	l.file.f = disk
	var all sync.WaitGroup
	all.Go(func() { assert.NoError(t, l.Append(context.Background(), decision("first"))) })
	<-disk.begun
	for i := range calls {
		all.Go(func() { assert.NoError(t, l.Append(context.Background(), decision(fmt.Sprint(i)))) })
	}
	require.Eventually(t, func() bool { return len(l.queue) == calls }, 10*time.Second, time.Millisecond)
	close(disk.end)
	all.Wait()
	assert.LessOrEqual(t, disk.syncs-1, 8)
	require.NoError(t, l.Close())
}

func TestChainGoesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for i := range 3 {
		l := New(path, Options{})
		appendAll(t, l, fmt.Sprint(i))
		require.NoError(t, l.Close())
	}
	report := verifyOne(t, path, VerifyOptions{})
	assert.Empty(t, report.Problems)
	assert.EqualValues(t, 9, report.Records)
	assert.Empty(t, report.Notes)
}

func TestTornRecordIsCutOffAtStart(t *testing.T) {
	for _, torn := range []string{"{", `{"seq":3,"v":1,"kind":"decision","id":"x`, strings.Repeat("\x00", 5000)} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := New(path, Options{})
		appendAll(t, l, "a")
		require.NoError(t, l.Close())
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, append(whole, torn...), 0o600))
		report := verifyOne(t, path, VerifyOptions{})
		assert.Empty(t, report.Problems)
		require.Len(t, report.Notes, 1)
		assert.Contains(t, report.Notes[0], "ends in the middle of a record")

		l = New(path, Options{})
		appendAll(t, l, "b")
		require.NoError(t, l.Close())
		assert.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
		all := read(t, path)
		assert.EqualValues(t, len(torn), all[3].Torn)
		assert.Equal(t, "b", all[4].ID)
	}
}

func TestDamagedFileIsPutAsideAndTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{})
	appendAll(t, l, "a")
	require.NoError(t, l.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(whole, "not a record\n"...), 0o600))

	l = New(path, Options{})
	appendAll(t, l, "b")
	require.NoError(t, l.Close())
	aside, err := filepath.Glob(path + ".damaged-*")
	require.NoError(t, err)
	require.Len(t, aside, 1, "evidence is kept")
	report, err := Verify([]string{path}, VerifyOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, report[0].Problems)
}

func TestSecondProcessIsKeptOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	one, two := newLog(t, path, Options{}), newLog(t, path, Options{})
	require.NoError(t, one.Start(context.Background()))
	err := two.Start(context.Background())
	require.ErrorContains(t, err, "another process writes this audit log")
	require.Error(t, two.Append(context.Background(), decision("a")))
	require.NoError(t, one.Close())
	appendAll(t, two, "b")
	assert.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
}

// kubernetes/kubernetes#108551, percona/percona-server PR 5713: lines lost at
// rotation, and two rotations in one second that overwrote a file.
func TestRotationUnderEightWritersLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{RotateBytes: 4 << 10})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 50 {
				assert.NoError(t, l.Append(context.Background(), decision(fmt.Sprintf("%d-%d", w, i))))
			}
		})
	}
	all.Wait()
	require.NoError(t, l.Close())
	files := filesOf(t, path)
	assert.Greater(t, len(files), 5)
	ids := map[string]bool{}
	for _, f := range files {
		for _, r := range read(t, f) {
			if r.Kind == KindDecision {
				assert.False(t, ids[r.ID], "twice")
				ids[r.ID] = true
			}
		}
	}
	assert.Len(t, ids, 400)
	report := verifyOne(t, path, VerifyOptions{})
	assert.Empty(t, report.Problems)
	assert.Empty(t, report.Notes)

	require.NoError(t, os.Remove(files[2]))
	assert.NotEmpty(t, verifyOne(t, path, VerifyOptions{}).Problems, "a file in the middle is missing")
}

func TestRetentionSaysWhatItRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{RotateBytes: 2 << 10, KeepFiles: 2})
	for i := range 60 {
		appendAll(t, l, fmt.Sprint(i))
	}
	require.NoError(t, l.Close())
	assert.Len(t, filesOf(t, path), 3)
	report := verifyOne(t, path, VerifyOptions{})
	assert.Empty(t, report.Problems)
	require.Len(t, report.Notes, 1)
	assert.Contains(t, report.Notes[0], "removed by retention")

	// The oldest of the rest removed by hand: nobody says so.
	oldest := report.Files[0]
	require.NoError(t, os.Remove(oldest))
	assert.NotEmpty(t, verifyOne(t, path, VerifyOptions{}).Problems)
}

// fullDisk fails after a number of bytes, in the middle of a write, as a disk
// does that is full.
type fullDisk struct {
	handle
	free int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) <= d.free {
		d.free -= len(p)
		return d.handle.Write(p)
	}
	n, _ := d.handle.Write(p[:d.free])
	d.free = 0
	return n, errors.New("no space left on device")
}

func TestFullDiskFailsTheCallAndLeavesTheChainWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{})
	appendAll(t, l, "a")
	l.file.f = &fullDisk{l.file.f, 100}
	require.ErrorContains(t, l.Append(context.Background(), decision("b")), "no space left")
	l.Missed()
	appendAll(t, l, "c") // there is space again
	require.NoError(t, l.Close())
	report := verifyOne(t, path, VerifyOptions{})
	assert.Empty(t, report.Problems)
	require.Len(t, report.Notes, 1)
	assert.Contains(t, report.Notes[0], "1 records could not be written")
	var ids []string
	for _, r := range read(t, path) {
		ids = append(ids, r.ID)
	}
	assert.NotContains(t, ids, "b")
	assert.Contains(t, ids, "c")
}

func TestFolderThatCannotBeWrittenFailsTheCall(t *testing.T) {
	dir := t.TempDir()
	l := newLog(t, filepath.Join(dir, "no", "audit.jsonl"), Options{})
	require.Error(t, l.Append(context.Background(), decision("a")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "no"), 0o700))
	appendAll(t, l, "b")

	l = newLog(t, "/dev/full", Options{})
	require.Error(t, l.Append(context.Background(), decision("a")))
}

func TestAsyncCountsWhatItDrops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{Async: true})
	require.NoError(t, l.Start(context.Background()))
	release, stuck := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.file.f = &stuckDisk{l.file.f, func() { once.Do(func() { close(stuck); <-release }) }}
	appendAll(t, l, "first")
	<-stuck
	for range queued {
		appendAll(t, l, "queued")
	}
	require.ErrorIs(t, l.Append(context.Background(), decision("too many")), ErrFull)
	close(release)
	require.NoError(t, l.Close())
	assert.EqualValues(t, 1, l.Stats().Lost)
	report := verifyOne(t, path, VerifyOptions{})
	assert.Empty(t, report.Problems)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "1 records could not be written")
}

type stuckDisk struct {
	handle
	wait func()
}

func (d *stuckDisk) Write(p []byte) (int, error) {
	d.wait()
	return d.handle.Write(p)
}

// tampered is a log of ten calls, in three files.
func tampered(t *testing.T, key Key) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{RotateBytes: 2 << 10, Key: key})
	for i := range 10 {
		appendAll(t, l, fmt.Sprint(i))
	}
	require.NoError(t, l.Close())
	return path
}

func editLines(t *testing.T, path string, edit func([]string) []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := edit(strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n"))
	require.NoError(t, os.WriteFile(path, []byte(strings.TrimSuffix(strings.Join(lines, ""), "\n")+"\n"), 0o600))
}

func TestVerifyNamesTheFirstBrokenRecord(t *testing.T) {
	for name, c := range map[string]struct {
		edit func([]string) []string
		line int
		what string
	}{
		"a word changed": {func(l []string) []string { l[1] = strings.Replace(l[1], "team-a", "team-b", 1); return l }, 2, "it was changed"},
		"a record cut":   {func(l []string) []string { return append(l[:1], l[2:]...) }, 2, "are missing"},
		"two swapped":    {func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }, 2, "are missing"},
		"one repeated":   {func(l []string) []string { return append(l[:2], l[1:]...) }, 3, "twice"},
		"no record":      {func(l []string) []string { l[1] = "{}\n"; return l }, 2, "not a record"},
		"hash made anew": {func(l []string) []string {
			r, err := open([]byte(strings.TrimSuffix(l[1], "\n")), nil)
			if err != nil {
				return nil
			}
			s := state{Seq: r.Seq - 1, Hash: r.Prev}
			r.Client = "team-b"
			e, _ := encode(r)
			l[1] = string(s.seal(nil, e.body, Key{}))
			return l
		}, 3, "does not follow"},
	} {
		t.Run(name, func(t *testing.T) {
			path := tampered(t, Key{})
			first := verifyOne(t, path, VerifyOptions{}).Files[0]
			editLines(t, first, c.edit)
			problems := verifyOne(t, path, VerifyOptions{}).Problems
			require.NotEmpty(t, problems)
			assert.Equal(t, first, problems[0].File)
			assert.Equal(t, c.line, problems[0].Line)
			assert.Contains(t, problems[0].What, c.what)
		})
	}
}

func TestEndThatIsCutOffIsMissed(t *testing.T) {
	path := tampered(t, Key{})
	report := verifyOne(t, path, VerifyOptions{})
	require.Empty(t, report.Problems)
	editLines(t, path, func(l []string) []string { return l[:len(l)-1] })
	problems := verifyOne(t, path, VerifyOptions{}).Problems
	require.NotEmpty(t, problems, "the head beside the file is further")
	assert.Contains(t, problems[0].What, "missing at the end")

	// The head is gone too: a checkpoint that was noted elsewhere still tells.
	require.NoError(t, os.Remove(headPath(path)))
	require.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
	noted := VerifyOptions{Heads: []Head{{Chain: report.Chain, Seq: report.Last, Hash: report.Hash}}}
	require.NotEmpty(t, verifyOne(t, path, noted).Problems)
}

// The whole log removed while the process was down: the next start does not begin
// anew as if nothing had been.
func TestRemovedLogLeavesAGap(t *testing.T) {
	path := tampered(t, Key{})
	for _, f := range filesOf(t, path) {
		require.NoError(t, os.Remove(f))
	}
	l := New(path, Options{})
	appendAll(t, l, "after")
	require.NoError(t, l.Close())
	report := verifyOne(t, path, VerifyOptions{})
	require.NotEmpty(t, report.Problems)
	assert.Contains(t, report.Problems[0].What, "records 1 to")
}

func TestKeyedChainCannotBeRewritten(t *testing.T) {
	key, err := NewKey(redact.NewSecret(strings.Repeat("k", 32)))
	require.NoError(t, err)
	other, err := NewKey(redact.NewSecret(strings.Repeat("o", 32)))
	require.NoError(t, err)
	path := tampered(t, key)
	require.Empty(t, verifyOne(t, path, VerifyOptions{Keys: []Key{other, key}}).Problems)
	require.NotEmpty(t, verifyOne(t, path, VerifyOptions{Keys: []Key{other}}).Problems)

	// Somebody without the key writes the whole log anew, hashes and all.
	forged := tampered(t, Key{})
	require.Empty(t, verifyOne(t, forged, VerifyOptions{}).Problems)
	require.NotEmpty(t, verifyOne(t, forged, VerifyOptions{Keys: []Key{key}}).Problems)
}

func TestVerifyTellsLogsApart(t *testing.T) {
	reports, err := Verify(append(filesOf(t, tampered(t, Key{})), filesOf(t, tampered(t, Key{}))...), VerifyOptions{})
	require.NoError(t, err)
	require.Len(t, reports, 2)
	for _, r := range reports {
		assert.Empty(t, r.Problems)
	}
}

func FuzzVerify(f *testing.F) {
	s := state{Chain: "0123456789abcdef", Hash: genesis}
	e, err := encode(Record{Kind: KindOpen, Mark: &Mark{Chain: s.Chain, File: 1}})
	require.NoError(f, err)
	line := s.seal(nil, e.body, Key{})
	e, err = encode(decision("a"))
	require.NoError(f, err)
	two := s.seal(line, e.body, Key{})
	f.Add(two)
	f.Add(two[:len(two)-10])
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var whole []Record
		unread, size, err := Read(bytes.NewReader(data), func(r Record, line []byte) bool {
			whole = append(whole, r)
			require.True(t, bytes.HasSuffix(line, []byte(`"}`)))
			return true
		})
		require.NoError(t, err)
		require.LessOrEqual(t, size, int64(len(data)))

		v := &verifier{report: ChainReport{Chain: s.Chain}, files: []part{{"audit.jsonl", 1}}, removed: map[uint64]string{}}
		for in := newLines(bytes.NewReader(data)); ; {
			line, err := in.next()
			if err != nil {
				break
			}
			v.record("audit.jsonl", in.n, line)
		}
		v.begin()
		v.end()
		if len(v.report.Problems) == 0 { // then it is a chain from its beginning, and all of it could be read
			require.LessOrEqual(t, unread, 1, "an incomplete last line")
			for i, r := range whole {
				require.EqualValues(t, i+1, r.Seq)
			}
		}
	})
}

// A queue of large records must not take the memory of the process.
func TestQueueIsBoundedByBytes(t *testing.T) {
	l := New(filepath.Join(t.TempDir(), "audit.jsonl"), Options{Async: true})
	require.NoError(t, l.Start(context.Background()))
	release, stuck := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.file.f = &stuckDisk{l.file.f, func() { once.Do(func() { close(stuck); <-release }) }}
	big := decision("big")
	big.Decision.Subjects = []Subject{{Kind: "code", Text: strings.Repeat("x", 8<<20)}}
	var err error
	n := 0
	for ; err == nil; n++ {
		err = l.Append(context.Background(), big)
	}
	require.ErrorIs(t, err, ErrFull)
	assert.InDelta(t, queuedBytes/(8<<20), n, 2)
	<-stuck
	close(release)
	require.NoError(t, l.Close())
	assert.Zero(t, l.held.Load())
}

// A line that nothing could read again would break the chain for its reader.
func TestRecordTooLargeToReadKeepsItsDigests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{})
	big := decision("big")
	big.Decision.Subjects = []Subject{{Kind: "code", SHA256: "abc", Text: strings.Repeat("\x00", 11<<20)}}
	require.NoError(t, l.Append(context.Background(), big))
	require.NoError(t, l.Close())
	all := read(t, path)
	assert.Equal(t, "abc", all[1].Subjects[0].SHA256)
	assert.True(t, all[1].Subjects[0].Cut)
	assert.NotEmpty(t, big.Decision.Subjects[0].Text)
	assert.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
}
