package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

func byPID(pid uint32) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}}
}

func byTag(tag string) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Tag{Tag: tag}}
}

func aProcess(sandbox, tag, cmd string, args ...string) *process {
	return newProcess(sandbox, &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: cmd, Args: args}, Tag: &tag})
}

func TestRunningProcessesAreKnown(t *testing.T) {
	ps := newProcesses()
	one := aProcess("a", "t", "bash")
	ended := ps.follow("a", 7, one)
	two := aProcess("a", "t", "python3")
	lost := ps.follow("a", 8, two)

	got, trusted := ps.find("a", byPID(7))
	require.Same(t, one, got)
	require.True(t, trusted)
	got, trusted = ps.find("a", byTag("t"))
	require.Same(t, two, got, "of two with one tag, the later")
	require.True(t, trusted)
	_, trusted = ps.find("b", byPID(7))
	require.False(t, trusted, "another sandbox's pid is another process")

	ended(true)
	got, _ = ps.find("a", byPID(7))
	require.Nil(t, got)
	lost(false)
	got, trusted = ps.find("a", byPID(8))
	require.Same(t, two, got)
	require.False(t, trusted, "nobody would tell of its end")

	ps.forget("a")
	got, _ = ps.find("a", byPID(8))
	require.Nil(t, got)
}

// A pid that the system gave to another process must not pass for the old one.
func TestListReplacesWhatWasReused(t *testing.T) {
	ps := newProcesses()
	followed, same, other, gone := aProcess("a", "", "x"), aProcess("a", "", "cat"), aProcess("a", "", "cat"), aProcess("a", "", "cat")
	ps.follow("a", 1, followed)
	for i, p := range []*process{same, other, gone} {
		ps.follow("a", uint32(i)+2, p)(false)
	}
	empty := ""
	ps.listed("a", &processpb.ListResponse{Processes: []*processpb.ProcessInfo{
		{Pid: 1, Config: &processpb.ProcessConfig{Cmd: "y"}},
		{Pid: 2, Config: &processpb.ProcessConfig{Cmd: "cat"}, Tag: &empty},
		{Pid: 3, Config: &processpb.ProcessConfig{Cmd: "bash"}},
		{Pid: 5, Config: &processpb.ProcessConfig{Cmd: "node"}},
	}})
	find := func(pid uint32) *process {
		p, _ := ps.find("a", byPID(pid))
		return p
	}
	require.Same(t, followed, find(1), "an open stream knows better than a list on its way")
	require.Same(t, same, find(2))
	require.NotSame(t, other, find(3))
	require.Equal(t, "bash", find(3).cmd)
	require.False(t, find(3).seen)
	require.Nil(t, find(4))
	require.Equal(t, "node", find(5).cmd)
}

// A reconnected stream makes what envd listed certain. See e2b-dev/E2B#1074.
func TestConnectedProcessIsAskedForOnce(t *testing.T) {
	ps := newProcesses()
	done := ps.follow("a", 5, nil)
	list := &processpb.ListResponse{Processes: []*processpb.ProcessInfo{{Pid: 5, Config: &processpb.ProcessConfig{Cmd: "node"}}}}
	ps.listed("a", list)
	p, trusted := ps.find("a", byPID(5))
	require.NotNil(t, p)
	require.True(t, trusted)
	done(true)
	p, _ = ps.find("a", byPID(5))
	require.Nil(t, p)
}

func TestProcessesAreBounded(t *testing.T) {
	ps := newProcesses()
	for pid := range uint32(processesKept + 10) {
		ps.follow("a", pid+1, aProcess("a", "", "cat"))
	}
	require.Len(t, ps.of("a").order, processesKept)
	require.Len(t, ps.of("a").byPID, processesKept)
	for i := range sandboxesWatched + 10 {
		ps.follow(fmt.Sprint("s", i), 1, aProcess(fmt.Sprint("s", i), "", "cat"))(true)
	}
	require.LessOrEqual(t, ps.sandboxes.Len(), sandboxesWatched)
}

// The pid and the command are learned from Start, as the client asked for it.
func TestStartTellsOfItsProcess(t *testing.T) {
	var known *process
	state := NewState()
	running := make(chan struct{})
	end := make(chan struct{})
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		streamAnswer(w, frame(`{"event":{"start":{"pid":7}}}`))
		close(running)
		<-end
		streamAnswer(w, frame(`{"event":{"end":{"exited":true,"status":"exit status 0"}}}`), endFrame("{}"))
	}, func(cfg *Config) { cfg.State = state })
	done := make(chan answer)
	go func() {
		done <- h.do(t, "POST", "/process.Process/Start", startHeaders(), strings.NewReader(string(frame(
			`{"process":{"cmd":"/bin/bash","args":["-l","-c","python3"]},"tag":"repl","pty":{"size":{"cols":80,"rows":24}}}`))))
	}()
	<-running
	require.Eventually(t, func() bool {
		known, _ = state.processes.find("isbx1", byTag("repl"))
		return known != nil
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, uint32(7), known.pid)
	require.Equal(t, "/bin/bash", known.cmd)
	require.Equal(t, []string{"-l", "-c", "python3"}, known.args)
	require.Equal(t, terminalSize{80, 24}, *known.tty.Load())
	close(end)
	<-done
	require.Eventually(t, func() bool {
		known, _ = state.processes.find("isbx1", byPID(7))
		return known == nil
	}, 5*time.Second, time.Millisecond)
}
