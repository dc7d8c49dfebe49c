package envd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// WrapOptions are the limits put on one process; 0 for none.
type WrapOptions struct {
	// CPUSeconds is the CPU time of each process, not of a tree of them. At the
	// limit a process gets SIGXCPU, a few seconds later SIGKILL.
	CPUSeconds int64
	// MemoryBytes bounds the data of each process (RLIMIT_DATA): never its address
	// space, of which node, Go, Java and WebAssembly reserve gigabytes.
	MemoryBytes int64
	// Mark is put on the process and all it starts, so that they can be found and
	// ended together: see KillTree.
	Mark int64
}

// The wrapper is a POSIX shell, present in every image, that sets the limits and
// then becomes the command: pid, stdin, terminal, signals and exit code stay the
// command's own. $0 is what envd's own wrapper uses.
const (
	wrapShell = "/bin/sh"
	wrapName  = "--"
	wrapExec  = `exec "$@"`
)

// limitFunction sets one limit, soft before hard. A hard limit of the image that
// is lower already stays in force: then the soft limit cannot be raised and reads
// as a number. A limit that cannot be set at all ends the command before it
// starts, for a limit that is silently missing is none. Exported functions of the
// environment could stand in for ulimit where /bin/sh is bash.
const limitFunction = `unset -f ulimit; l() { { ulimit -S$1 $2 && ulimit -H$1 $3; } 2>/dev/null || case $(ulimit -S$1) in [0-9]*) ;; *) echo "e2bguard: a resource limit (ulimit -$1) cannot be set here, so the command was not started" >&2; exit 126 ;; esac; }; `

// markSet marks the process: with the limit on file locks, which Linux passes on to
// all that it starts, shows in /proc, lets nobody but root raise, and otherwise has
// no use for. dash and busybox call it w, bash and zsh x.
const markSet = `{ ulimit -w %d || ulimit -x %d; } 2>/dev/null; `

// cpuGrace is how many CPU seconds lie between SIGXCPU and SIGKILL.
const cpuGrace = 5

// Wrap puts the limits around the process of a start request and reports
// whether it changed anything. Without limits it leaves the request alone, except
// a command that looks wrapped already: that is wrapped once more, so that Unwrap
// gives it back as the client sent it.
func Wrap(req *processpb.StartRequest, o WrapOptions) bool {
	p := req.GetProcess()
	if p == nil || o == (WrapOptions{}) && !wrapped(p) {
		return false
	}
	p.Args = append([]string{"-c", wrapScript(o), wrapName, p.GetCmd()}, p.GetArgs()...)
	p.Cmd = wrapShell
	return true
}

// Unwrap takes off what Wrap put on and reports whether it did.
func Unwrap(p *processpb.ProcessConfig) bool {
	if !wrapped(p) {
		return false
	}
	p.Cmd, p.Args = p.Args[3], p.Args[4:]
	return true
}

// MarkOf is the mark that Wrap has put on a process; 0 for none.
func MarkOf(p *processpb.ProcessConfig) int64 {
	if !wrapped(p) {
		return 0
	}
	mark, _ := strconv.ParseInt(wrapLimits.FindStringSubmatch(p.GetArgs()[1])[3], 10, 64)
	return mark
}

func wrapScript(o WrapOptions) string {
	var b strings.Builder
	if o != (WrapOptions{}) {
		b.WriteString(limitFunction)
	}
	if o.CPUSeconds > 0 {
		fmt.Fprintf(&b, "l t %d %d; ", o.CPUSeconds, o.CPUSeconds+cpuGrace)
	}
	if o.MemoryBytes > 0 {
		kib := (o.MemoryBytes + 1023) / 1024
		fmt.Fprintf(&b, "l d %d %d; ", kib, kib)
	}
	if o.Mark > 0 {
		fmt.Fprintf(&b, markSet, o.Mark, o.Mark)
	}
	b.WriteString(wrapExec)
	return b.String()
}

var wrapLimits = regexp.MustCompile(`(?:l t (\d{1,15}) \d{1,15}; )?(?:l d (\d{1,15}) \d{1,15}; )?(?:\{ ulimit -w (\d{1,18}) \|\| ulimit -x \d{1,18}; \} 2>/dev/null; )?` + regexp.QuoteMeta(wrapExec) + `$`)

// wrapped reports whether p is exactly what Wrap makes: the script is made again
// from its numbers and compared.
func wrapped(p *processpb.ProcessConfig) bool {
	a := p.GetArgs()
	if p.GetCmd() != wrapShell || len(a) < 4 || a[0] != "-c" || a[2] != wrapName {
		return false
	}
	found := wrapLimits.FindStringSubmatch(a[1])
	if found == nil {
		return false
	}
	var o WrapOptions
	o.CPUSeconds, _ = strconv.ParseInt(found[1], 10, 64) // "" is 0: no such limit.
	kib, _ := strconv.ParseInt(found[2], 10, 64)
	o.MemoryBytes = kib * 1024
	o.Mark, _ = strconv.ParseInt(found[3], 10, 64)
	return wrapScript(o) == a[1]
}
