// Package demo shows the gateway at work without an account, a key or a
// network: an emulated E2B, a gateway in front of it, and a client that tries
// harmless and harmful things through the gateway and checks what came of each.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// APIKey is the key the demo's clients use. The emulator takes any; this one
// has the form that older SDKs insist on.
const APIKey = "e2b_00000000000000000000000000000000000000de"

// Options says what Run does.
type Options struct {
	// Gateway builds the gateway under demonstration: the static guard, enforce,
	// no key and no network. The function it returns closes it.
	Gateway func(Settings) (http.Handler, func() error, error)
	// Serve keeps emulator and gateway up until the context ends, and prints the
	// variables that point an SDK at them.
	Serve bool
	// Command is run with those variables set, instead of the built-in scenario.
	Command []string
}

// Settings is what a demo's gateway differs in from the default configuration.
type Settings struct {
	// Upstream is the emulator: control plane and data plane.
	Upstream *url.URL
	// Limits are small, so that reaching them takes seconds.
	Limits policy.Limits
	// Logger takes the decision lines.
	Logger *zap.Logger
}

// limits lets the demo reach each limit within seconds.
var limits = policy.Limits{
	LifetimeDefault:     5 * time.Minute,
	LifetimeMax:         time.Hour,
	WallClock:           3 * time.Second,
	BackgroundWallClock: time.Minute,
	CPUSeconds:          1,
	MemoryBytes:         512 << 20,
	OutputBytes:         1 << 20,
}

// ErrExpectations says that something did not come out as the table expects.
var ErrExpectations = errors.New("not everything came out as expected")

// Run starts emulator and gateway on free loopback ports and does what opts
// says. The built-in scenario returns ErrExpectations unless every expectation
// held; a command's failure is its *exec.ExitError.
func Run(ctx context.Context, out io.Writer, opts Options) (err error) {
	stage, err := setUp(opts.Gateway)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()

	switch {
	case len(opts.Command) > 0:
		return stage.runCommand(ctx, out, opts.Command)
	case opts.Serve:
		return stage.serve(ctx, out)
	default:
		return stage.perform(ctx, out, scenario)
	}
}

// stage is an emulator with a gateway in front, each on a port of its own.
type stage struct {
	url       string
	emulator  *emulator.Emulator
	fuse      *fuse
	decisions *decisions
	closers   []func() error
}

func setUp(build func(Settings) (http.Handler, func() error, error)) (_ *stage, err error) {
	s := &stage{decisions: &decisions{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()

	s.emulator, err = emulator.New(emulator.Options{})
	if err != nil {
		return nil, fmt.Errorf("starting the emulator: %w", err)
	}
	s.closers = append(s.closers, s.emulator.Close)
	s.fuse = &fuse{next: s.emulator}
	upstream, err := s.listen(s.fuse)
	if err != nil {
		return nil, err
	}

	handler, closeGateway, err := build(Settings{Upstream: upstream, Limits: limits, Logger: s.decisions.logger()})
	if err != nil {
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	s.closers = append(s.closers, closeGateway)
	front, err := s.listen(handler)
	if err != nil {
		return nil, err
	}
	s.url = front.String()
	return s, nil
}

// listen serves a handler on a free loopback port.
func (s *stage) listen(handler http.Handler) (*url.URL, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening on loopback: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // Always http.ErrServerClosed, for only close ends it.
	}()
	s.closers = append(s.closers, func() error {
		err := server.Close()
		<-done
		return err
	})
	return &url.URL{Scheme: "http", Host: listener.Addr().String()}, nil
}

// close ends what was started, in reverse order.
func (s *stage) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// environment is what points an unmodified SDK at the gateway.
func (s *stage) environment() []string {
	return []string{
		"E2B_API_URL=" + s.url,
		"E2B_SANDBOX_URL=" + s.url,
		"E2B_API_KEY=" + APIKey,
		"E2B_VALIDATE_API_KEY=false",
	}
}

func (s *stage) serve(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, s.emulator.Notice())
	fmt.Fprintln(out, "\nAn emulated E2B with e2bguard in front of it is up. In another shell:")
	for _, variable := range s.environment() {
		fmt.Fprintln(out, "export "+variable)
	}
	fmt.Fprintln(out, "\nDecisions appear below as the gateway logs them. Ctrl-C ends it.")
	s.decisions.follow(out)
	<-ctx.Done()
	return nil
}

func (s *stage) runCommand(ctx context.Context, out io.Writer, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // The user's own command.
	cmd.Env = append(os.Environ(), s.environment()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	err := cmd.Run()
	fmt.Fprintln(out)
	s.decisions.print(out)
	if reached := s.fuse.reached(); len(reached) > 0 && err == nil {
		return fmt.Errorf("%w: an attack reached the emulator: %v", ErrExpectations, reached)
	}
	return err
}
