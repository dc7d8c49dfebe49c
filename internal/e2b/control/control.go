// Package control reads and edits the bodies of E2B's control plane.
package control

import (
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// Message is the decoded body of an operation whose body matters.
type Message interface {
	// Subjects is what the guard must see.
	Subjects() []guard.Subject
	// Enforce edits the message so that it keeps to the policy, and tells what
	// it changed.
	Enforce(p policy.Policy) ([]policy.Change, *refusal.Refusal)
	// Encode returns the JSON to forward.
	Encode() []byte
}

// Reads reports whether Decode knows the operation; the body of any other
// control-plane operation is not looked at.
func Reads(op route.Operation) bool { return false }

// Decode reads the body of an operation that Reads knows.
func Decode(t route.Target, body []byte) (Message, *refusal.Refusal) {
	return nil, refusal.New(refusal.CodeInvalid, "cannot be read")
}

// SandboxInfo is what an answer of E2B says of one sandbox.
type SandboxInfo struct {
	ID           string
	TemplateID   string
	Domain       string
	EnvdToken    string
	TrafficToken string
	EndAt        time.Time
}

// Sandboxes reads the answers of create, connect, resume, fork, info and list.
func Sandboxes(body []byte) ([]SandboxInfo, error) { return nil, nil }
