package guardapi

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/e2bguard/e2bguard/guard"
)

// maxPrompt bounds what is looked at as a prompt, in bytes; longer text is code.
const maxPrompt = 64 << 10

// isPrompt tells words from what an interpreter could run. In doubt it is code:
// that is judged, and hardly ever blocked for reading like a sentence. So every line
// starts as a sentence does, with a word in a script without small letters or one
// with a capital and small letters behind it, which names no command, keyword or
// function; and nothing in it quotes, calls, assigns, joins commands or redirects.
func isPrompt(text string) bool {
	if len(text) > maxPrompt || !utf8.ValidString(text) {
		return false
	}
	words := 0
	// Some who run a text first make plain characters of wide ones.
	for line := range strings.Lines(norm.NFKC.String(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if !startsSentence(fields[0]) || strings.ContainsFunc(line, func(r rune) bool { return !plain(r) }) {
			return false
		}
		for _, word := range fields {
			if !isWord(word) {
				return false
			}
		}
		words += len(fields)
	}
	return words >= 3 || words > 0 && strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, wordless...) })
}

// wordless are scripts that put no space between words.
var wordless = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

func startsSentence(word string) bool {
	word = strings.TrimRight(word, ".,:!?")
	first, size := utf8.DecodeRuneInString(word)
	rest := word[size:]
	switch {
	case word == "I", word == "A":
		return true
	case first > unicode.MaxASCII:
		return unicode.IsLetter(first)
	default:
		return unicode.IsUpper(first) && rest != "" && !strings.ContainsFunc(rest, func(r rune) bool { return !unicode.IsLower(r) && r != '\'' && r != '’' })
	}
}

// plain reports whether a character means nothing but itself.
func plain(r rune) bool {
	switch {
	case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
		return true
	case r > unicode.MaxASCII:
		return unicode.IsPunct(r) || unicode.In(r, unicode.Sc, unicode.So)
	default:
		return strings.ContainsRune(" \t\r\n.,:!?'-/_+@", r)
	}
}

// isWord refuses what is more than a word, number, path or address: a quotation's
// beginning or end, an option, a name with something behind a colon.
func isWord(word string) bool {
	bare := strings.TrimRight(word, ".,:!?")
	if bare == "" || bare == "-" {
		return word != "." && word != ".."
	}
	letters := []rune(bare)
	if strings.ContainsRune("-!?:,@+", letters[0]) {
		return false
	}
	for i, r := range letters {
		if r != '\'' {
			continue
		}
		if i == 0 || !unicode.IsLetter(letters[i-1]) || i+1 < len(letters) && !unicode.IsLetter(letters[i+1]) {
			return false
		}
	}
	return true
}

// fenced are the blocks of code in a text: what a model writes comes in them.
func fenced(text string) []guard.Subject {
	var found []guard.Subject
	var block strings.Builder
	fence, language := "", ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		mark := fenceOf(trimmed)
		switch {
		case fence == "" && mark != "":
			fence, language = mark, strings.ToLower(strings.Trim(strings.TrimSpace(trimmed[len(mark):]), "{}. "))
			language, _, _ = strings.Cut(language, " ")
		case fence != "" && strings.HasPrefix(mark, fence) && mark == trimmed:
			found = append(found, guard.Subject{Kind: guard.KindCode, Language: language, Text: block.String()})
			block.Reset()
			fence = ""
		case fence != "":
			block.WriteString(line)
		}
	}
	if fence != "" && block.Len() > 0 {
		found = append(found, guard.Subject{Kind: guard.KindCode, Language: language, Text: block.String()})
	}
	return found
}

// fenceOf is the run of backticks or tildes that a line starts with, three or more;
// "" for any other line.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if run := len(line) - len(strings.TrimLeft(line, c)); run >= 3 {
			return line[:run]
		}
	}
	return ""
}
