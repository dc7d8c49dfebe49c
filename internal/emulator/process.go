package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"google.golang.org/protobuf/proto"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// Sizes of one output event. Source: envd.
const (
	pipeChunk = 32 << 10
	ptyChunk  = 16 << 10
)

// process is one process that envd was asked to start.
type process struct {
	pid    uint32
	tag    *string
	config *pb.ProcessConfig

	cmd    *exec.Cmd
	tty    *os.File
	output broadcast[*pb.ProcessEvent]
	// outputDone is cancelled when the output ended, or need not be read on.
	outputDone context.Context
	stopOutput context.CancelFunc
	exited     chan struct{}
	end        *pb.ProcessEvent_EndEvent // set before exited is closed

	stdinMu sync.Mutex
	stdin   io.WriteCloser
}

// wrapper runs a command as envd does: through a shell that replaces itself,
// so a missing program is exit status 127 and not an error of the call.
const wrapper = `exec "$@"`

// launch starts the process of req. ctx ends the main process only, as a
// deadline does in envd.
//
// The subscription begins before the first byte of output.
func (sb *sandbox) launch(ctx context.Context, u account, req *pb.StartRequest) (*process, *subscription[*pb.ProcessEvent], error) {
	config := req.GetProcess()
	line := strings.Join(append([]string{config.GetCmd()}, config.GetArgs()...), " ")
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", wrapper, "--", config.GetCmd()}, config.GetArgs()...)...)

	cwd, err := expand(config.GetCwd(), u)
	if err != nil {
		return nil, nil, invalid(err)
	}
	if info, err := sb.fs.stat(cwd); err != nil || !info.IsDir() {
		return nil, nil, invalid(fmt.Errorf("cwd '%s' does not exist", cwd))
	}
	env := sb.defaultEnv()
	for k, v := range config.GetEnvs() {
		env[k] = v
	}
	if err := sb.spawn.prepare(cmd, u, cwd, env, req.GetPty() != nil); err != nil {
		return nil, nil, invalid(err)
	}

	outputDone, stop := context.WithCancel(ctx)
	p := &process{
		tag: req.Tag, config: proto.CloneOf(config), cmd: cmd,
		outputDone: outputDone, stopOutput: stop, exited: make(chan struct{}),
	}
	sub := p.output.subscribe()
	if err := sb.spawn.on(func() error { return p.start(req) }); err != nil {
		stop()
		if req.GetPty() != nil {
			size := req.GetPty().GetSize()
			return nil, nil, invalid(fmt.Errorf("error starting pty with command '%s' in dir '%s' with '%d' cols and '%d' rows: %w",
				line, cwd, size.GetCols(), size.GetRows(), err))
		}
		return nil, nil, invalid(fmt.Errorf("error starting process '%s': %w", line, err))
	}
	p.pid = uint32(cmd.Process.Pid) // A pid is positive.
	sb.spawn.started(cmd.Process.Pid)
	return p, sub, nil
}

