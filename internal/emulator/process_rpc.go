package emulator

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

func (sb *sandbox) processHandlers(opts ...connect.HandlerOption) map[string]http.Handler {
	const service = "/process.Process/"
	return map[string]http.Handler{
		service + "List":        connect.NewUnaryHandler(service+"List", sb.listProcesses, opts...),
		service + "Start":       connect.NewServerStreamHandler(service+"Start", sb.startProcess, opts...),
		service + "Connect":     connect.NewServerStreamHandler(service+"Connect", sb.connectProcess, opts...),
		service + "Update":      connect.NewUnaryHandler(service+"Update", sb.updateProcess, opts...),
		service + "SendInput":   connect.NewUnaryHandler(service+"SendInput", sb.sendInput, opts...),
		service + "StreamInput": connect.NewClientStreamHandler(service+"StreamInput", sb.streamInput, opts...),
		service + "CloseStdin":  connect.NewUnaryHandler(service+"CloseStdin", sb.closeStdin, opts...),
		service + "SendSignal":  connect.NewUnaryHandler(service+"SendSignal", sb.sendSignal, opts...),
	}
}

func invalid(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }

func (sb *sandbox) startProcess(ctx context.Context, req *connect.Request[pb.StartRequest], stream *connect.ServerStream[pb.StartResponse]) error {
	u, err := userOf(ctx)
	if err != nil {
		return err
	}
	// The header counts for the process too; 0 and below mean no limit for it,
	// although they end the call at once.
	var limit time.Duration
	if h := req.Header().Get("Connect-Timeout-Ms"); h != "" {
		ms, err := strconv.Atoi(h)
		if err != nil {
			return invalid(err)
		}
		limit = time.Duration(ms) * time.Millisecond
	}
	// A client that goes away does not end the process.
	procCtx, cancel := context.WithoutCancel(ctx), context.CancelFunc(func() {})
	if limit > 0 {
		procCtx, cancel = context.WithTimeout(procCtx, limit)
	}
	p, sub, err := sb.launch(procCtx, u, req.Msg)
	if err != nil {
		cancel()
		return err
	}
	sb.procs.add(p, cancel)
	defer p.output.unsubscribe(sub)
	return sb.follow(ctx, p, sub, req.Header(), func(e *pb.ProcessEvent) error {
		return stream.Send(&pb.StartResponse{Event: e})
	})
}

func (sb *sandbox) connectProcess(ctx context.Context, req *connect.Request[pb.ConnectRequest], stream *connect.ServerStream[pb.ConnectResponse]) error {
	p, err := sb.procs.find(req.Msg.GetProcess(), true)
	if err != nil {
		return err
	}
	sub := p.output.subscribe()
	defer p.output.unsubscribe(sub)
	return sb.follow(ctx, p, sub, req.Header(), func(e *pb.ProcessEvent) error {
		return stream.Send(&pb.ConnectResponse{Event: e})
	})
}

// follow streams a process: start, output, keepalives while it is silent, end.
func (sb *sandbox) follow(ctx context.Context, p *process, sub *subscription[*pb.ProcessEvent], header http.Header, send func(*pb.ProcessEvent) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := send(&pb.ProcessEvent{Event: &pb.ProcessEvent_Start{Start: &pb.ProcessEvent_StartEvent{Pid: p.pid}}}); err != nil {
		return err
	}
	interval := sb.keepalive(header)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for values := sub.values; values != nil; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sb.gone:
			sb.abortIfGone()
		case <-ticker.C:
			if err := send(&pb.ProcessEvent{Event: &pb.ProcessEvent_Keepalive{Keepalive: &pb.ProcessEvent_KeepAlive{}}}); err != nil {
				return err
			}
		case e, ok := <-values:
			if !ok {
				values = nil
				break
			}
			if err := send(e); err != nil {
				return err
			}
			ticker.Reset(interval)
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.exited:
	}
	sb.abortIfGone()
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // The deadline ended it; its end is not told.
		return ctx.Err()
	}
	if err := send(&pb.ProcessEvent{Event: &pb.ProcessEvent_End{End: p.end}}); err != nil {
		return err
	}
	return ctx.Err()
}

const defaultKeepalive = 90 * time.Second

