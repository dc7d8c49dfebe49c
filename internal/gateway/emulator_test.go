package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/emulator"
)

// estate is a gateway in front of the emulator, with one sandbox: real processes
// behind the real wire.
type estate struct {
	t testing.TB
	// gateway and direct are the same E2B, with and without the gateway.
	gateway, direct string
	log             *observer.ObservedLogs
	id, token       string
	client          *http.Client
}

func newEstate(t testing.TB, edits ...func(*Config)) *estate {
	t.Helper()
	e, err := emulator.New(emulator.Options{})
	require.NoError(t, err)
	up := httptest.NewServer(e)
	core, log := observer.New(zapcore.DebugLevel)
	g := newGateway(t, up.URL, append([]func(*Config){func(cfg *Config) { cfg.Logger = zap.New(core) }}, edits...)...)
	front := httptest.NewServer(g)
	s := &estate{t: t, gateway: front.URL, direct: up.URL, log: log, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		front.Close()
		require.NoError(t, g.Close())
		require.NoError(t, e.Close())
		up.CloseClientConnections()
		up.Close()
	})

	req, err := http.NewRequestWithContext(t.Context(), "POST", s.gateway+"/v2/sandboxes", strings.NewReader(`{"templateID":"code-interpreter-v1"}`))
	require.NoError(t, err)
	req.Header = headers("X-API-KEY", "e2b_cc", "Content-Type", "application/json")
	resp, err := s.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var made struct {
		SandboxID       string
		EnvdAccessToken string
	}
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&made))
	s.id, s.token = made.SandboxID, made.EnvdAccessToken
	return s
}

func (s *estate) headers(port string) http.Header {
	h := headers("E2b-Sandbox-Id", s.id, "E2b-Sandbox-Port", port)
	if s.token != "" {
		h.Set("X-Access-Token", s.token)
	}
	return h
}

func rpc[Req, Resp any](s *estate, base, method string, msg *Req) (*connect.Client[Req, Resp], *connect.Request[Req]) {
	req := connect.NewRequest(msg)
	for k, v := range s.headers("49983") {
		req.Header()[k] = v
	}
	return connect.NewClient[Req, Resp](s.client, base+"/process.Process/"+method, connect.WithProtoJSON()), req
}

// ended is what a process's stream said in all.
type ended struct {
	pid    uint32
	output string
	end    *processpb.ProcessEvent_EndEvent
	err    error
}

func (s *estate) run(ctx context.Context, base string, start *processpb.StartRequest) ended {
	s.t.Helper()
	client, req := rpc[processpb.StartRequest, processpb.StartResponse](s, base, "Start", start)
	stream, err := client.CallServerStream(ctx, req)
	require.NoError(s.t, err)
	defer stream.Close()
	var got ended
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		got.output += string(event.GetData().GetStdout()) + string(event.GetData().GetPty())
		if event.GetStart() != nil {
			got.pid = event.GetStart().GetPid()
		}
		if event.GetEnd() != nil {
			got.end = event.GetEnd()
		}
	}
	got.err = stream.Err()
	return got
}

func shell(line string) *processpb.StartRequest {
	return &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", line}}}
}

