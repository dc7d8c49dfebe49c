// Package audit keeps the evidence: one record of what was decided about a call,
// on disk before the call is forwarded, and one of what became of it, in a chain
// in which a record that was changed, removed or moved shows.
//
// Log writes, Verify checks, Read reads. schema.json is the form of a record.
package audit

import (
	_ "embed"
	"time"

	"github.com/e2bguard/e2bguard/guard"
)

// Version is the version of the records' form.
const Version = 1

// Schema is the JSON Schema of a record.
//
//go:embed schema.json
var Schema []byte

// Kind says what a record is about.
type Kind string

// The kinds of records.
const (
	KindDecision Kind = "decision" // what was decided about a call
	KindOutcome  Kind = "outcome"  // what became of a call that was forwarded
	KindTeardown Kind = "teardown" // the end of a sandbox that no client's call brought about

	// The records below are about the log itself.

	KindOpen       Kind = "open"       // a process began to write
	KindClose      Kind = "close"      // it stopped in order, or went on in another file
	KindCheckpoint Kind = "checkpoint" // how far the log has come
	KindLost       Kind = "lost"       // records that could not be written
	KindRemoved    Kind = "removed"    // an old file that retention removed
)

// Record is one line of a log.
type Record struct {
	// Seq numbers the records of a log from 1, over all its files.
	Seq  uint64    `json:"seq"`
	V    int       `json:"v"`
	Kind Kind      `json:"kind"`
	Time time.Time `json:"time"`
	// ID is the call's request id: decision and outcome share it.
	ID string `json:"id,omitempty"`

	*Call
	*Decision
	*Outcome
	*Mark

	// Prev is the hash of the record before; Hash is this record's: the SHA-256 of
	// the line up to the hash. MAC, with a key only, is the HMAC-SHA-256 of Hash.
	Prev string `json:"prev,omitempty"`
	Hash string `json:"hash,omitempty"`
	MAC  string `json:"mac,omitempty"`
}

// Call is which call a record is about.
type Call struct {
	// Trace is the trace id of the client's traceparent header.
	Trace string `json:"trace_id,omitempty"`
	// Client is the client's name, or the fingerprint of its key.
	Client  string `json:"client,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
	// Volume is the id of the volume that the call names.
	Volume    string `json:"volume,omitempty"`
	Plane     string `json:"plane,omitempty"`
	Operation string `json:"operation,omitempty"`
}

// Decision is what was decided about a call.
type Decision struct {
	// Decision is "pass", "block", "fail_open", "allow" (nothing to judge) or
	// "refuse" (a refusal that no guard made).
	Decision string `json:"decision"`
	// Code, Reason and Cause say why a call was refused: Reason to the client.
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause,omitempty"`
	// Mode is "enforce" or "shadow".
	Mode string `json:"mode"`
	// WouldBlock says that only shadow mode let the call go on.
	WouldBlock bool `json:"would_block,omitempty"`
	// Policy is the digest of the configuration that decided.
	Policy string `json:"policy,omitempty"`
	// Subjects are what the guard was asked about; Late, that the call was being
	// forwarded already: a further file of an upload.
	Subjects []Subject `json:"subjects,omitempty"`
	Late     bool      `json:"late,omitempty"`
	// Changed is what policy edited in the call.
	Changed []Change `json:"changed,omitempty"`
	// Took is the time from the call's arrival to the decision, in microseconds.
	Took int64 `json:"took_us"`
}

// Change is one field that policy edited.
type Change struct {
	Field string `json:"field"`
	To    string `json:"to,omitempty"`
}

