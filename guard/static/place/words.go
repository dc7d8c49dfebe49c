package place

import "strings"

// Words is a set of words to be found in texts, by their first byte.
type Words [256][]string

// NewWords makes a set; an empty word is none.
func NewWords(list ...string) *Words {
	var s Words

	for _, w := range list {
		if w != "" {
			s[w[0]] = append(s[w[0]], w)
		}
	}

	return &s
}

// In says whether a text has one of the words anywhere.
func (s *Words) In(text string) bool {
	for i := range len(text) {
		if s[text[i]] != nil && s.Begin(text[i:]) {
			return true
		}
	}

	return false
}

// Begin says whether a text begins with one of the words.
func (s *Words) Begin(text string) bool {
	if text == "" {
		return false
	}

	for _, w := range s[text[0]] {
		if strings.HasPrefix(text, w) {
			return true
		}
	}

	return false
}
