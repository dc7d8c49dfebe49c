package audit

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/e2bguard/e2bguard/internal/redact"
)

// Key makes a chain that nobody can rewrite who does not have it. The zero Key
// is none.
type Key struct {
	material redact.Secret
	id       string
}

// NewKey derives a key from a secret, such as a seal key.
func NewKey(secret redact.Secret) (Key, error) {
	material, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), nil, "e2bguard audit key v1", sha256.Size)
	if err != nil {
		return Key{}, fmt.Errorf("deriving an audit key: %w", err)
	}
	id, err := hkdf.Key(sha256.New, []byte(secret.Reveal()), nil, "e2bguard audit key id v1", 4)
	if err != nil {
		return Key{}, fmt.Errorf("deriving an audit key's id: %w", err)
	}
	return Key{redact.NewSecret(string(material)), hex.EncodeToString(id)}, nil
}

// ID names the key and says nothing of it; "" for no key.
func (k Key) ID() string { return k.id }

func (k Key) mac(hash []byte) string {
	m := hmac.New(sha256.New, []byte(k.material.Reveal()))
	m.Write(hash)
	return hex.EncodeToString(m.Sum(nil))
}

// state is where a chain has got to.
type state struct {
	Chain string `json:"chain"`
	File  uint64 `json:"file"`
	Seq   uint64 `json:"seq"`
	Hash  string `json:"hash"`
}

// genesis is what the first record of a chain follows.
var genesis = hex.EncodeToString(make([]byte, sha256.Size))

// The end of every line: its last members, in this order.
const (
	hexSum    = 2 * sha256.Size
	hashStart = `,"hash":"`
	macStart  = `","mac":"`
)

// seal appends the line of a record to b and moves the state on. body is the
// record's JSON without seq and what belongs to the chain.
func (s *state) seal(b, body []byte, key Key) []byte {
	start := len(b)
	b = fmt.Appendf(b, `{"seq":%d,%s,"prev":"%s"`, s.Seq+1, body[1:len(body)-1], s.Hash)
	sum := sha256.Sum256(b[start:])
	s.Seq++
	s.Hash = hex.EncodeToString(sum[:])
	b = append(b, hashStart...)
	b = append(b, s.Hash...)
	if key.id != "" {
		b = append(b, macStart...)
		b = append(b, key.mac(sum[:])...)
	}
	return append(b, "\"}\n"...)
}

// errNotRecord says that a line does not have the form of a record.
var errNotRecord = errors.New("it is not a record")

// open reads a line and checks it by itself: its form, its hash and, if there are
// keys, its MAC.
func open(line []byte, keys []Key) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errNotRecord, err)
	}
	end := hashStart + r.Hash
	if r.MAC != "" {
		end += macStart + r.MAC
	}
	end += `"}`
	covered, ok := bytes.CutSuffix(line, []byte(end))
	if !ok || len(r.Hash) != hexSum || r.Seq == 0 {
		return r, errNotRecord
	}
	sum := sha256.Sum256(covered)
	if hex.EncodeToString(sum[:]) != r.Hash {
		return r, errors.New("it was changed: its hash is not that of its text")
	}
	return r, checkMAC(r, sum[:], keys)
}

func checkMAC(r Record, sum []byte, keys []Key) error {
	if len(keys) == 0 {
		return nil
	}
	if r.MAC == "" {
		return errors.New("it carries no MAC, so whoever can write the file may have written it")
	}
	for _, k := range keys {
		if hmac.Equal([]byte(k.mac(sum)), []byte(r.MAC)) {
			return nil
		}
	}
	return errors.New("its MAC was not made with the given key: it was forged, or belongs to another key")
}
