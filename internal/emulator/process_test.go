package emulator

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

func TestHowACommandEnds(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	text := func(s string) *string { return &s }
	for _, tt := range []struct {
		name, line     string
		stdout, stderr string
		end            *pb.ProcessEvent_EndEvent
	}{
		{"success", "echo out; echo err >&2", "out\n", "err\n", &pb.ProcessEvent_EndEvent{Exited: true, Status: "exit status 0"}},
		{"failure", "exit 3", "", "", &pb.ProcessEvent_EndEvent{ExitCode: 3, Exited: true, Status: "exit status 3", Error: text("exit status 3")}},
		{"a signal", "kill -SEGV $$", "", "", &pb.ProcessEvent_EndEvent{ExitCode: -1, Status: "signal: segmentation fault", Error: text("signal: segmentation fault")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := b.start(command(tt.line))
			require.NoError(t, f.err)
			require.Equal(t, tt.stdout, f.stdout)
			require.Equal(t, tt.stderr, f.stderr)
			require.Equal(t, tt.end.String(), f.end.String())
		})
	}
	missing := b.start(&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "/no/such/program"}})
	require.NoError(t, missing.err, "a missing program is not an error of the call")
	require.EqualValues(t, 127, missing.end.GetExitCode())
}

func TestStartRefusals(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	nowhere := "/nowhere"
	for _, tt := range []struct {
		name    string
		req     *pb.StartRequest
		headers []string
		code    connect.Code
		message string
	}{
		{"a missing folder", &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "true", Cwd: &nowhere}}, nil, connect.CodeInvalidArgument, "cwd '/nowhere' does not exist"},
		{"NUL in an argument", &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "echo", Args: []string{"a\x00b"}}}, nil, connect.CodeInvalidArgument, "error starting process 'echo a\x00b': fork/exec /bin/sh: invalid argument"},
		{"an unknown user", command("true"), []string{"Authorization", "Basic Ym9iOg=="}, connect.CodeUnauthenticated, "invalid username: 'bob'"},
		{"a timeout that is no number", command("true"), []string{"Connect-Timeout-Ms", "x"}, connect.CodeInvalidArgument, "invalid syntax"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := b.start(tt.req, tt.headers...)
			require.Equal(t, tt.code, connect.CodeOf(f.err), "%v", f.err)
			require.ErrorContains(t, f.err, tt.message)
		})
	}
	wrong := box{b.lab, b.id, "ea_wrong", ""}
	a := wrong.envd(http.MethodPost, "/process.Process/List", "{}", "Content-Type", "application/json")
	require.Equal(t, http.StatusUnauthorized, a.status)
	require.JSONEq(t, `{"code":401,"message":"unauthorized access, please provide a valid access token or method signing if supported"}`, a.body)
}

func TestEnvironmentIsScrubbed(t *testing.T) {
	t.Setenv("EMULATOR_SECRET", "of the machine")
	l := newLab(t, Options{})
	b := l.create("/v2/sandboxes", `{"templateID":"base","envVars":{"G":"global","O":"old"}}`)
	req := command(`echo "$EMULATOR_SECRET|$G|$O|$P|$E2B_SANDBOX|$E2B_SANDBOX_ID|$USER"`)
	req.Process.Envs = map[string]string{"O": "new", "P": "own"}
	require.Equal(t, "|global|new|own|true|"+b.id+"|user\n", b.start(req).stdout)
	require.JSONEq(t, `{"G":"global","O":"old","E2B_SANDBOX":"true","E2B_SANDBOX_ID":"`+b.id+`","E2B_TEMPLATE_ID":"base"}`,
		b.envd(http.MethodGet, "/envs", "").body)
}

