package emulator

import (
	"bufio"
	"bytes"
	_ "embed" // The kernels' programs.
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	esbuild "github.com/evanw/esbuild/pkg/api"
)

//go:embed kernels/python.py
var pythonKernel string

//go:embed kernels/node.js
var nodeKernel string

//go:embed kernels/bash.sh
var bashKernel string

// kernelPrograms are the languages there can be a kernel for.
var kernelPrograms = map[string][]string{
	"python":     {"python3", "-u", "-c", pythonKernel},
	"javascript": {"node", "--no-warnings", "-e", nodeKernel, "--"},
	"typescript": {"node", "--no-warnings", "-e", nodeKernel, "--"},
	"bash":       {"bash", "--norc", "-c", bashKernel},
}

// kernelEvent is one thing a kernel reports.
type kernelEvent struct {
	E         string          `json:"e"` // ready, stdout, stderr, result, error, done; "" when the kernel died
	Text      string          `json:"text"`
	Data      json.RawMessage `json:"data"`
	Main      bool            `json:"main"`
	Name      string          `json:"name"`
	Value     string          `json:"value"`
	Traceback string          `json:"traceback"`
}

// kernel is a running interpreter process that keeps state.
type kernel struct {
	language string
	env      map[string]string // the sandbox's own
	cmd      *exec.Cmd
	requests *os.File
	events   chan kernelEvent // closed when the process is gone
	gone     chan struct{}

	// Raw output (of child processes, say) ends an execution with a marker on
	// each of the two pipes, so that none of it is attributed to the next.
	markers chan string
	once    sync.Once
}

var errNoKernel = errors.New("no such kernel")

// startKernel starts the interpreter for a language. Like one of Jupyter's it is
// told a file with its connection, by which its process can be known.
func (sb *sandbox) startKernel(id, language, cwd string) (*kernel, error) {
	program, ok := kernelPrograms[language]
	if !ok {
		return nil, errNoKernel
	}
	if _, err := exec.LookPath(program[0]); err != nil {
		return nil, errNoKernel
	}
	cmd := exec.Command("/bin/sh", slices.Concat([]string{"-c", wrapper, "--"}, program, []string{"-f", "/root/.local/share/jupyter/runtime/kernel-" + id + ".json"})...)
	if err := sb.spawn.prepare(cmd, accounts[defaultUser], cwd, sb.defaultEnv(), false); err != nil {
		return nil, err
	}
	requestsR, requestsW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	eventsR, eventsW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, requestsR.Close(), requestsW.Close())
	}
	cmd.ExtraFiles = []*os.File{requestsR, eventsW}
	k := &kernel{
		language: language, env: sb.envVars, cmd: cmd, requests: requestsW,
		events: make(chan kernelEvent, subscriptionBuffer), gone: make(chan struct{}), markers: make(chan string, 2),
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		var stderr io.Reader
		if stderr, err = cmd.StderrPipe(); err == nil {
			if err = sb.spawn.on(cmd.Start); err == nil {
				sb.spawn.started(cmd.Process.Pid)
				go k.read(eventsR, stdout, stderr)
			}
		}
	}
	_, _ = requestsR.Close(), eventsW.Close() // The child has its own.
	if err != nil {
		return nil, errors.Join(err, requestsW.Close(), eventsR.Close())
	}
	// Before it is ready, an interrupt would end it.
	for e := range k.events {
		if e.E == "ready" {
			return k, nil
		}
	}
	k.close()
	return nil, fmt.Errorf("the %s kernel did not start", language)
}

// read passes on everything the kernel says until it is gone.
func (k *kernel) read(events *os.File, stdout, stderr io.Reader) {
	var wg sync.WaitGroup
	wg.Go(func() {
		lines := bufio.NewReader(events)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var e kernelEvent
			if json.Unmarshal(line, &e) == nil {
				k.events <- e
			}
		}
	})
	wg.Go(func() { k.raw("stdout", stdout) })
	wg.Go(func() { k.raw("stderr", stderr) })
	wg.Wait()
	_ = events.Close() // Read to its end.
	_ = k.cmd.Wait()   // How it ended does not matter.
	close(k.gone)
	close(k.events)
}