// A wall clock that ends only the stream is worth nothing: the process must be
// gone. See e2b-dev/E2B#500.
func TestWallClockEndsTheProcess(t *testing.T) {
	s := newEstate(t, func(cfg *Config) { cfg.Policy.Limits.WallClock = time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second) // sent as Connect-Timeout-Ms
	defer cancel()
	got := s.run(ctx, s.gateway, shell("exec sleep 49"))
	require.NotZero(t, got.pid)
	require.Error(t, got.err)
	require.NotEqual(t, connect.CodeDeadlineExceeded, connect.CodeOf(got.err), "the client would advise to raise its own timeout")
	require.Contains(t, got.err.Error(), "1s")

	require.Eventually(t, func() bool {
		client, req := rpc[processpb.ListRequest, processpb.ListResponse](s, s.direct, "List", &processpb.ListRequest{})
		resp, err := client.CallUnary(t.Context(), req)
		require.NoError(t, err)
		for _, p := range resp.Msg.GetProcesses() {
			if p.GetPid() == got.pid {
				return false
			}
		}
		return true
	}, 5*time.Second, 20*time.Millisecond, "the process outlived its wall clock")
}

// The gateway holds nothing that says which processes exist: an unknown one is
// for envd to tell. See e2b-dev/E2B#1074.
func TestUnknownProcessIsForTheUpstreamToTell(t *testing.T) {
	s := newEstate(t)
	answers := map[string]error{}
	for name, base := range map[string]string{"gateway": s.gateway, "direct": s.direct} {
		client, req := rpc[processpb.ConnectRequest, processpb.ConnectResponse](s, base, "Connect",
			&processpb.ConnectRequest{Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: 4_000_000}}})
		stream, err := client.CallServerStream(t.Context(), req)
		require.NoError(t, err)
		require.False(t, stream.Receive())
		answers[name] = stream.Err()
		require.NoError(t, stream.Close())
	}
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(answers["gateway"]))
	require.Equal(t, answers["direct"].Error(), answers["gateway"].Error())
}

// Resizing a terminal that has just exited is ordinary; see
// google-gemini/gemini-cli#16880 and e2b-dev/infra PR 2769.
func TestUpdateAfterTheEndIsPassedOn(t *testing.T) {
	s := newEstate(t)
	size := &processpb.PTY{Size: &processpb.PTY_Size{Cols: 203, Rows: 51}}
	got := s.run(t.Context(), s.gateway, &processpb.StartRequest{Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-c", "stty size"}}, Pty: size})
	require.NoError(t, got.err)
	require.Equal(t, "51 203", strings.TrimSpace(got.output), "the size must reach the terminal")

	answers := map[string]error{}
	for name, base := range map[string]string{"gateway": s.gateway, "direct": s.direct} {
		client, req := rpc[processpb.UpdateRequest, processpb.UpdateResponse](s, base, "Update",
			&processpb.UpdateRequest{Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: got.pid}}, Pty: size})
		_, answers[name] = client.CallUnary(t.Context(), req)
	}
	require.Equal(t, fmt.Sprint(answers["direct"]), fmt.Sprint(answers["gateway"]))
	for _, e := range s.log.All() {
		if strings.HasPrefix(e.Message, "without public_domain") {
			continue // of the sandbox, not of this call
		}
		require.LessOrEqual(t, e.Level, zapcore.InfoLevel, e.Message)
	}
}

// What the gateway puts round a command must not show in it: its exit code, its
// arguments and its terminal are its own. See e2b-dev/E2B#412 for why there are
// limits at all.
func TestLimitsDoNotShowInTheCommand(t *testing.T) {
	s := newEstate(t)
	odd := "a 'b' \"c\"\n$HOME `id` \\ \t*"
	for name, start := range map[string]*processpb.StartRequest{
		"a shell":      shell("exit 3"),
		"arguments":    {Process: &processpb.ProcessConfig{Cmd: "/usr/bin/printf", Args: []string{"%s|", odd, "", "-n"}}},
		"no arguments": {Process: &processpb.ProcessConfig{Cmd: "/bin/pwd"}},
		"no such file": {Process: &processpb.ProcessConfig{Cmd: "/no/such/file"}},
		"a signal":     shell("kill -TERM $$"),
		"a terminal":   {Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-c", "test -t 0 && test -t 1 && echo terminal"}}, Pty: &processpb.PTY{Size: &processpb.PTY_Size{Cols: 80, Rows: 24}}},
	} {
		t.Run(name, func(t *testing.T) {
			guarded, plain := s.run(t.Context(), s.gateway, start), s.run(t.Context(), s.direct, start)
			require.NoError(t, guarded.err)
			require.NoError(t, plain.err)
			require.Equal(t, plain.output, guarded.output)
			require.Equal(t, plain.end.String(), guarded.end.String())
		})
	}
}

// Fields the gateway does not know belong to a newer E2B and must survive the
// gateway's edits. See docker/sbx-releases#63.
func TestUnknownFieldsSurviveTheGatewaysEdits(t *testing.T) {
	unknown := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "from the future")
	start := &processpb.StartRequest{
		Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", "ls"}, Envs: map[string]string{"A": "b"}},
		Pty:     &processpb.PTY{Size: &processpb.PTY_Size{Cols: 203, Rows: 51}},
	}
	start.ProtoReflect().SetUnknown(unknown)
	start.Process.ProtoReflect().SetUnknown(unknown)
	start.Pty.Size.ProtoReflect().SetUnknown(unknown)
	b, err := proto.Marshal(start)
	require.NoError(t, err)

	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { streamAnswer(w, endFrame("{}")) }, nil)
	got := h.do(t, "POST", "/process.Process/Start", startHeaders("Content-Type", "application/connect+proto"), strings.NewReader(string(frame(string(b)))))
	require.Equal(t, 200, got.Status, got.Body)
	require.Len(t, h.reached(), 1)
	sent := new(processpb.StartRequest)
	require.NoError(t, proto.Unmarshal(h.reached()[0].Body[5:], sent))
	require.Equal(t, "/bin/sh", sent.Process.Cmd, "limits are put round it")
	args := sent.Process.Args
	sent.Process.Cmd, sent.Process.Args = args[3], args[4:]
	start.Process.Envs["HISTFILE"] = "" // of a terminal
	require.True(t, proto.Equal(start, sent), "%v\n%v", start, sent)
}

