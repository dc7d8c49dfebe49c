package redact

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A long text is looked at in steps of stride bytes: whatever starts in a step has
// one of its first grams at the step's last byte. For that, the first wide bytes of
// every secret must be known and unbroken.
const (
	stride = gram
	wide   = gram + stride - 1
)

// gram is how many bytes of a secret tell where one may start: a stream may give
// away fewer of them than that, so this is also from where on a secret is held
// back.
const gram = 4

// Set is secrets made ready for searching: known ones in every spelling that a
// Masker knows too, and, if asked for, those of formats with a fixed prefix. It is
// immutable and safe for concurrent use.
//
// The search looks at four bytes at a time: bitmaps tell nearly all places where
// nothing starts, a table what may start at the others.
type Set struct {
	first bitmap // the first gram of each secret
	early bitmap // the grams that start in its first stride bytes
	// byStride says that early is complete.
	byStride bool
	starts   map[uint32][]start
}

// bitmap is a set of grams, with some more that share their bits.
type bitmap [1 << 16 / 64]uint64

func (m *bitmap) add(g uint32) {
	bit := gramBit(g)
	m[bit/64] |= 1 << (bit % 64)
}

func (m *bitmap) has(g uint32) bool {
	bit := gramBit(g)
	return m[bit/64]&(1<<(bit%64)) != 0
}

// start is what may begin with four bytes.
type start struct {
	literal string
	// format is what follows the literal, a prefix; nil for a known secret.
	format *format
	// inWord says that the literal may stand inside a word.
	inWord bool
}

// NewSet returns a Set of known secrets, and of the formats with a prefix. Unset
// secrets and those shorter than 6 bytes are ignored.
func NewSet(withFormats bool, known ...Secret) *Set {
	s := &Set{starts: map[uint32][]start{}, byStride: !withFormats}
	for _, secret := range known {
		value := secret.Reveal()
		if len(value) < minKnown {
			continue
		}
		for _, spelling := range spellings(value) {
			s.add(start{literal: spelling, inWord: true})
		}
	}
	if withFormats {
		for i := range formats {
			s.addFormat(&formats[i])
		}
	}
	return s
}

func (s *Set) addFormat(f *format) {
	for _, prefix := range f.prefixes {
		st := start{literal: prefix, format: f, inWord: !f.whole}
		if len(prefix) >= gram {
			s.add(st)
			continue
		}
		for c := range 256 { // The body's first byte makes four.
			if f.class.has(byte(c)) {
				s.addAt(binary.LittleEndian.Uint32([]byte(prefix+string([]byte{byte(c)}))), st)
			}
		}
	}
}

func (s *Set) add(st start) {
	s.addAt(binary.LittleEndian.Uint32([]byte(st.literal)), st)
}

func (s *Set) addAt(g uint32, st start) {
	same := func(o start) bool { return o.literal == st.literal && o.format == st.format }
	if slices.ContainsFunc(s.starts[g], same) {
		return
	}
	s.first.add(g)
	s.byStride = s.byStride && len(st.literal) >= wide
	if s.byStride {
		for i := range stride {
			s.early.add(binary.LittleEndian.Uint32([]byte(st.literal[i:])))
		}
	}
	s.starts[g] = append(s.starts[g], st)
}

// gramBit is the place of four bytes in the bitmap, by multiplicative hashing
// (Knuth, The Art of Computer Programming, vol. 3, 6.4).
func gramBit(g uint32) uint32 { return g * 2654435761 >> 16 }

// next returns the first place in text, from i on, where a secret may start: one
// behind the last gram if there is none.
func (s *Set) next(text []byte, i int) int {
	for ; i+gram <= len(text); i++ {
		for s.byStride && i+wide <= len(text) && !s.early.has(binary.LittleEndian.Uint32(text[i+stride-1:])) {
			i += stride
		}
		if i+gram > len(text) || s.first.has(binary.LittleEndian.Uint32(text[i:])) {
			break
		}
	}
	return i
}

// Empty reports whether there is nothing to look for.
func (s *Set) Empty() bool { return s == nil || len(s.starts) == 0 }

// Replace returns a text with the secrets of the set replaced by <secret:kind>. A
// nil Set knows none.
func (s *Set) Replace(text string) string {
	if s.Empty() {
		return text
	}
	stream := NewStream(s)
	out, changed := stream.step([]byte(text), true)
	if !changed {
		return text
	}
	return string(out)
}

// found is a secret that starts at some place of a text.
type found struct {
	end int // 0: there is none
	// format is that of the secret; nil for a known one.
	format *format
}

func (f found) kind() string {
	if f.format == nil {
		return "known"
	}
	return f.format.kind
}

// at returns the longest secret that starts at text[i]. open says that the text
// must go on to tell; last says that it does not.
func (s *Set) at(text []byte, i int, last bool) (longest found, open bool) {
	for _, st := range s.starts[binary.LittleEndian.Uint32(text[i:])] {
		end, more := st.match(text, i, last)
		if more {
			return found{}, true
		}
		if end > longest.end {
			longest = found{end, st.format}
		}
	}
	return longest, false
}

// maxBreak is the longest line end: programs that print base64 break its lines.
const maxBreak = len("\r\n")

// match reports where the secret ends that starts at text[i], 0 if there is none,
// and whether more text could make one.
func (st *start) match(text []byte, i int, last bool) (end int, more bool) {
	if !st.inWord && i > 0 && wordBeforeClass.has(text[i-1]) {
		return 0, false
	}
	at, broken := i, 0
	for j := 0; j < len(st.literal); at++ {
		switch {
		case at == len(text):
			return 0, !last
		case text[at] == st.literal[j]:
			j++
			broken = 0
		case (text[at] == '\n' || text[at] == '\r') && j >= wide && broken < maxBreak && st.format == nil:
			broken++
		default:
			return 0, false
		}
	}
	if st.format == nil {
		return at, false
	}
	return st.format.extent(text, i, at, last)
}

// maxFormat is how much of a secret that is told by its format is looked at before
// it is decided; what goes on after that is dropped with it.
const maxFormat = 4 << 10

// extent is match for a format whose prefix is text[i:at].
func (f *format) extent(text []byte, i, at int, last bool) (end int, more bool) {
	for end = at; end < len(text) && f.class.has(text[end]); end++ {
	}
	if end == len(text) && end-i < maxFormat && !last {
		return 0, true
	}
	if end-at < f.min || f.accept != nil && !f.accept(string(text[i:min(end, i+maxFormat)])) {
		return 0, false
	}
	return end, false
}

// class is a set of bytes.
type class [256 / 64]uint64

// newClass reads a set as regular expressions write it, without the brackets.
func newClass(expr string) (c class) {
	for i := 0; i < len(expr); i++ {
		from, to := expr[i], expr[i]
		if strings.HasPrefix(expr[i+1:], "-") && i+2 < len(expr) {
			to = expr[i+2]
			i += 2
		}
		for b := int(from); b <= int(to); b++ {
			c[b/64] |= 1 << (b % 64)
		}
	}
	return c
}

func (c *class) has(b byte) bool { return c[b/64]&(1<<(b%64)) != 0 }

var wordBeforeClass = newClass(wordBefore)
