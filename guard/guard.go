// Package guard decides whether something that is about to happen in a sandbox
// may happen.
//
// It holds the contract every guard keeps (Subject, Verdict, Guard), and what
// turns several guards into one decision: the Chain, the verdict Cache, the
// circuit breaker and Decide, the only function that may turn an error into
// "allow". The guards themselves live in the packages below: static (embedded,
// no key, no network) and superagent (the Superagent Guard API).
package guard

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Kind says what a Subject is, so that a guard can be asked about some kinds
// and not about others.
type Kind string

// The kinds of things a guard can be asked about.
const (
	// KindCommand is a process about to start: its program and arguments.
	KindCommand Kind = "command"
	// KindCode is source text for an interpreter: a notebook cell, a script
	// passed by an environment variable that is code.
	KindCode Kind = "code"
	// KindInput is text typed or piped into a running process.
	KindInput Kind = "input"
	// KindFile is a file about to be written, renamed or removed.
	KindFile Kind = "file"
	// KindTool is a tool call, such as an MCP tools/call.
	KindTool Kind = "tool"
	// KindBuild is a step of a template build.
	KindBuild Kind = "build"
	// KindPrompt is a request in plain words, which no interpreter could run.
	KindPrompt Kind = "prompt"
)

// Kinds lists every Kind, in the order documentation shows them.
func Kinds() []Kind {
	return []Kind{KindCommand, KindCode, KindInput, KindFile, KindTool, KindBuild, KindPrompt}
}

// Subject is one thing that is about to happen in a sandbox, as a guard sees
// it.
type Subject struct {
	Kind Kind
	// Language names the language of Text in lower case: "bash", "python",
	// "javascript", "typescript", "r", "java"; empty if unknown.
	Language string
	// Text is exactly what will run or be written. It is never truncated.
	Text string
	// Target is the path, the tool name or the process tag, where there is one.
	Target string
	// Files are the files that Text runs or loads, as they are before it does;
	// KindCommand and KindCode only.
	Files []File
	// Labels is context: LabelSandbox, LabelClient, LabelCwd, LabelOperation,
	// LabelEnvNames. Names of environment variables, never values.
	Labels map[string]string
}

// File is a file that a Subject's text runs or loads.
type File struct {
	// Path is absolute and clean.
	Path string
	// Text is the whole file.
	Text string
}

// Whole is all that a Subject will run: its text and, each behind a line with its
// path, the files. It is what a guard reads that does not know Files.
func (s Subject) Whole() string {
	if len(s.Files) == 0 {
		return s.Text
	}
	var b strings.Builder
	b.WriteString(s.Text)
	for _, f := range s.Files {
		b.WriteString("\n\n===== file " + strconv.Quote(f.Path) + " =====\n" + f.Text)
	}
	return b.String()
}

// Keys of Subject.Labels.
const (
	LabelSandbox   = "sandbox"
	LabelClient    = "client"
	LabelRequest   = "request"
	LabelOperation = "operation"
	LabelCwd       = "cwd"
	LabelUser      = "user"
	LabelEnvNames  = "env_names"
	// LabelAction says what happens to the file of a KindFile subject: "write",
	// "move" (it arrives), "take" (it is moved or copied away), "remove", "mkdir",
	// "read", "list", "watch".
	LabelAction = "action"
	// LabelHidden is "true" on text that may be a password: it is asked of no remote
	// guard, and neither kept nor logged.
	LabelHidden = "hidden"
	// LabelNetwork is "blocked" where the sandbox has no way out, so that a
	// guard can tell an install that would hang.
	LabelNetwork = "network"
	// LabelUnseen lists, separated by commas, the files that will run and whose
	// text could not be had.
	LabelUnseen = "unseen_file"
)

// Decision is a guard's answer. The zero Decision is invalid: "no answer" is
// never "pass".
type Decision uint8

// The decisions.
const (
	Pass Decision = iota + 1
	Block
)

// String returns "pass", "block" or "invalid".
func (d Decision) String() string {
	switch d {
	case Pass:
		return "pass"
	case Block:
		return "block"
	default:
		return "invalid"
	}
}

// Span is a half-open byte range [Start, End) in Subject.Text. The zero Span
// means the whole text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Violation is one reason for a Block.
type Violation struct {
	// Type names the kind of harm, such as "data_exfiltration".
	Type string `json:"type"`
	// CWE is the weakness id, such as "CWE-200"; empty if the guard gave none.
	CWE string `json:"cwe,omitempty"`
	// Rule is the id of the rule that matched; empty for model guards.
	Rule string `json:"rule,omitempty"`
	// Span is where in Subject.Text it was seen.
	Span Span `json:"span,omitzero"`
}

// Verdict is a guard's answer to one Subject. The zero Verdict is invalid.
type Verdict struct {
	Decision Decision
	// Reasoning is one or two sentences a person, or an agent, can act on.
	Reasoning  string
	Violations []Violation
	// Guard names the guard that decided.
	Guard string
	// Cached says that the answer was given before, to the same subject.
	Cached bool
	Took   time.Duration
}

// Guard reviews subjects. Implementations must be safe for concurrent use,
// must honour ctx, and must return an error rather than guess: a Verdict with
// an invalid Decision and a nil error is treated as an error.
type Guard interface {
	Review(ctx context.Context, s Subject) (Verdict, error)
}