// A process goes on when its client leaves, as without the gateway, and can be
// attached to again.
func TestProcessOutlivesItsClient(t *testing.T) {
	s := newEstate(t)
	ctx, leave := context.WithCancel(t.Context())
	client, req := rpc[processpb.StartRequest, processpb.StartResponse](s, s.gateway, "Start", shell("echo ready; read -t 30 < <(sleep 30); echo done"))
	stream, err := client.CallServerStream(ctx, req)
	require.NoError(t, err)
	require.True(t, stream.Receive())
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	require.NotZero(t, pid)
	leave()
	for stream.Receive() {
	}
	require.ErrorIs(t, stream.Err(), context.Canceled)
	_ = stream.Close()

	again, areq := rpc[processpb.ConnectRequest, processpb.ConnectResponse](s, s.gateway, "Connect",
		&processpb.ConnectRequest{Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}}})
	attached, err := again.CallServerStream(t.Context(), areq)
	require.NoError(t, err)
	defer attached.Close()
	require.True(t, attached.Receive())
	require.Equal(t, pid, attached.Msg().GetEvent().GetStart().GetPid())

	kill, kreq := rpc[processpb.SendSignalRequest, processpb.SendSignalResponse](s, s.gateway, "SendSignal",
		&processpb.SendSignalRequest{Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}}, Signal: processpb.Signal_SIGNAL_SIGKILL})
	_, err = kill.CallUnary(t.Context(), kreq)
	require.NoError(t, err)
	var end *processpb.ProcessEvent_EndEvent
	for attached.Receive() {
		if e := attached.Msg().GetEvent().GetEnd(); e != nil {
			end = e
		}
	}
	require.NoError(t, attached.Err())
	require.Equal(t, "signal: killed", end.GetStatus())
}

// Code runs in a context as without the gateway, and its client leaving
// interrupts it.
func TestCodeOfAClientThatLeftIsInterrupted(t *testing.T) {
	s := newEstate(t)
	execute := func(ctx context.Context, code string) (string, error) {
		b, err := json.Marshal(map[string]string{"code": code})
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(ctx, "POST", s.gateway+"/execute", strings.NewReader(string(b)))
		require.NoError(t, err)
		req.Header = s.headers("49999")
		req.Header.Set("Content-Type", "application/json")
		resp, err := s.client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		return string(all), err
	}
	got, err := execute(t.Context(), "x = 41\nprint(x + 1)")
	require.NoError(t, err)
	require.Contains(t, got, `"42\n"`)

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = execute(ctx, "import time\ntime.sleep(60)")
	require.True(t, errors.Is(err, context.DeadlineExceeded), err)
	begin := time.Now()
	got, err = execute(t.Context(), "print(x)")
	require.NoError(t, err)
	require.Contains(t, got, `"41\n"`, "the context keeps its state")
	require.Less(t, time.Since(begin), 20*time.Second, "the abandoned code went on")
}