const (
	markerStart = "\x1ee2b-end:"
	markerEnd   = '\x1e'
)

// raw passes on what was written to a descriptor, looking for the markers.
func (k *kernel) raw(name string, r io.Reader) {
	var held []byte
	buf := make([]byte, pipeChunk)
	for {
		n, err := r.Read(buf)
		held = append(held, buf[:n]...)
		for {
			i := bytes.Index(held, []byte(markerStart))
			if i < 0 {
				break
			}
			j := bytes.IndexByte(held[i+len(markerStart):], markerEnd)
			if j < 0 {
				break
			}
			k.text(name, held[:i])
			k.markers <- string(held[i+len(markerStart) : i+len(markerStart)+j])
			held = held[i+len(markerStart)+j+1:]
		}
		keep := len(held)
		if i := bytes.IndexByte(held, markerStart[0]); i >= 0 && err == nil {
			keep = i
		} else if err == nil {
			keep = wholeRunes(held)
		}
		k.text(name, held[:keep])
		held = append([]byte(nil), held[keep:]...)
		if err != nil {
			return
		}
	}
}

// wholeRunes is the length of b without a character cut off at its end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

func (k *kernel) text(name string, b []byte) {
	if len(b) > 0 {
		k.events <- kernelEvent{E: name, Text: string(bytes.ToValidUTF8(b, []byte("\ufffd")))}
	}
}

// send asks the kernel to run code; marker tells its raw output's end.
func (k *kernel) send(code string, env map[string]string, count int, marker string) error {
	full := markerStart + marker + string(rune(markerEnd))
	if k.language == "bash" {
		set, reset := ":\n", ":\n"
		for _, name := range slices.Sorted(maps.Keys(env)) {
			quoted := shellQuote(name + "=" + env[name])
			set += "export " + quoted + "\n"
			if old, ok := k.env[name]; ok {
				reset += "export " + shellQuote(name+"="+old) + "\n"
			} else {
				reset += "unset " + shellQuote(name) + "\n"
			}
		}
		_, err := fmt.Fprintf(k.requests, "%s %s %s %s\n", b64(code+"\n"), b64(set), b64(full), b64(reset))
		return err
	}
	if k.language == "typescript" {
		code = withoutTypes(code)
	}
	line, err := json.Marshal(map[string]any{"code": code, "env": env, "count": count, "marker": full})
	if err != nil {
		return err
	}
	_, err = k.requests.Write(append(line, '\n'))
	return err
}

// withoutTypes turns TypeScript into JavaScript; what does not parse is left
// for the kernel to complain about.
func withoutTypes(code string) string {
	out := esbuild.Transform(code, esbuild.TransformOptions{Loader: esbuild.LoaderTS, Target: esbuild.ESNext})
	if len(out.Errors) > 0 {
		return code
	}
	return string(out.Code)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (k *kernel) interrupt() {
	_ = syscall.Kill(-k.cmd.Process.Pid, syscall.SIGINT) // Gone already is as good.
}

// close ends the kernel and waits for that.
func (k *kernel) close() {
	k.once.Do(func() {
		_ = k.requests.Close()
		_ = syscall.Kill(-k.cmd.Process.Pid, syscall.SIGKILL) // Gone already is as good.
	})
	// Readers may be blocked on events that nobody takes any more.
	for {
		select {
		case <-k.gone:
			return
		case <-k.events:
		case <-k.markers:
		}
	}
}

// awaitMarkers waits for the end of both raw pipes, passing on their events.
func (k *kernel) awaitMarkers(marker string, each func(kernelEvent)) {
	const patience = 2 * time.Second
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for seen := 0; seen < 2; {
		select {
		case m := <-k.markers:
			if m == marker {
				seen++
			}
		case e, ok := <-k.events:
			if !ok {
				return
			}
			each(e)
		case <-deadline.C:
			return // The code closed its descriptors.
		}
	}
	for {
		select {
		case e, ok := <-k.events:
			if !ok {
				return
			}
			each(e)
		default:
			return
		}
	}
}