// Subject is one thing that the guard was asked about.
type Subject struct {
	Kind     string            `json:"kind"`
	Language string            `json:"language,omitempty"`
	Target   string            `json:"target,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// Bytes and SHA256 are of the whole text as it was judged.
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Text is the text without secrets, or its beginning if Cut.
	Text string `json:"text,omitempty"`
	Cut  bool   `json:"text_cut,omitempty"`
	// Masked says that the text held secrets.
	Masked bool `json:"text_masked,omitempty"`

	Allow      bool     `json:"allow"`
	FailOpen   bool     `json:"fail_open,omitempty"`
	WouldBlock bool     `json:"would_block,omitempty"`
	Fault      string   `json:"fault,omitempty"`
	Error      string   `json:"error,omitempty"`
	Verdict    *Verdict `json:"verdict,omitempty"`
}

// Verdict is the guard's answer.
type Verdict struct {
	Decision   string            `json:"decision"`
	Reasoning  string            `json:"reasoning,omitempty"`
	Violations []guard.Violation `json:"violations,omitempty"`
	Guard      string            `json:"guard,omitempty"`
	Cached     bool              `json:"cached,omitempty"`
	Took       int64             `json:"took_us"`
}

// Outcome is what became of a call that was forwarded.
type Outcome struct {
	// Ended is how it ended: see the Ended values.
	Ended string `json:"ended"`
	// Status is the HTTP status of E2B's answer; 0 if there was none.
	Status int `json:"status,omitempty"`
	// ExitCode is the process's.
	ExitCode *int32 `json:"exit_code,omitempty"`
	// Error is the program's or E2B's own error, as far as it was seen.
	Error string `json:"error,omitempty"`

	Stdout *Output `json:"stdout,omitempty"`
	Stderr *Output `json:"stderr,omitempty"`
	PTY    *Output `json:"pty,omitempty"`
	// OutputGap says that the program may have written what nobody was there to
	// read: before the client connected to it, or after it left.
	OutputGap bool `json:"output_gap,omitempty"`

	// Wall is the time from the call's arrival to its end, in microseconds.
	Wall int64 `json:"wall_us"`
	// KilledBy is the limit for which the gateway ended the program.
	KilledBy string `json:"killed_by,omitempty"`
	// DestroyedBy is who ended the sandbox: "client", or in a teardown what did, such
	// as "verify" or "wall_clock"; "gone_upstream" if it was found gone. It is certain
	// if Ended is "complete".
	DestroyedBy string `json:"destroyed_by,omitempty"`
}

// How a call can end.
const (
	EndedComplete  = "complete"           // E2B answered to the end
	EndedError     = "error"              // E2B answered with an error
	EndedClient    = "client_gone"        // the client left first
	EndedTruncated = "upstream_truncated" // E2B broke its answer off
	EndedIdle      = "upstream_idle"      // E2B fell silent
	EndedLimit     = "output_limit"       // the output limit ended it
	EndedWallClock = "wall_clock"         // the wall clock ended it
	EndedCPU       = "cpu_seconds"        // the limit of CPU time ended it
	EndedRefused   = "refused"            // refused after it was forwarded, or E2B was not reached: Error has the code
)

// Output is what a program wrote to one place.
type Output struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"` // of what was seen
	// Head and Tail are its beginning and its end, without secrets; all of it is in
	// Head if Tail is empty and Cut is not set.
	Head string `json:"head,omitempty"`
	Tail string `json:"tail,omitempty"`
	Cut  bool   `json:"cut,omitempty"`
	// Missed is how many of the bytes could not be seen.
	Missed int64 `json:"missed,omitempty"`
}

// Mark is what a record about the log itself says.
type Mark struct {
	// Chain names the log: a process that finds none begins a new one.
	Chain string `json:"chain"`
	// File numbers the files of a chain from 1.
	File uint64 `json:"file"`
	// Unclean says that the process before did not stop in order.
	Unclean bool `json:"unclean,omitempty"`
	// Torn is how many bytes of a record that was never complete were cut off.
	Torn int64 `json:"torn_bytes,omitempty"`
	// Damaged is the file that was put aside because its end does not verify.
	Damaged string `json:"damaged,omitempty"`
	// Missing says that records up to this one had been written and are not there.
	Missing uint64 `json:"missing_to,omitempty"`
	// Key is the id of the key the MACs are made with.
	Key string `json:"key,omitempty"`
	// Lost is how many records could not be written since the last mark.
	Lost uint64 `json:"lost,omitempty"`
	// Name is a file that retention removed, and Last and LastHash the last of its
	// records: with those before it, it is no longer there.
	Name     string `json:"name,omitempty"`
	Last     uint64 `json:"last,omitempty"`
	LastHash string `json:"last_hash,omitempty"`
	// Why says why the log was closed: "stopped" or "rotated".
	Why string `json:"why,omitempty"`
}