// keepalive reads the interval a client asked for. One that is not positive
// ends envd, as it does the real one, and cuts the connection.
func (sb *sandbox) keepalive(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Keepalive-Ping-Interval"))
	if err != nil {
		return defaultKeepalive
	}
	if seconds <= 0 {
		sb.crashEnvd()
		panic(http.ErrAbortHandler)
	}
	return time.Duration(seconds) * time.Second
}

func (sb *sandbox) listProcesses(context.Context, *connect.Request[pb.ListRequest]) (*connect.Response[pb.ListResponse], error) {
	return connect.NewResponse(&pb.ListResponse{Processes: sb.procs.list()}), nil
}

func (sb *sandbox) updateProcess(_ context.Context, req *connect.Request[pb.UpdateRequest]) (*connect.Response[pb.UpdateResponse], error) {
	p, err := sb.procs.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if req.Msg.GetPty() != nil {
		if err := p.resize(req.Msg.GetPty().GetSize()); err != nil {
			return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("error resizing tty: %w", err))
		}
	}
	return connect.NewResponse(&pb.UpdateResponse{}), nil
}

func handleInput(p *process, in *pb.ProcessInput) error {
	switch data := in.GetInput().(type) {
	case *pb.ProcessInput_Pty:
		if err := p.writeTTY(data.Pty); err != nil {
			return connect.NewError(connect.CodeInternal, fmt.Errorf("error writing to tty: %w", err))
		}
	case *pb.ProcessInput_Stdin:
		if err := p.writeStdin(data.Stdin); err != nil {
			return connect.NewError(connect.CodeInternal, fmt.Errorf("error writing to stdin: %w", err))
		}
	default:
		return connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid input type %T", in.GetInput()))
	}
	return nil
}

func (sb *sandbox) sendInput(_ context.Context, req *connect.Request[pb.SendInputRequest]) (*connect.Response[pb.SendInputResponse], error) {
	p, err := sb.procs.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if err := handleInput(p, req.Msg.GetInput()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.SendInputResponse{}), nil
}

func (sb *sandbox) streamInput(_ context.Context, stream *connect.ClientStream[pb.StreamInputRequest]) (*connect.Response[pb.StreamInputResponse], error) {
	var p *process
	for stream.Receive() {
		switch e := stream.Msg().GetEvent().(type) {
		case *pb.StreamInputRequest_Start:
			found, err := sb.procs.find(e.Start.GetProcess(), false)
			if err != nil {
				return nil, err
			}
			p = found
		case *pb.StreamInputRequest_Data:
			if p == nil {
				panic(envdPanic{}) // As the real handler does, on a nil process.
			}
			if err := handleInput(p, e.Data.GetInput()); err != nil {
				return nil, err
			}
		case *pb.StreamInputRequest_Keepalive:
		default:
			return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid event type %T", e))
		}
	}
	if err := stream.Err(); err != nil {
		return nil, connect.NewError(connect.CodeUnknown, fmt.Errorf("error streaming input: %w", err))
	}
	return connect.NewResponse(&pb.StreamInputResponse{}), nil
}

func (sb *sandbox) closeStdin(_ context.Context, req *connect.Request[pb.CloseStdinRequest]) (*connect.Response[pb.CloseStdinResponse], error) {
	p, err := sb.procs.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if err := p.closeStdin(); err != nil {
		return nil, connect.NewError(connect.CodeUnknown, fmt.Errorf("error closing stdin: %w", err))
	}
	return connect.NewResponse(&pb.CloseStdinResponse{}), nil
}

func (sb *sandbox) sendSignal(_ context.Context, req *connect.Request[pb.SendSignalRequest]) (*connect.Response[pb.SendSignalResponse], error) {
	p, err := sb.procs.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	var sig syscall.Signal
	switch req.Msg.GetSignal() {
	case pb.Signal_SIGNAL_SIGKILL:
		sig = syscall.SIGKILL
	case pb.Signal_SIGNAL_SIGTERM:
		sig = syscall.SIGTERM
	default:
		return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid signal: %s", req.Msg.GetSignal()))
	}
	if err := p.signal(sig); err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("error sending signal: %w", err))
	}
	return connect.NewResponse(&pb.SendSignalResponse{}), nil
}