func TestStdinTagListAndSignals(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	req := &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "cat", Envs: map[string]string{"A": "1"}}}
	tag := "mine"
	req.Tag = &tag
	pid, stream := b.background(req)
	list, err := unary[pb.ListRequest, pb.ListResponse](b, "/process.Process/List", &pb.ListRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetProcesses(), 1)
	require.Equal(t, pid, list.GetProcesses()[0].GetPid())
	require.Equal(t, "mine", list.GetProcesses()[0].GetTag())
	require.Equal(t, map[string]string{"A": "1"}, list.GetProcesses()[0].GetConfig().GetEnvs())

	byTag := &pb.ProcessSelector{Selector: &pb.ProcessSelector_Tag{Tag: tag}}
	_, err = unary[pb.SendInputRequest, pb.SendInputResponse](b, "/process.Process/SendInput",
		&pb.SendInputRequest{Process: byTag, Input: &pb.ProcessInput{Input: &pb.ProcessInput_Stdin{Stdin: []byte("hi\n")}}})
	require.NoError(t, err)
	require.True(t, stream.Receive())
	require.Equal(t, "hi\n", string(stream.Msg().GetEvent().GetData().GetStdout()))
	_, err = unary[pb.SendInputRequest, pb.SendInputResponse](b, "/process.Process/SendInput",
		&pb.SendInputRequest{Process: byTag, Input: &pb.ProcessInput{Input: &pb.ProcessInput_Pty{Pty: []byte("x")}}})
	require.Equal(t, connect.CodeInternal, connect.CodeOf(err))

	_, err = unary[pb.CloseStdinRequest, pb.CloseStdinResponse](b, "/process.Process/CloseStdin", &pb.CloseStdinRequest{Process: byTag})
	require.NoError(t, err)
	require.True(t, stream.Receive())
	require.True(t, stream.Msg().GetEvent().GetEnd().GetExited())

	late := connect.NewClient[pb.ConnectRequest, pb.ConnectResponse](b.client, b.url+"/process.Process/Connect")
	again, err := late.CallServerStream(t.Context(), address(b, &pb.ConnectRequest{Process: byTag}))
	require.NoError(t, err)
	var f finished
	for again.Receive() {
		f.take(again.Msg().GetEvent())
	}
	require.NoError(t, again.Close())
	require.Equal(t, pid, f.pid, "an ended process can be attached to for a while")
	require.True(t, f.end.GetExited())

	nobody := &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: 4194305}}
	_, err = unary[pb.SendSignalRequest, pb.SendSignalResponse](b, "/process.Process/SendSignal", &pb.SendSignalRequest{Process: nobody, Signal: pb.Signal_SIGNAL_SIGKILL})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	require.ErrorContains(t, err, "process with pid 4194305 not found")
}

func TestStreamInput(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	pid, stream := b.background(&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "cat"}})
	client := connect.NewClient[pb.StreamInputRequest, pb.StreamInputResponse](b.client, b.url+"/process.Process/StreamInput", connect.WithProtoJSON())
	in := client.CallClientStream(t.Context())
	for i, h := 0, b.headers("49983"); i < len(h); i += 2 {
		in.RequestHeader().Set(h[i], h[i+1])
	}
	selector := &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: pid}}
	require.NoError(t, in.Send(&pb.StreamInputRequest{Event: &pb.StreamInputRequest_Start{Start: &pb.StreamInputRequest_StartEvent{Process: selector}}}))
	require.NoError(t, in.Send(&pb.StreamInputRequest{Event: &pb.StreamInputRequest_Keepalive{Keepalive: &pb.StreamInputRequest_KeepAlive{}}}))
	require.NoError(t, in.Send(&pb.StreamInputRequest{Event: &pb.StreamInputRequest_Data{Data: &pb.StreamInputRequest_DataEvent{
		Input: &pb.ProcessInput{Input: &pb.ProcessInput_Stdin{Stdin: []byte("typed\n")}},
	}}}))
	_, err := in.CloseAndReceive()
	require.NoError(t, err)
	require.True(t, stream.Receive())
	require.Equal(t, "typed\n", string(stream.Msg().GetEvent().GetData().GetStdout()))

	// Data before start makes the real handler panic, and envd survives.
	a := b.envd(http.MethodPost, "/process.Process/StreamInput", frame(0, `{"data":{"input":{"stdin":"eA=="}}}`), "Content-Type", "application/connect+json")
	require.Equal(t, http.StatusBadGateway, a.status)
	require.Contains(t, a.body, "port is not open")
	require.True(t, b.exists())
}

func TestPTY(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	req := &pb.StartRequest{
		Process: &pb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"--norc", "-i"}, Envs: map[string]string{"TERM": "dumb", "PS1": "$ "}},
		Pty:     &pb.PTY{Size: &pb.PTY_Size{Cols: 80, Rows: 24}},
	}
	pid, stream := b.background(req)
	selector := &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: pid}}
	_, err := unary[pb.UpdateRequest, pb.UpdateResponse](b, "/process.Process/Update",
		&pb.UpdateRequest{Process: selector, Pty: &pb.PTY{Size: &pb.PTY_Size{Cols: 120, Rows: 40}}})
	require.NoError(t, err)
	_, err = unary[pb.CloseStdinRequest, pb.CloseStdinResponse](b, "/process.Process/CloseStdin", &pb.CloseStdinRequest{Process: selector})
	require.ErrorContains(t, err, "cannot close stdin for PTY process")
	_, err = unary[pb.SendInputRequest, pb.SendInputResponse](b, "/process.Process/SendInput",
		&pb.SendInputRequest{Process: selector, Input: &pb.ProcessInput{Input: &pb.ProcessInput_Pty{Pty: []byte("stty size; exit 7\n")}}})
	require.NoError(t, err)
	var f finished
	for stream.Receive() {
		f.take(stream.Msg().GetEvent())
	}
	require.Contains(t, f.pty, "40 120")
	require.EqualValues(t, 7, f.end.GetExitCode())
	_, err = unary[pb.UpdateRequest, pb.UpdateResponse](b, "/process.Process/Update", &pb.UpdateRequest{Process: selector})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

