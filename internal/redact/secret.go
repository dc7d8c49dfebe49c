// Package redact finds and hides secrets: the Secret type that cannot print
// itself, and the masking of text before it leaves the house.
package redact

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Secret is a credential that cannot print itself: fmt, JSON, zap and text
// encoders all get its length and a fingerprint. Reveal is the only way out.
// The zero Secret is "not set". Compare with Equal, not with ==.
type Secret struct {
	// A pointer, as fmt asks no method of a value it finds in an unexported field,
	// nor for the verbs %p and %w, but follows no pointer there either.
	value *string
}

// NewSecret wraps a credential.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{value: &value}
}

// Reveal returns the credential, for the one header or comparison that needs it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether no credential is set.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal compares in constant time (for equal lengths of digest, whatever the
// lengths of the credentials).
func (s Secret) Equal(other string) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Fingerprint is the first 8 hex digits of the SHA-256 of the credential: enough
// to tell two apart in a log, useless to whoever reads it.
func (s Secret) Fingerprint() string {
	sum := sha256.Sum256([]byte(s.Reveal()))
	return hex.EncodeToString(sum[:4])
}

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.IsZero() {
		return "[unset]"
	}
	return fmt.Sprintf("[redacted len=%d sha256=%s]", len(s.Reveal()), s.Fingerprint())
}

// GoString implements fmt.GoStringer, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format implements fmt.Formatter, so that no verb reaches the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
