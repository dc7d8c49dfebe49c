// Package codeenv knows which environment variables are code, and which values
// break out of the source text that E2B's code interpreter pastes them into.
package codeenv

import (
	"errors"

	"github.com/e2bguard/e2bguard/guard"
)

// Subjects returns a guard.KindCode subject for every variable whose value is
// code, in the order of their names.
func Subjects(vars map[string]string) []guard.Subject { return nil }

// Names returns the names of vars, sorted, for guard.LabelEnvNames.
func Names(vars map[string]string) []string { return nil }

// Interpolated reports whether the pair can be pasted into the code
// interpreter's templates without becoming code.
func Interpolated(name, value string) error { return errors.New("checking variable") }
