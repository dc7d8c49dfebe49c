package audit

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeUntilKilled is the process that TestKilledProcess kills: eight callers that
// say on standard output which records they were told are on disk.
func writeUntilKilled(path string) {
	l := New(path, Options{RotateBytes: 64 << 10})
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := l.Append(context.Background(), decision(id)); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				_, _ = os.Stdout.WriteString(id + "\n")
			}
		}()
	}
	select {}
}

// marmot-protocol/mdk#1014, oddur/yoink PR 97: kill -9 lost the tail of the log.
func TestKilledProcessLosesNoRecordOfAnAnsweredCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	answered := map[string]bool{}
	for range 50 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "AUDIT_TEST_CRASH="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan(), "it writes")
		answered[lines.Text()] = true
		kill := time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			require.NotContains(t, lines.Text(), "error")
			answered[lines.Text()] = true
		}
		require.Error(t, cmd.Wait())
		kill.Stop()
	}
	require.Greater(t, len(answered), 50)

	l := New(path, Options{}) // repairs what the last left
	require.NoError(t, l.Start(context.Background()))
	require.NoError(t, l.Close())
	report := verifyOne(t, path, VerifyOptions{})
	assert.Empty(t, report.Problems)
	for _, f := range filesOf(t, path) {
		for _, r := range read(t, f) {
			delete(answered, r.ID)
		}
	}
	assert.Empty(t, answered, "answered and not recorded")
}