// start forks, on the sandbox's thread, and begins to read the output.
func (p *process) start(req *pb.StartRequest) error {
	if size := req.GetPty().GetSize(); req.GetPty() != nil {
		tty, err := pty.StartWithSize(p.cmd, windowSize(size))
		if err != nil {
			return err
		}
		p.tty = tty
		go p.pump([]io.Reader{tty}, ptyChunk, func(_ int, b []byte) *pb.ProcessEvent_DataEvent {
			return &pb.ProcessEvent_DataEvent{Output: &pb.ProcessEvent_DataEvent_Pty{Pty: b}}
		})
		return nil
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	// An absent field means stdin is open, for the sake of old SDKs.
	if req.Stdin == nil || req.GetStdin() {
		if p.stdin, err = p.cmd.StdinPipe(); err != nil {
			return err
		}
	}
	go p.pump([]io.Reader{stdout, stderr}, pipeChunk, func(i int, b []byte) *pb.ProcessEvent_DataEvent {
		if i == 0 {
			return &pb.ProcessEvent_DataEvent{Output: &pb.ProcessEvent_DataEvent_Stdout{Stdout: b}}
		}
		return &pb.ProcessEvent_DataEvent{Output: &pb.ProcessEvent_DataEvent_Stderr{Stderr: b}}
	})
	return p.cmd.Start() // Closes the pipes if it fails.
}

// pump sends what the readers give until all have ended.
func (p *process) pump(readers []io.Reader, chunk int, event func(int, []byte) *pb.ProcessEvent_DataEvent) {
	var wg sync.WaitGroup
	for i, r := range readers {
		wg.Go(func() {
			buf := make([]byte, chunk)
			for {
				n, err := r.Read(buf)
				if n > 0 {
					if i > 0 {
						// Two pipes have no common order; if both have data, stdout
						// goes first.
						runtime.Gosched()
					}
					data := event(i, append([]byte(nil), buf[:n]...))
					p.output.send(&pb.ProcessEvent{Event: &pb.ProcessEvent_Data{Data: data}})
				}
				if err != nil { // EOF, EIO of a terminal, or closed by wait.
					return
				}
			}
		})
	}
	wg.Wait()
	p.output.close()
	p.stopOutput()
}

// wait reaps the process once its output has ended or is no longer wanted.
func (p *process) wait() {
	<-p.outputDone.Done()
	err := p.cmd.Wait()
	if p.tty != nil {
		_ = p.tty.Close() // Ends the reader, if it still reads.
	}
	state := p.cmd.ProcessState
	end := &pb.ProcessEvent_EndEvent{
		ExitCode: int32(state.ExitCode()), // An exit code is below 256.
		Exited:   state.Exited(), Status: state.String(),
	}
	if err != nil {
		// The deadline's own error hides how the process ended.
		message := err.Error()
		var exit *exec.ExitError
		if !errors.As(err, &exit) && !state.Success() {
			message = state.String()
		}
		end.Error = &message
	}
	p.end = end
	close(p.exited)
}

func (p *process) signal(sig syscall.Signal) error {
	// The real daemon stops reading output here, so that a child which keeps
	// the pipe open does not keep the call.
	p.stopOutput()
	return p.cmd.Process.Signal(sig)
}

func (p *process) writeStdin(b []byte) error {
	if p.tty != nil {
		return errors.New("tty assigned to process — input should be written to the pty, not the stdin")
	}
	p.stdinMu.Lock()
	defer p.stdinMu.Unlock()
	if p.stdin == nil {
		return errors.New("stdin not enabled or closed")
	}
	if _, err := p.stdin.Write(b); err != nil {
		return fmt.Errorf("error writing to stdin of process '%d': %w", p.pid, err)
	}
	return nil
}

func (p *process) closeStdin() error {
	if p.tty != nil {
		return errors.New("cannot close stdin for PTY process — send Ctrl+D (0x04) instead")
	}
	p.stdinMu.Lock()
	defer p.stdinMu.Unlock()
	if p.stdin == nil {
		return nil
	}
	err := p.stdin.Close()
	p.stdin = nil
	return err
}

func (p *process) writeTTY(b []byte) error {
	if p.tty == nil {
		return errors.New("tty not assigned to process — input should be written to the stdin, not the tty")
	}
	if _, err := p.tty.Write(b); err != nil {
		return fmt.Errorf("error writing to tty of process '%d': %w", p.pid, err)
	}
	return nil
}

func (p *process) resize(size *pb.PTY_Size) error {
	if p.tty == nil {
		return errors.New("tty not assigned to process")
	}
	return pty.Setsize(p.tty, windowSize(size))
}

func windowSize(size *pb.PTY_Size) *pty.Winsize {
	return &pty.Winsize{Cols: uint16(size.GetCols()), Rows: uint16(size.GetRows())} // As envd does.
}

// retention is how long an exited process can still be attached to.
const retention = 30 * time.Second
