// Package emulator is an offline E2B: control plane and data plane on one
// port, speaking E2B's wire closely enough that E2B's own SDKs work against it
// unchanged. It exists for demonstrations and tests.
//
// It isolates nothing. Commands and code are real processes of the emulator's
// own user; only file operations are confined to the sandbox's folder.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"
)

// Options configures an Emulator. The zero value is usable.
type Options struct {
	// Dir holds the sandboxes' folders. Empty: a temporary folder, removed by
	// Close. A folder given here must be the emulator's alone.
	Dir string
	// Record receives one JSON line per request, written before the request is
	// acted on. Nil: nothing is written.
	Record io.Writer
	// AllowHosts are host names, beside loopback names, IP literals and Domain,
	// under which the emulator may be addressed.
	AllowHosts []string
	// Domain is what responses carry as `domain`, and the domain whose hosts
	// "<port>-<sandbox>.<domain>" reach a sandbox. Empty: null in responses.
	Domain string
	// Logger gets one line per notable event. Nil: nothing is logged.
	Logger *zap.Logger
}

// Emulator is a running offline E2B. It is an http.Handler; Close must be
// called to end the processes it started.
type Emulator struct {
	dir      string
	ownDir   bool
	domain   string
	hosts    []string
	log      *zap.Logger
	recorder *recorder
	confine  confinement
	api      http.Handler
	own      atomic.Int64 // the port Listen serves on

	mu        sync.Mutex
	closed    bool
	sandboxes map[string]*sandbox
	snapshots map[string]*snapshot
	templates *templateStore
	volumes   *volumeStore
	secrets   *secretStore
}

// New returns an Emulator whose folders exist.
func New(opts Options) (*Emulator, error) {
	dir, own := opts.Dir, false
	if dir == "" {
		tmp, err := os.MkdirTemp("", "e2b-emulator-")
		if err != nil {
			return nil, fmt.Errorf("creating the emulator's folder: %w", err)
		}
		dir, own = tmp, true
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the emulator's folder: %w", err)
	}
	allowInterrupts()
	log := opts.Logger
	if log == nil {
		log = zap.NewNop()
	}
	e := &Emulator{
		dir:       dir,
		ownDir:    own,
		domain:    opts.Domain,
		hosts:     opts.AllowHosts,
		log:       log,
		recorder:  &recorder{out: opts.Record},
		confine:   probeConfinement(),
		sandboxes: make(map[string]*sandbox),
		snapshots: make(map[string]*snapshot),
		templates: newTemplateStore(),
		secrets:   newSecretStore(),
	}
	volumes, err := newVolumeStore(dir)
	if err != nil {
		return nil, err
	}
	e.volumes = volumes
	e.api = e.controlPlane()
	log.Warn("the emulator isolates nothing: commands and code run as real processes of this user",
		zap.String("folder", dir), zap.String("paths", e.confine.describe()))
	return e, nil
}

// allowInterrupts undoes what a shell does to a job it starts in the
// background: it ignores SIGINT, and so would all processes of the sandboxes,
// which could then not be interrupted. Taking the signal and dropping it is the
// same to this process, and leaves its children with the default.
var allowInterrupts = sync.OnceFunc(func() {
	if signal.Ignored(syscall.SIGINT) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
})

// Notice is the text to show at start: that nothing is isolated, and how far
// absolute paths in commands agree with those of the files API.
func (e *Emulator) Notice() string {
	return "This emulator isolates nothing: commands and code sent to it run on this machine, as this user.\n" +
		"Use it for demonstrations and tests only. " + e.confine.describe()
}

// Recorded returns the requests received so far, oldest first; of very many,
// the latest.
func (e *Emulator) Recorded() []Record { return e.recorder.all() }

// Close ends every sandbox and its processes and removes their folders.
func (e *Emulator) Close() error {
	e.mu.Lock()
	e.closed = true
	all := make([]*sandbox, 0, len(e.sandboxes))
	for _, sb := range e.sandboxes {
		all = append(all, sb)
	}
	snapshots := e.snapshots
	e.sandboxes, e.snapshots = make(map[string]*sandbox), make(map[string]*snapshot)
	e.mu.Unlock()

	var errs []error
	for _, sb := range all {
		errs = append(errs, sb.end())
	}
	for _, s := range snapshots {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	errs = append(errs, e.volumes.close())
	if e.ownDir {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}

// ServeHTTP answers one request of either plane.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, isSandbox, err := e.target(r)
	if reason := e.refuseForeign(r, isSandbox); reason != "" {
		writeError(w, http.StatusForbidden, reason)
		return
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	pending := e.recorder.begin(r, target)
	r = r.WithContext(context.WithValue(r.Context(), pendingKey{}, pending))
	// A request nobody decoded (an unknown route, an unreadable body) is
	// recorded all the same.
	defer pending.commit(nil)

	if !isSandbox {
		e.api.ServeHTTP(w, r)
		return
	}
	e.serveSandbox(w, r, target)
}
