package emulator

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// alive lists the sandbox's processes that are not dead already.
func alive(sb *sandbox) []int {
	var pids []int
	for _, pid := range sb.spawn.members(sb.id) {
		if !zombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopped says whether a process is stopped by a signal.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'T'
}

func TestTheEndOfALifetimeEndsProcesses(t *testing.T) {
	l := newLab(t, Options{})
	b := l.newBox()
	_, stream := b.background(command("sleep 1000 & sleep 1000"))
	sb := l.e.lookup(b.id)
	require.Eventually(t, func() bool { return len(sb.spawn.members(b.id)) >= 2 }, soon, tick)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+b.id+"/timeout", `{"timeout":1}`).status)
	for stream.Receive() {
		require.NotNil(t, stream.Msg())
	}
	require.Eventually(t, func() bool { return len(alive(sb)) == 0 }, soon, tick)
}

func TestPauseStopsProcessesAndAColdBootEndsThem(t *testing.T) {
	l := newLab(t, Options{})
	b := l.newBox()
	pid, _ := b.background(command("sleep 1000"))
	sb := l.e.lookup(b.id)
	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+b.id+"/pause", "{}").status)
	require.Eventually(t, func() bool { return stopped(int(pid)) }, soon, tick)
	require.Equal(t, http.StatusCreated, l.api(http.MethodPost, "/v2/sandboxes/"+b.id+"/connect", "{}").status)
	require.Eventually(t, func() bool { return !stopped(int(pid)) }, soon, tick)
	require.Len(t, sb.procs.list(), 1)

	require.Equal(t, http.StatusNoContent, l.api(http.MethodPost, "/sandboxes/"+b.id+"/pause", `{"memory":false}`).status)
	require.Equal(t, http.StatusCreated, l.api(http.MethodPost, "/v2/sandboxes/"+b.id+"/connect", `{"memory":false}`).status)
	require.Empty(t, sb.procs.list())
	require.Equal(t, "back\n", b.run("echo back"))
	require.Contains(t, b.interp(http.MethodPost, "/execute", `{"code":"1+1"}`).body, `"text": "2"`)
}
