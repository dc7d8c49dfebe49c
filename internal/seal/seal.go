// Package seal makes the access tokens that clients of a vault-mode gateway
// hold instead of E2B's own. A sealed token names one sandbox, one client and
// the token E2B gave for it, encrypted and authenticated: only a holder of the
// key can make one or read what is in it.
//
// The encryption is deterministic (AES-SIV, RFC 5297): the same token has the
// same text on every replica and on every answer, which an E2B SDK needs to sign
// file URLs with it, and no nonce can be misused.
package seal

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go/v2/daead/subtle"
)

// Prefix starts every sealed token.
const Prefix = "e2bg_"

// maxText bounds the text that Open looks at; real ones have about 100 bytes,
// and those around a volume's token about 1000.
const maxText = 16 << 10

// version is bound into every token as associated data, together with the key id.
const version = 1

// Kind says what a token opens.
type Kind byte

// The kinds.
const (
	Envd    Kind = 1 // the daemon in a sandbox: commands and files
	Traffic Kind = 2 // the other ports of a sandbox
	Volume  Kind = 3 // the content of a volume
	Upload  Kind = 4 // the files of a template's build, to be sent
	Archive Kind = 5 // the files of a template's build, as they are named for E2B
)

// Token is what a sealed token says.
type Token struct {
	Kind Kind
	// Sandbox is the sandbox's id; for a Volume, the volume's; for an Upload, the
	// template's; for an Archive, what the client calls it.
	Sandbox string
	// Client is the name of the client that the token was given to.
	Client string
	// Inner is E2B's own token; "" where E2B asks for none.
	Inner string
}

// ErrInvalid is all that Open says of a text that is not a sealed token of one
// of its keys: whoever tries texts learns nothing from how they fail.
var ErrInvalid = errors.New("not a sealed token of this gateway")

// Sealer seals and opens tokens. It is safe for concurrent use.
type Sealer struct {
	keys []key // the first seals, all open
}

type key struct {
	id   [idSize]byte
	aead *subtle.AESSIV
}

// New returns a Sealer that seals with the first key and opens what any of them
// sealed. To change a key without refusing a token, add the new one last on
// every replica, then put it first on every replica, then remove the old one
// when the sandboxes of its time have ended.
func New(keys ...Key) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, errors.New("no seal key is given")
	}
	s := &Sealer{keys: make([]key, 0, len(keys))}
	for _, k := range keys {
		material, id, err := k.derive()
		if err != nil {
			return nil, err
		}
		if s.byID(id) != nil {
			return nil, errors.New("two seal keys are the same or, very unlikely, have the same id; replace one")
		}
		aead, err := subtle.NewAESSIV(material)
		if err != nil {
			return nil, fmt.Errorf("reading a seal key: %w", err)
		}
		s.keys = append(s.keys, key{id, aead})
	}
	return s, nil
}

// IDs are the names of the keys, the one that seals first. Every token shows the
// name of its key; it says nothing of the key.
func (s *Sealer) IDs() []string {
	ids := make([]string, len(s.keys))
	for i, k := range s.keys {
		ids[i] = hex.EncodeToString(k.id[:])
	}
	return ids
}

// Seal returns the token's text: Prefix, then letters, digits, "-" and "_",
// which need no escaping in a header or URL.
func (s *Sealer) Seal(t Token) string { return s.keys[0].seal(t) }

// SealAll returns the token's text under every key, the current one first. It is
// for comparing with something a client derived from its token.
func (s *Sealer) SealAll(t Token) []string {
	texts := make([]string, len(s.keys))
	for i, k := range s.keys {
		texts[i] = k.seal(t)
	}
	return texts
}

// Open reads a sealed token. Its only error is ErrInvalid. An unknown key id
// costs as much time as a forged token.
func (s *Sealer) Open(text string) (Token, error) {
	body, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(text) > maxText {
		return Token{}, ErrInvalid
	}
	raw, err := encoding.DecodeString(body)
	if err != nil || len(raw) < idSize || encoding.EncodeToString(raw) != body {
		return Token{}, ErrInvalid
	}
	k := s.byID([idSize]byte(raw))
	if k == nil {
		k = &s.keys[0] // it fails, for the id is part of what is authenticated
	}
	plain, err := k.aead.DecryptDeterministically(raw[idSize:], associated([idSize]byte(raw)))
	if err != nil {
		return Token{}, ErrInvalid
	}
	return decode(plain)
}

func (s *Sealer) byID(id [idSize]byte) *key {
	for i := range s.keys {
		if s.keys[i].id == id {
			return &s.keys[i]
		}
	}
	return nil
}

// IsSealed reports whether a text has the form of a sealed token, whoever made
// it.
func IsSealed(text string) bool { return strings.HasPrefix(text, Prefix) }

var encoding = base64.RawURLEncoding.Strict()

func (k key) seal(t Token) string {
	sealed, err := k.aead.EncryptDeterministically(encode(t), associated(k.id))
	if err != nil {
		panic(err) // only for a plaintext of more than 2^63 bytes
	}
	return Prefix + encoding.EncodeToString(append(k.id[:], sealed...))
}

func associated(id [idSize]byte) []byte {
	return append([]byte{version}, id[:]...)
}

// encode writes a token so that no two tokens have the same bytes.
func encode(t Token) []byte {
	b := []byte{byte(t.Kind)}
	for _, field := range []string{t.Sandbox, t.Client, t.Inner} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	return b
}

func decode(b []byte) (Token, error) {
	if len(b) == 0 {
		return Token{}, ErrInvalid
	}
	t := Token{Kind: Kind(b[0])}
	b = b[1:]
	for _, field := range []*string{&t.Sandbox, &t.Client, &t.Inner} {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)-width) {
			return Token{}, ErrInvalid
		}
		end := width + int(n) //nolint:gosec // At most len(b).
		*field, b = string(b[width:end]), b[end:]
	}
	if len(b) > 0 {
		return Token{}, ErrInvalid
	}
	return t, nil
}
