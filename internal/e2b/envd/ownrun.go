package envd

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// ownScripts are what the gateway itself runs in sandboxes.
var ownScripts = []string{killScript, kernelMemoryScript, kernelCPUScript}

// ownRun is the request that starts one of ownScripts.
func ownRun(script string, args ...string) *processpb.StartRequest {
	return &processpb.StartRequest{
		Process: &processpb.ProcessConfig{Cmd: wrapShell, Args: append([]string{"-c", script, wrapName}, args...)},
		Stdin:   new(bool),
	}
}

// isOwnRun reports whether a process is the gateway's own.
func isOwnRun(info *processpb.ProcessInfo) bool {
	args := info.GetConfig().GetArgs()
	return info.GetConfig().GetCmd() == wrapShell && len(args) >= 3 && args[0] == "-c" && args[2] == wrapName && slices.Contains(ownScripts, args[1])
}

// hideOwnRuns leaves the gateway's own processes out of a list.
func hideOwnRuns(list *processpb.ListResponse) (changed bool) {
	before := len(list.GetProcesses())
	list.Processes = slices.DeleteFunc(list.GetProcesses(), isOwnRun)
	return len(list.GetProcesses()) < before
}

// StartFrame writes a start request as the body of a call, in JSON.
func StartFrame(req *processpb.StartRequest) ([]byte, error) {
	m := &Message{Encoding: Encoding{Codec: JSON, Stream: true}, Proto: req}
	return m.Encode()
}

// ReadRun reads the answer to Start, in JSON, to its end, and returns what the
// process wrote to its standard output. An error says that it did not end well.
func ReadRun(r io.Reader) (stdout []byte, err error) {
	const most = 1 << 20
	ended := false
	for {
		flags, payload, err := readFrame(r, most)
		if errors.Is(err, io.EOF) && ended {
			return stdout, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the answer to a start: %w", err)
		}
		if flags&flagEndStream != 0 {
			if e := endStreamEvent(payload); e.Code != "" {
				return nil, fmt.Errorf("%s: %s", e.Code, e.Message)
			}
			continue
		}
		var m processpb.StartResponse
		if _, err := unmarshal(JSON, payload, &m); err != nil {
			return nil, fmt.Errorf("reading the answer to a start: %w", err)
		}
		if stdout = append(stdout, m.GetEvent().GetData().GetStdout()...); len(stdout) > most {
			return nil, errors.New("reading the answer to a start: too much output")
		}
		if end := m.GetEvent().GetEnd(); end != nil {
			if end.GetExitCode() != 0 {
				return nil, errors.New(end.GetStatus())
			}
			ended = true
		}
	}
}
