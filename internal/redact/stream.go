package redact

// Stream replaces the secrets of a Set by <secret:kind> in a text that comes piece
// by piece. Of a known secret at most 3 bytes are given out before it is clear that
// it is one; of a secret that is told by its format, at most 3 of its public prefix.
// What cannot become a secret is never held back. A Stream is for one text and one
// goroutine; stdout and stderr are two.
type Stream struct {
	set *Set
	// buf[keep:given] was given out or replaced, and is kept for what may have
	// started in it; buf[given:] is held back.
	buf         []byte
	keep, given int
	// next is the first place where it is not known yet whether a secret starts.
	next int
	out  []byte
	// swallow is the format of a secret that may go on in the next piece.
	swallow *format
	padded  bool
}

// NewStream returns a Stream.
func NewStream(set *Set) *Stream { return &Stream{set: set} }

// NewPaddedStream returns a Stream that puts as many bytes in the place of a secret
// as it had, so that lengths and positions stay.
func NewPaddedStream(set *Set) *Stream { return &Stream{set: set, padded: true} }

// Next takes the next piece and returns what may be given out now, and whether
// that differs from the piece. What it returns is valid until the next call.
func (s *Stream) Next(piece []byte) (out []byte, changed bool) { return s.step(piece, false) }

// End returns what is still held back, at the end of the text.
func (s *Stream) End() []byte {
	out, _ := s.step(nil, true)
	return out
}

// Held is how many bytes are held back.
func (s *Stream) Held() int { return len(s.buf) - s.given }

func (s *Stream) step(piece []byte, last bool) (out []byte, changed bool) {
	rest := s.swallowed(piece)
	changed = s.Held() > 0 || len(rest) < len(piece)
	s.given, s.next = s.given-s.keep, s.next-s.keep
	s.buf = append(s.buf[:copy(s.buf, s.buf[s.keep:])], rest...)
	s.out = s.out[:0]
	s.pad(len(piece) - len(rest))

	text, first := s.buf, s.given
	done := first     // text[:done] is given out or replaced
	hold := len(text) // where a secret may have started
	i := s.set.next(text, s.next)
	for ; i+gram <= len(text); i = s.set.next(text, i+1) {
		secret, open := s.set.at(text, i, last)
		if open {
			hold = i
			break
		}
		if secret.end <= done {
			continue
		}
		begins := i >= done || done == first // Else it goes on where another one ends.
		changed = true
		s.out = append(s.out, text[done:max(done, i)]...)
		s.replace(secret, secret.end-max(done, i), begins)
		done = secret.end
		if secret.format != nil && done == len(text) {
			s.swallow = secret.format
		}
	}
	s.given, s.next = max(done, hold), i
	s.keep = max(0, min(s.given, s.next-1)) // The byte before says whether it would be inside a word.
	if !changed && s.given == len(text) {
		return text[first:], false
	}
	s.out = append(s.out, text[done:s.given]...)
	return s.out, true
}

// replace writes what stands for n bytes of a secret, its first ones or further ones.
func (s *Stream) replace(secret found, n int, first bool) {
	if m := mark(secret.kind()); first && (!s.padded || n >= len(m)) {
		s.out = append(s.out, m...)
		n -= len(m)
	}
	s.pad(n)
}

func (s *Stream) pad(n int) {
	for ; s.padded && n > 0; n-- {
		s.out = append(s.out, '*')
	}
}

// swallowed is what is left of a piece behind a secret that began before it.
func (s *Stream) swallowed(piece []byte) []byte {
	if s.swallow == nil {
		return piece
	}
	for i, c := range piece {
		if !s.swallow.class.has(c) {
			s.swallow = nil
			return piece[i:]
		}
	}
	return nil
}
