package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

type sandboxState string

const (
	stateRunning sandboxState = "running"
	statePaused  sandboxState = "paused"
)

// envdVersion is the version the SDKs see; it switches on every feature they
// gate by version.
const envdVersion = "0.6.13"

// sandbox is one sandbox: a folder, its processes and its lifetime.
type sandbox struct {
	e            *Emulator
	id           string
	dir          string // dir/root is what "/" means to the files API
	template     string
	accessToken  string // "" on an insecure sandbox: nothing is checked
	trafficToken string // "" when public traffic is allowed
	envVars      map[string]string
	metadata     map[string]string
	mounts       []volumeMount
	started      time.Time

	fs          *sandboxFS
	spawn       *spawner
	procs       *processTable
	envd        http.Handler
	watchers    *watcherTable
	interpreter *interpreter // nil where the template has none
	mcp         http.Handler
	envdDown    atomic.Bool   // envd crashed, as the real one does on a bad header
	gone        chan struct{} // closed when the sandbox ends

	mu              sync.Mutex
	state           sandboxState
	endAt           time.Time
	timer           *time.Timer
	autoPause       bool
	autoPauseMemory bool
	autoResume      bool
	network         *networkConfig
	allowInternet   *bool
	raw             map[string]json.RawMessage // the create body's other fields, for info
	logs            []logEntry
	ended           bool
}

type logEntry struct {
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"`
	Message   string    `json:"message"`
}

// sandboxSpec is what create decided.
type sandboxSpec struct {
	template        string
	timeout         time.Duration
	secure          bool
	privateTraffic  bool
	envVars         map[string]string
	metadata        map[string]string
	mounts          []volumeMount
	autoPause       bool
	autoPauseMemory bool
	autoResume      bool
	network         *networkConfig
	allowInternet   *bool
	raw             map[string]json.RawMessage
	from            string // a folder whose files the sandbox starts with
}

var errClosed = errors.New("the emulator is closed")

// start makes a sandbox and begins its lifetime.
func (e *Emulator) start(spec sandboxSpec) (*sandbox, error) {
	sb := &sandbox{
		e: e, id: newID("i"), template: spec.template, envVars: spec.envVars, metadata: spec.metadata,
		mounts: spec.mounts, started: time.Now().UTC(), state: stateRunning, gone: make(chan struct{}),
		autoPause: spec.autoPause, autoPauseMemory: spec.autoPauseMemory, autoResume: spec.autoResume,
		network: spec.network, allowInternet: spec.allowInternet, raw: spec.raw,
	}
	if spec.secure {
		sb.accessToken = "ea_" + randomHex(16)
	}
	if spec.privateTraffic {
		sb.trafficToken = "ta_" + randomHex(16)
	}
	sb.dir = filepath.Join(e.dir, sb.id)
	root := filepath.Join(sb.dir, "root")
	err := seed(root, spec.from)
	if spec.template != "base" && spec.from == "" {
		err = errors.Join(err, addMCPGateway(root))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the sandbox's folder: %w", err), os.RemoveAll(sb.dir))
	}
	files, err := newSandboxFS(root, spec.mounts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the sandbox's folder: %w", err), os.RemoveAll(sb.dir))
	}
	sb.fs = files
	sb.spawn = newSpawner(e.confine, sb.fs)
	if e.confine.chroot && !sb.spawn.confined {
		e.log.Warn("the sandbox has no mount namespace: commands see this machine's real paths", zap.String("sandbox", sb.id))
	}
	sb.procs = newProcessTable(sb)
	sb.watchers = newWatcherTable()
	sb.envd = sb.envdHandler()
	// The base template has nothing but envd.
	if spec.template != "base" {
		sb.interpreter, sb.mcp = newInterpreter(sb), sb.mcpHandler()
	}

	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errors.Join(errClosed, sb.end())
	}
	e.sandboxes[sb.id] = sb
	e.mu.Unlock()
	sb.extend(spec.timeout, true)
	sb.log("Sandbox started")
	e.log.Info("sandbox started", zap.String("sandbox", sb.id), zap.String("template", sb.template))
	return sb, nil
}

func (e *Emulator) lookup(id string) *sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sandboxes[id]
}

