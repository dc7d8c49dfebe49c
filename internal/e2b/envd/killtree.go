package envd

import (
	"math/rand/v2"
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
	return ownRun(killScript, strconv.FormatInt(mark, 10))
}
