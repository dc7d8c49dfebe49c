package gateway

import "sync/atomic"

// input is what was sent to a process's standard input.
type input struct {
	// charged is how many bytes of it count against what may be remembered in all.
	charged atomic.Int64
}
