package envd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// NewMark returns a mark for a process, unlike any other.
func NewMark() int64 {
	const least, most = 1e17, 1e18 - 1 // of one length, and far above any real limit
	return least + rand.Int64N(most-least)
}

// killScript ends every process whose limit on file locks is $1. They are stopped
// first, so that none starts another meanwhile; what is left is looked for again.
// It fails if some would not die, or if it cannot look.
const killScript = `command -v grep >/dev/null || exit 3
n=0
while [ $n -lt 40 ]; do
	n=$((n+1)) pids=
	for f in $(grep -ls "^Max file locks  *$1 " /proc/[0-9]*/limits 2>/dev/null); do
		p=${f#/proc/} p=${p%/limits}
		{ read -r s < /proc/$p/stat; } 2>/dev/null || continue
		case ${s##*) } in [ZX]*) continue ;; esac
		kill -STOP $p 2>/dev/null
		pids="$pids $p"
	done
	[ -n "$pids" ] || exit 0
	kill -KILL $pids 2>/dev/null
	sleep 0.05 2>/dev/null
done
exit 1`

// KillTree is the request that starts the end of every process with the mark.
func KillTree(mark int64) *processpb.StartRequest {
	return &processpb.StartRequest{
		Process: &processpb.ProcessConfig{Cmd: wrapShell, Args: []string{"-c", killScript, wrapName, strconv.FormatInt(mark, 10)}},
		Stdin:   new(bool),
	}
}

// isKillTree reports whether a process is the gateway's own.
func isKillTree(info *processpb.ProcessInfo) bool {
	args := info.GetConfig().GetArgs()
	return info.GetConfig().GetCmd() == wrapShell && len(args) == 4 && args[1] == killScript
}

// hideKillTree leaves the gateway's own processes out of a list.
func hideKillTree(list *processpb.ListResponse) (changed bool) {
	before := len(list.GetProcesses())
	list.Processes = slices.DeleteFunc(list.GetProcesses(), isKillTree)
	return len(list.GetProcesses()) < before
}

// StartFrame writes a start request as the body of a call, in JSON.
func StartFrame(req *processpb.StartRequest) ([]byte, error) {
	m := &Message{Encoding: Encoding{Codec: JSON, Stream: true}, Proto: req}
	return m.Encode()
}

// ReadRun reads the answer to Start, in JSON, to its end; an error says that the
// process did not end well.
func ReadRun(r io.Reader) error {
	const most = 1 << 20
	ended := false
	for {
		flags, payload, err := readFrame(r, most)
		if errors.Is(err, io.EOF) && ended {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the answer to a start: %w", err)
		}
		if flags&flagEndStream != 0 {
			if e := endStreamEvent(payload); e.Code != "" {
				return fmt.Errorf("%s: %s", e.Code, e.Message)
			}
			continue
		}
		if !bytes.Contains(payload, []byte(`"end"`)) {
			continue
		}
		if e, ok := lifeEvent(JSON, payload); ok && e.Kind == EventEnd {
			if e.ExitCode != 0 {
				return errors.New(e.Status)
			}
			ended = true
		}
	}
}
