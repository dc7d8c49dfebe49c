package envd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// kernelProcess starts a program the way Jupyter starts a kernel: with its
// connection file among the arguments, under a server that goes by Jupyter's name.
func kernelProcess(t *testing.T, id, script string) (pid string) {
	t.Helper()
	dir := t.TempDir()
	server := filepath.Join(dir, "jupyter-server")
	require.NoError(t, os.Symlink("/bin/sh", server))
	cmd := exec.Command(server, "-c", `sh -c "$1" kernel-launcher -f "$2" & echo $!; wait`, "server", script, filepath.Join(dir, "kernel-"+id+".json"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	line := make([]byte, 32)
	n, err := out.Read(line)
	require.NoError(t, err)
	pid = strings.TrimSpace(string(line[:n]))
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with what it started
		_ = cmd.Wait()
	})
	return pid
}

// runOwn runs a request of the gateway's own on this machine.
func runOwn(t *testing.T, start *processpb.StartRequest) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(start.GetProcess().GetCmd(), start.GetProcess().GetArgs()...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

func dataLimit(t *testing.T, pid string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", pid, "limits"))
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max data size"); ok {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

func TestKernelsAndTheirServerAreLimited(t *testing.T) {
	pid := kernelProcess(t, "11111111-aaaa-4bbb-8ccc-000000000001", "sleep 600; :")
	other := kernelProcess(t, "11111111-aaaa-4bbb-8ccc-000000000002", "sleep 600; :")
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	require.NoError(t, err)
	server := strings.Fields(string(stat))[3]

	ids := []string{"11111111-aaaa-4bbb-8ccc-000000000001", "11111111-aaaa-4bbb-8ccc-00000000000f", ".*"}
	limited := LimitedKernels([]byte(runOwn(t, LimitKernels(512<<20, ids))))
	require.Equal(t, ids[:1], limited)
	require.Equal(t, "536870912", dataLimit(t, pid))
	require.Equal(t, "536870912", dataLimit(t, server), "what it starts later must have the limit from its start")
	require.Equal(t, "unlimited", dataLimit(t, other))

	runOwn(t, LimitKernels(1<<30, ids))
	require.Equal(t, "536870912", dataLimit(t, pid), "a lower limit stays")
}

func TestKernelCPUCountsWhatAKernelStarted(t *testing.T) {
	const busy, idle = "22222222-aaaa-4bbb-8ccc-000000000001", "22222222-aaaa-4bbb-8ccc-000000000002"
	kernelProcess(t, busy, "sh -c 'while :; do :; done' & sleep 600; :")
	kernelProcess(t, idle, "sleep 600; :")
	require.Eventually(t, func() bool {
		times, err := KernelCPUTimes([]byte(runOwn(t, KernelCPU([]string{busy, idle, "22222222-aaaa-4bbb-8ccc-00000000000f"}))))
		require.NoError(t, err)
		require.Len(t, times, 2)
		require.Less(t, times[idle], 100*time.Millisecond)
		return times[busy] > 200*time.Millisecond
	}, 20*time.Second, 10*time.Millisecond)
}

func TestOwnRunsAreHidden(t *testing.T) {
	config := func(start *processpb.StartRequest) *processpb.ProcessInfo {
		return &processpb.ProcessInfo{Config: start.GetProcess()}
	}
	theirs := &processpb.ProcessInfo{Config: &processpb.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", "true", "--"}}}
	list := &processpb.ListResponse{Processes: []*processpb.ProcessInfo{
		config(KillTree(NewMark())), theirs, config(LimitKernels(1, nil)), config(KernelCPU([]string{"x"})),
	}}
	require.True(t, hideOwnRuns(list))
	require.Equal(t, []*processpb.ProcessInfo{theirs}, list.GetProcesses())
}