// extend makes the lifetime end d from now; shorten says whether it may also
// become shorter (it may not on connect).
func (sb *sandbox) extend(d time.Duration, shorten bool) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	end := time.Now().UTC().Add(d)
	if sb.ended || (!shorten && end.Before(sb.endAt)) {
		return
	}
	sb.endAt = end
	if sb.timer != nil {
		sb.timer.Stop()
	}
	if sb.state == stateRunning {
		sb.timer = time.AfterFunc(d, sb.expire)
	}
}

func (sb *sandbox) expire() {
	sb.mu.Lock()
	early := time.Now().Before(sb.endAt)
	pause, memory := sb.autoPause, sb.autoPauseMemory
	sb.mu.Unlock()
	if early { // The lifetime was extended while the timer fired.
		return
	}
	if pause {
		_ = sb.pause(memory) // Already paused is what was wanted.
		return
	}
	sb.e.log.Info("sandbox reached the end of its lifetime", zap.String("sandbox", sb.id))
	_ = sb.e.kill(sb.id)
}

// kill ends a sandbox for good; it reports whether there was one.
func (e *Emulator) kill(id string) bool {
	e.mu.Lock()
	sb := e.sandboxes[id]
	delete(e.sandboxes, id)
	e.mu.Unlock()
	if sb == nil {
		return false
	}
	if err := sb.end(); err != nil {
		e.log.Error("ending a sandbox", zap.String("sandbox", id), zap.Error(err))
	}
	return true
}

// end stops everything the sandbox runs and removes its folder.
func (sb *sandbox) end() error {
	sb.mu.Lock()
	if sb.ended {
		sb.mu.Unlock()
		return nil
	}
	sb.ended = true
	if sb.timer != nil {
		sb.timer.Stop()
	}
	sb.mu.Unlock()
	close(sb.gone)
	// First nothing new can start, then what runs is killed.
	sb.spawn.close()
	sb.stopProcesses(true)
	return errors.Join(sb.fs.close(), os.RemoveAll(sb.dir))
}

// stopProcesses kills all processes of the sandbox and waits for them. Unless
// final, new ones can be started.
func (sb *sandbox) stopProcesses(final bool) {
	sb.watchers.closeAll(final)
	if sb.interpreter != nil {
		sb.interpreter.close(final)
	}
	sb.procs.killAll()
	sb.spawn.killAll(sb.id)
	sb.procs.wait()
}

// abortIfGone cuts the connection of a stream whose sandbox has ended: a
// virtual machine that is gone says no more.
func (sb *sandbox) abortIfGone() {
	select {
	case <-sb.gone:
		panic(http.ErrAbortHandler)
	default:
	}
}

var errAlreadyPaused = errors.New("sandbox is already paused")

// pause stops the sandbox's processes, or ends them if memory is not kept.
func (sb *sandbox) pause(memory bool) error {
	sb.mu.Lock()
	if sb.state == statePaused {
		sb.mu.Unlock()
		return errAlreadyPaused
	}
	sb.state = statePaused
	sb.timer.Stop()
	sb.mu.Unlock()
	if memory {
		sb.spawn.signalAll(sb.id, sigStop)
	} else {
		sb.stopProcesses(false)
	}
	return nil
}

// resume undoes pause and begins a new lifetime.
func (sb *sandbox) resume(d time.Duration, memory bool) error {
	sb.mu.Lock()
	if sb.ended {
		sb.mu.Unlock()
		return errClosed
	}
	wasPaused := sb.state == statePaused
	sb.state = stateRunning
	sb.mu.Unlock()
	if wasPaused {
		if !memory {
			sb.stopProcesses(false)
		}
		sb.spawn.signalAll(sb.id, sigCont)
	}
	sb.extend(d, wasPaused)
	return nil
}

func (sb *sandbox) log(message string) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.logs = append(sb.logs, logEntry{Timestamp: time.Now().UTC(), Level: "info", Message: message})
}

// crashEnvd does what a header envd cannot bear does to the real one: the
// daemon and what it runs are gone, the port is closed.
func (sb *sandbox) crashEnvd() {
	sb.envdDown.Store(true)
	sb.log("envd crashed")
	sb.watchers.closeAll(true)
	sb.procs.killAll()
}

// defaultEnv are the variables envd gives every process. Source: envd.
func (sb *sandbox) defaultEnv() map[string]string {
	env := map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": sb.id, "E2B_TEMPLATE_ID": sb.template}
	for k, v := range sb.envVars {
		env[k] = v
	}
	return env
}
