package emulator

import (
	"errors"
	"net/http"
	"path/filepath"
	"time"
)

func (e *Emulator) info(r *http.Request, _ []byte) (int, any, error) {
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, sb.detail(), nil
}

func (e *Emulator) killSandbox(r *http.Request, _ []byte) (int, any, error) {
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	if !e.kill(sb.id) {
		return 0, nil, notFound("Sandbox %q doesn't exist or you don't have access to it", sb.id)
	}
	return http.StatusNoContent, nil, nil
}

type lifetimeBody struct {
	Timeout  *int32 `json:"timeout"`
	Duration *int32 `json:"duration"`
	Memory   *bool  `json:"memory"`
	Count    *int   `json:"count"`
}

func (b lifetimeBody) keepsMemory() bool { return b.Memory == nil || *b.Memory }

func (e *Emulator) connectV1(r *http.Request, body []byte) (int, any, error) {
	return e.connect(r, body, true)
}

func (e *Emulator) connectV2(r *http.Request, body []byte) (int, any, error) {
	return e.connect(r, body, false)
}

// connect gives a running sandbox's coordinates, or wakes a paused one.
func (e *Emulator) connect(r *http.Request, body []byte, timeoutRequired bool) (int, any, error) {
	var b lifetimeBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if timeoutRequired && b.Timeout == nil {
		return 0, nil, badRequest("Error when parsing request: property \"timeout\" is missing")
	}
	d := defaultTimeoutV2
	if err := timeout(b.Timeout, &d); err != nil {
		return 0, nil, err
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	code := http.StatusOK
	if sb.isPaused() {
		code = http.StatusCreated
	}
	if err := sb.resume(d, b.keepsMemory()); err != nil {
		return 0, nil, err
	}
	return code, sb.answer(), nil
}

func (sb *sandbox) isPaused() bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.state == statePaused
}

func (e *Emulator) resumeSandbox(r *http.Request, body []byte) (int, any, error) {
	var b lifetimeBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	d := defaultTimeoutV1
	if err := timeout(b.Timeout, &d); err != nil {
		return 0, nil, err
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	if !sb.isPaused() {
		return 0, nil, &apiError{http.StatusConflict, "Sandbox " + sb.id + " is already running"}
	}
	if err := sb.resume(d, b.keepsMemory()); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, sb.answer(), nil
}

func (e *Emulator) pauseSandbox(r *http.Request, body []byte) (int, any, error) {
	var b lifetimeBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	if err := sb.pause(b.keepsMemory()); err != nil {
		if errors.Is(err, errAlreadyPaused) {
			return 0, nil, &apiError{http.StatusConflict, err.Error()}
		}
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}

func (e *Emulator) setTimeout(r *http.Request, body []byte) (int, any, error) {
	var b lifetimeBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if b.Timeout == nil {
		return 0, nil, badRequest("Error when parsing request: property \"timeout\" is missing")
	}
	if *b.Timeout < 0 {
		return 0, nil, badRequest("Error when parsing request: timeout must be at least 0")
	}
	d := time.Duration(*b.Timeout) * time.Second
	if d > maxTimeoutHours*time.Hour {
		return 0, nil, badRequest("Timeout cannot be greater than %d hours", maxTimeoutHours)
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	sb.extend(d, true)
	return http.StatusNoContent, nil, nil
}

func (e *Emulator) refresh(r *http.Request, body []byte) (int, any, error) {
	var b lifetimeBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	d := defaultTimeoutV1
	if b.Duration != nil {
		d = max(d, time.Duration(*b.Duration)*time.Second)
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	sb.extend(d, false)
	return http.StatusNoContent, nil, nil
}

// updateNetwork replaces the whole policy: what is absent is open again.
func (e *Emulator) updateNetwork(r *http.Request, body []byte) (int, any, error) {
	var b struct {
		networkConfig
		AllowInternetAccess *bool `json:"allow_internet_access"`
	}
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	if err := b.check(); err != nil {
		return 0, nil, err
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.state != stateRunning {
		return 0, nil, &apiError{http.StatusConflict, "Sandbox " + sb.id + " is not running"}
	}
	next := b.networkConfig
	if sb.network != nil { // Ingress is not part of an update.
		next.AllowPublicTraffic, next.MaskRequestHost = sb.network.AllowPublicTraffic, sb.network.MaskRequestHost
	}
	sb.network, sb.allowInternet = &next, b.AllowInternetAccess
	return http.StatusNoContent, nil, nil
}

const maxForks = 100

// forkSandbox makes sandboxes with the files of another. Its processes are not
// copied: that takes a virtual machine.
func (e *Emulator) forkSandbox(r *http.Request, body []byte) (int, any, error) {
	var b lifetimeBody
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	d := defaultTimeoutV1
	if err := timeout(b.Timeout, &d); err != nil {
		return 0, nil, err
	}
	count := 1
	if b.Count != nil {
		count = *b.Count
	}
	if count < 1 {
		return 0, nil, badRequest("Count must be at least 1")
	}
	if count > maxForks {
		return 0, nil, badRequest("Count cannot be greater than %d", maxForks)
	}
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	if sb.isPaused() {
		return 0, nil, &apiError{http.StatusConflict, "Sandbox '" + sb.id + "' cannot be forked while in 'paused' state"}
	}
	answers := make([]map[string]any, 0, count)
	for range count {
		fork, err := e.start(sb.fork(d))
		if err != nil {
			answers = append(answers, map[string]any{"error": apiError{http.StatusInternalServerError, err.Error()}})
			continue
		}
		answers = append(answers, map[string]any{"sandbox": fork.answer()})
	}
	return http.StatusCreated, answers, nil
}

func (sb *sandbox) fork(d time.Duration) sandboxSpec {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sandboxSpec{
		template: sb.template, timeout: d, secure: sb.accessToken != "", privateTraffic: sb.trafficToken != "",
		envVars: sb.envVars, metadata: sb.metadata, mounts: sb.mounts, autoPause: sb.autoPause,
		autoPauseMemory: sb.autoPauseMemory, autoResume: sb.autoResume, network: sb.network,
		allowInternet: sb.allowInternet, raw: sb.raw, from: filepath.Join(sb.dir, "root"),
	}
}
