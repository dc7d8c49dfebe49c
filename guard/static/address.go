package static

import (
	neturl "net/url"
	"strings"
	"unicode"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// maxAddress bounds what is read as one address, in bytes.
const maxAddress = 64 << 10

// webSchemes are those whose addresses clients of the web read leniently.
var webSchemes = []string{"http:", "https:", "ws:", "wss:", "ftp:", "file:"}

// address reports where a text leads that a client of the web is given as an
// address. Such clients drop line breaks, take a backslash for a slash, one slash
// or none for two, and encoded or wide characters in a host for plain ones. Source:
// the WHATWG URL standard.
func (a *analysis) address(text string) {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	if len(text) > maxAddress {
		return
	}

	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	if !hasWebScheme(text) {
		return
	}

	u, err := whatwg.Parse(text)
	if err != nil {
		return
	}

	e := effect.Effect{Kind: effect.Connect, Span: effect.Span{End: len(a.subject.Text)}, Target: effect.Const(u.Href(true)), Via: "tool"}

	if u.Scheme() == "file" {
		p, err := neturl.PathUnescape(u.Pathname())
		if err != nil {
			p = u.Pathname()
		}

		e.Kind, e.Target = effect.Read, effect.Const(p)
	}

	a.effects = append(a.effects, e)
}

func hasWebScheme(text string) bool {
	for _, scheme := range webSchemes {
		if len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
			return true
		}
	}

	return false
}

// afterVerb is what follows the first word of a text, such as the address after
// FETCH.
func afterVerb(text string) string {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)

	return text[max(0, strings.IndexFunc(text, unicode.IsSpace)):]
}
