package envd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// Kernels are the processes that run the interpreter's code. They are started by
// Jupyter, long before the code comes, so their limits are set from outside: what
// is set inside would show in what the code sees.
//
// Jupyter names a kernel's process by the file with its connection,
// kernel-<id>.json, and the interpreter's contexts have the ids of their kernels.
// https://jupyter-client.readthedocs.io/en/stable/kernels.html#connection-files

// findKernels sets pids to the processes of the kernel $id.
const findKernels = `pids=
	for f in $(grep -ls "kernel-$id[.]json" /proc/[0-9]*/cmdline 2>/dev/null); do p=${f#/proc/}; pids="$pids ${p%/cmdline}"; done
`

// kernelMemoryScript limits the data segment of the kernels $2… to $1 bytes, and
// that of the Jupyter server which is their parent, so that a kernel it starts
// later has the limit from its first instruction. It prints the ids that it found.
// Root without CAP_SYS_RESOURCE, as in many containers, must become the process's
// own user for that.
const kernelMemoryScript = `limit=$1; shift
command -v grep >/dev/null && command -v prlimit >/dev/null || exit 3
of() {
	prlimit --pid "$@" 2>/dev/null || setpriv --reuid $(stat -c %u /proc/$1) --regid $(stat -c %g /proc/$1) --clear-groups prlimit --pid "$@" || { [ ! -d /proc/$1 ] && echo 0; }
}
lower() {
	now=$(of $1 --data --noheadings --raw -o SOFT) || return 1
	case $now in
	unlimited) ;;
	*[!0-9]*|"") return 1 ;;
	*) [ $now -gt $limit ] || return 0 ;;
	esac
	of $1 --data=$limit:$limit >/dev/null
}
for id; do
	` + findKernels + `	for p in $pids; do
		{ read -r s < /proc/$p/stat; } 2>/dev/null || continue
		s=${s##*) } s=${s#? } parent=${s%% *}
		lower $p || exit 4
		if grep -qs jupyter /proc/$parent/cmdline; then lower $parent || exit 4; fi
	done
	[ -z "$pids" ] || echo $id
done`

// kernelCPUScript prints the CPU time of each kernel $1…, with all that it has
// started and that still runs or was waited for, in ticks: "id ticks". The words
// after a process's name are fields 3 and up of stat: 4 is the parent, 14 to 17 are
// the times (proc_pid_stat(5)).
const kernelCPUScript = `command -v grep >/dev/null || exit 3
all=$(cat /proc/[0-9]*/stat 2>/dev/null)
for id; do
	` + findKernels + `	[ -n "$pids" ] || continue
	sum=0 more=1 tree=" $pids "
	while [ $more = 1 ]; do
		more=0
		while read -r s; do
			p=${s%% *}; s=${s##*) }; set -- $s
			case $tree in *" $p "*) continue ;; *" $2 "*) tree="$tree$p " more=1 ;; esac
		done <<-STATS
		$all
		STATS
	done
	while read -r s; do
		p=${s%% *}; s=${s##*) }; set -- $s
		case $tree in *" $p "*) sum=$((sum + ${12} + ${13} + ${14} + ${15})) ;; esac
	done <<-STATS
	$all
	STATS
	echo $id $sum
done`

// tick is the unit of CPU time in /proc. It is 1/100 s on every architecture that
// Linux runs sandboxes on.
const tick = 10 * time.Millisecond

// maxKernels bounds the kernels that are asked about at once.
const maxKernels = 64

var kernelID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`)

// kernels are those of the ids that can be a kernel's; they come from the sandbox.
func kernels(ids []string) (args []string) {
	for _, id := range ids {
		if kernelID.MatchString(id) && len(args) < maxKernels {
			args = append(args, id)
		}
	}
	return args
}

// LimitKernels is the request that limits the memory of kernels, which takes root.
// What it prints is read by LimitedKernels.
func LimitKernels(memory int64, ids []string) *processpb.StartRequest {
	return ownRun(kernelMemoryScript, append([]string{strconv.FormatInt(memory, 10)}, kernels(ids)...)...)
}

// LimitedKernels reads which kernels have their limit.
func LimitedKernels(stdout []byte) []string { return strings.Fields(string(stdout)) }

// KernelCPU is the request that asks for the CPU time of kernels.
func KernelCPU(ids []string) *processpb.StartRequest {
	return ownRun(kernelCPUScript, kernels(ids)...)
}

// KernelCPUTimes reads the answer to KernelCPU, by id.
func KernelCPUTimes(stdout []byte) (map[string]time.Duration, error) {
	times := make(map[string]time.Duration)
	for line := range strings.Lines(string(stdout)) {
		id, ticks, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the CPU time of kernels: %w", err)
		}
		times[id] = time.Duration(n) * tick
	}
	return times, nil
}