func TestDeadlineKillsTheMainProcessOnly(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	f := b.start(command("(sleep 1; echo child > child) & echo begun; sleep 1000; echo late > late"), "Connect-Timeout-Ms", "300")
	require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(f.err), "%v", f.err)
	require.Equal(t, "begun\n", f.stdout)
	require.Nil(t, f.end)
	require.Eventually(t, func() bool { _, err := b.stat("child"); return err == nil }, soon, tick, "a child goes on")
	_, err := b.stat("late")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

func TestADeadlineOfZeroRunsUnseenWithoutLimit(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for _, ms := range []string{"0", "-5"} {
		body := frame(0, `{"process":{"cmd":"/bin/sh","args":["-c","sleep 0.2; echo ran > ran`+ms+`"]},"stdin":false}`)
		a := b.envd(http.MethodPost, "/process.Process/Start", body, "Content-Type", "application/connect+json", "Connect-Timeout-Ms", ms)
		require.Contains(t, a.body, `"code":"deadline_exceeded"`)
		require.Eventually(t, func() bool { _, err := b.stat("ran" + ms); return err == nil }, soon, tick)
	}
}

func TestDisconnectDoesNotKillAndOutputIsDropped(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	ctx, cancel := context.WithCancel(t.Context())
	stream := b.stream(ctx, command("while [ ! -e go ]; do echo noise; sleep 0.01; done; echo heard; echo done > finished"))
	require.True(t, stream.Receive())
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	cancel()
	_ = stream.Close()
	client := connect.NewClient[pb.ConnectRequest, pb.ConnectResponse](b.client, b.url+"/process.Process/Connect")
	again, err := client.CallServerStream(t.Context(), address(b, &pb.ConnectRequest{Process: &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: pid}}}))
	require.NoError(t, err)
	b.run("touch go")
	var f finished
	for again.Receive() {
		f.take(again.Msg().GetEvent())
	}
	require.NoError(t, again.Close())
	require.True(t, strings.HasSuffix(f.stdout, "heard\n"))
	require.True(t, f.end.GetExited())
	_, err = b.stat("finished")
	require.NoError(t, err)
}

func TestKeepalives(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	f := b.start(command("sleep 1.5"), "Keepalive-Ping-Interval", "1")
	require.NoError(t, f.err)
	require.Equal(t, 1, f.keepalives)
}

// The real daemon dies of an interval that is not positive.
func TestAKeepaliveOfZeroEndsEnvd(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	_, other := b.background(command("sleep 1000"))
	f := b.start(command("sleep 1000"), "Keepalive-Ping-Interval", "0")
	require.Error(t, f.err)
	for other.Receive() {
		require.NotNil(t, other.Msg())
	}
	a := b.envd(http.MethodGet, "/health", "")
	require.Equal(t, http.StatusBadGateway, a.status)
	require.Contains(t, a.body, "port is not open")
	require.Equal(t, http.StatusOK, b.interp(http.MethodGet, "/health", "").status)
}

func TestBigOutputArrivesWhole(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	const size = 8 << 20
	f := b.start(command("head -c 8388608 /dev/zero | tr '\\0' x"))
	require.NoError(t, f.err)
	require.Len(t, f.stdout, size)
	require.Equal(t, size, strings.Count(f.stdout, "x"))
}

func TestKillAndTerminate(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	for signal, status := range map[pb.Signal]string{pb.Signal_SIGNAL_SIGKILL: "signal: killed", pb.Signal_SIGNAL_SIGTERM: "signal: terminated"} {
		pid, stream := b.background(command("sleep 1000"))
		selector := &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: pid}}
		_, err := unary[pb.SendSignalRequest, pb.SendSignalResponse](b, "/process.Process/SendSignal", &pb.SendSignalRequest{Process: selector, Signal: signal})
		require.NoError(t, err)
		var f finished
		for stream.Receive() {
			f.take(stream.Msg().GetEvent())
		}
		require.Equal(t, status, f.end.GetStatus())
		require.EqualValues(t, -1, f.end.GetExitCode())
		_, err = unary[pb.SendSignalRequest, pb.SendSignalResponse](b, "/process.Process/SendSignal", &pb.SendSignalRequest{Process: selector})
		require.Error(t, err)
	}
}

func TestStreamingIsNotBuffered(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	_, stream := b.background(command("echo first; sleep 1000"))
	got := make(chan string, 1)
	go func() {
		if stream.Receive() {
			got <- string(stream.Msg().GetEvent().GetData().GetStdout())
		}
	}()
	select {
	case line := <-got:
		require.Equal(t, "first\n", line)
	case <-time.After(soon):
		t.Fatal("the first line did not arrive while the command runs")
	}
}

// A sandbox that ends does not tell how its processes ended: the connection is
// cut, as a virtual machine's is.
func TestTheEndOfASandboxCutsItsStreams(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	_, stream := b.background(command("sleep 1000"))
	require.Equal(t, http.StatusNoContent, b.api(http.MethodDelete, "/sandboxes/"+b.id, "").status)
	var f finished
	for stream.Receive() {
		f.take(stream.Msg().GetEvent())
	}
	require.Nil(t, f.end)
	require.ErrorContains(t, stream.Err(), "EOF")
	require.False(t, b.exists())
}
