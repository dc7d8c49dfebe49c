package audit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// faultyDisk fails as disks do: fault says how the next write or sync fails, if it
// does.
type faultyDisk struct {
	handle
	fault func(op string) error
}

func (d *faultyDisk) Write(p []byte) (int, error) {
	if err := d.fault("write"); err != nil {
		n, _ := d.handle.Write(p[:rand.N(len(p))]) // a piece is written before the disk is full
		return n, err
	}
	return d.handle.Write(p)
}

func (d *faultyDisk) Sync() error {
	if err := d.fault("sync"); err != nil {
		return err
	}
	return d.handle.Sync()
}

func (d *faultyDisk) Truncate(size int64) error {
	if err := d.fault("truncate"); err != nil {
		return err
	}
	return d.handle.Truncate(size)
}

// failing makes every file of a log one of a disk that fails.
func failing(l *Log, fault func(op string) error) {
	l.openHandle = func(path string, flag int) (handle, error) {
		if err := fault("open"); err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		f, err := openHandle(path, flag)
		if err != nil {
			return nil, err
		}
		return &faultyDisk{f, fault}, nil
	}
}

// decided are the ids of the decisions on record, each there once.
func decided(t *testing.T, path string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, f := range filesOf(t, path) {
		for _, r := range read(t, f) {
			if r.Kind == KindDecision {
				require.False(t, ids[r.ID], "%s is there twice", r.ID)
				ids[r.ID] = true
			}
		}
	}
	return ids
}

// Whatever a disk refuses, and for however long: no call is answered whose record
// is not on it, and when it works again the log goes on and is whole.
func TestDiskThatFailsFailsTheCallAndNothingElse(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{"full": syscall.ENOSPC, "over quota": syscall.EDQUOT, "read-only": syscall.EROFS, "broken": syscall.EIO} {
		for _, ops := range []string{"write", "sync", "truncate write", "open write", "open sync truncate write"} {
			t.Run(name+": "+ops, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "audit.jsonl")
				var faulty atomic.Bool
				l := New(path, Options{RotateBytes: 2 << 10})
				failing(l, func(op string) error {
					if faulty.Load() && strings.Contains(ops, op) {
						return errno
					}
					return nil
				})
				want := map[string]bool{}
				for round := range 3 {
					for i := range 10 {
						id := fmt.Sprint(round, "-", i)
						appendAll(t, l, id)
						want[id] = true
					}
					faulty.Store(true)
					for i := range 3 {
						require.ErrorIs(t, l.Append(context.Background(), decision(fmt.Sprint(round, "-failed-", i))), errno)
						l.Missed()
					}
					faulty.Store(false)
				}
				appendAll(t, l, "last")
				require.NoError(t, l.Close())
				report := verifyOne(t, path, VerifyOptions{})
				assert.Empty(t, report.Problems)
				assert.Contains(t, strings.Join(report.Notes, "\n"), "could not be written")
				got := decided(t, path)
				for id := range want {
					assert.True(t, got[id], id)
				}
			})
		}
	}
}

// Beside the log there are its lock, its head and the files that were rotated away:
// each can be what cannot be written.
func TestFileBesideTheLogThatCannotBeWrittenFailsTheCall(t *testing.T) {
	for name, blocked := range map[string]func(path string) string{
		"the log itself": func(path string) string { return path },
		"its lock":       func(path string) string { return path + ".lock" },
		"its new head":   func(path string) string { return headPath(path) + ".new" },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			require.NoError(t, os.Mkdir(blocked(path), 0o700)) // a folder cannot be written as a file, not even by root
			l := New(path, Options{})
			require.Error(t, l.Append(context.Background(), decision("a")))
			l.Missed()
			require.NoError(t, os.Remove(blocked(path)))
			appendAll(t, l, "b")
			require.NoError(t, l.Close())
			assert.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
			assert.True(t, decided(t, path)["b"])
		})
	}
}

// kubernetes/kubernetes#108551: eight callers, a rotation every few records, and a
// disk that fails every so often, at any point of it: what was answered is there,
// once, and the chain is whole.
func TestRotationUnderEightWritersOnADiskThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{RotateBytes: 4 << 10})
	var faults atomic.Int32
	failing(l, func(string) error {
		if rand.N(12) == 0 {
			faults.Add(1)
			return syscall.ENOSPC
		}
		return nil
	})
	var mu sync.Mutex
	answered := map[string]bool{}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 60 {
				id := fmt.Sprint(w, "-", i)
				if l.Append(context.Background(), decision(id)) != nil {
					l.Missed()
					continue
				}
				mu.Lock()
				answered[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.NoError(t, l.Close())
	again := New(path, Options{}) // if the disk failed at the end
	require.NoError(t, again.Start(context.Background()))
	require.NoError(t, again.Close())

	require.Positive(t, faults.Load())
	require.Greater(t, len(answered), 50)
	assert.Greater(t, len(filesOf(t, path)), 3)
	assert.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
	got := decided(t, path)
	for id := range answered {
		assert.True(t, got[id], "%s was answered and is not on record", id)
	}
}

// writeUntilFull is the process of TestFileThatReachesTheSystemsLimit: the system
// cuts its writes off in the middle, as a full disk does.
func writeUntilFull(path string) int {
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10_000, Max: 10_000}); err != nil {
		fmt.Println("error", err)
		return 1
	}
	l := New(path, Options{})
	failed := 0
	for i := 0; failed < 20; i++ {
		id := fmt.Sprint(i)
		if l.Append(context.Background(), decision(id)) == nil {
			fmt.Println(id)
		} else {
			failed++
		}
	}
	_ = l.Close() // it cannot be closed in order
	return 0
}

// The same against the system itself, not a disk of the test's.
func TestFileThatReachesTheSystemsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST_FULL="+path)
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	answered := strings.Fields(string(out))
	require.Greater(t, len(answered), 5)
	require.NotContains(t, answered, "error")

	l := New(path, Options{}) // there is space again
	appendAll(t, l, "after")
	require.NoError(t, l.Close())
	assert.Empty(t, verifyOne(t, path, VerifyOptions{}).Problems)
	got := decided(t, path)
	for _, id := range append(answered, "after") {
		assert.True(t, got[id], "%s was answered and is not on record", id)
	}
}
