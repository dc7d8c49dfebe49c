// Package body is the one bounded reader of request bodies: size cap, read
// deadline, inflate cap, spill to disk above a threshold, and a ceiling over
// all bytes buffered at once.
package body

import "time"

// Config bounds what is read from clients. Zero fields take the defaults in
// their comments.
type Config struct {
	// TempDir is where bodies above SpillBytes go; "" is the system's. It must
	// be writable when the gateway starts.
	TempDir string
	// SpillBytes is the size above which a body goes to disk: 1 MiB.
	SpillBytes int64
	// CeilingBytes bounds all bytes buffered in memory and on disk at once;
	// beyond it calls get an overload answer: 2 GiB.
	CeilingBytes int64
	// MessageBytes caps a body that is decoded whole (RPC, REST): 8 MiB.
	MessageBytes int64
	// UploadBytes caps an upload, after decompression: 1 GiB.
	UploadBytes int64
	// ReadTimeout is how long a client may go without sending a byte: 30 s.
	ReadTimeout time.Duration
}
