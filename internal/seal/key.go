package seal

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go/v2/daead/subtle"

	"github.com/e2bguard/e2bguard/internal/redact"
)

const (
	// minSecret is the least number of bytes of a key.
	minSecret = 32
	// idSize is the length of a key's id, which is part of every token in the
	// clear.
	idSize = 4
)

// Key is a secret from which tokens are sealed. The zero Key is none.
type Key struct{ secret redact.Secret }

// ParseKeys reads one or more keys, separated by white space, each at least 32
// random bytes in hexadecimal or base64: what `openssl rand -hex 32` prints. Its
// errors do not repeat the text.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for i, word := range strings.Fields(text) {
		secret, err := decodeSecret(word)
		if err != nil {
			return nil, fmt.Errorf("seal key %d: %w", i+1, err)
		}
		keys = append(keys, Key{redact.NewSecret(string(secret))})
	}
	if len(keys) == 0 {
		return nil, errors.New("no seal key is given; create one with: openssl rand -hex 32")
	}
	return keys, nil
}

// GenerateKey returns a new key in the form that ParseKeys reads.
func GenerateKey() string {
	var b [minSecret]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return hex.EncodeToString(b[:])
}

func decodeSecret(word string) ([]byte, error) {
	secret, err := hex.DecodeString(word)
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if err != nil {
			secret, err = enc.DecodeString(word)
		}
	}
	switch {
	case err != nil:
		return nil, errors.New("it is neither hexadecimal nor base64; create one with: openssl rand -hex 32")
	case len(secret) < minSecret:
		return nil, fmt.Errorf("it has %d bytes, and at least %d are needed; create one with: openssl rand -hex 32", len(secret), minSecret)
	}
	return secret, nil
}

// derive returns the encryption key and its id. Both come from the secret, so
// that replicas with the same secret agree on them, and the id says nothing of
// the key.
func (k Key) derive() (material []byte, id [idSize]byte, err error) {
	secret := []byte(k.secret.Reveal())
	if len(secret) < minSecret {
		return nil, id, errors.New("a seal key is empty or too short")
	}
	if material, err = hkdf.Key(sha512.New, secret, nil, "e2bguard sealed token key v1", subtle.AESSIVKeySize); err != nil {
		return nil, id, fmt.Errorf("deriving a seal key: %w", err)
	}
	name, err := hkdf.Key(sha512.New, secret, nil, "e2bguard sealed token key id v1", idSize)
	if err != nil {
		return nil, id, fmt.Errorf("deriving a seal key's id: %w", err)
	}
	return material, [idSize]byte(name), nil
}

// Derive returns a secret for another purpose, from which neither the key nor
// what it seals with can be had.
func (k Key) Derive(purpose string) (redact.Secret, error) {
	b, err := hkdf.Key(sha512.New, []byte(k.secret.Reveal()), nil, purpose, minSecret)
	if err != nil {
		return redact.Secret{}, fmt.Errorf("deriving a secret: %w", err)
	}
	return redact.NewSecret(string(b)), nil
}
