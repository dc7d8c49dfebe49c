package redact

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// pattern finds one kind of secret. Go's regular expressions take linear time.
type pattern struct {
	kind string
	// hints are literals in lower case, one of which is in every text that can
	// match: most texts hold none, and are not searched.
	hints []string
	// re finds it; what is masked is the group named "s".
	re *regexp.Regexp
	// atHint says that a match starts with a hint, and re with ^: the text between
	// hints is not searched. For hints that are common in ordinary text; re must
	// not scan far without matching.
	atHint bool
	// window bounds, in bytes, what re may look at from a hint; 0 means all.
	window int
	// accept looks at a match that is not certain; nil accepts all.
	accept func(match) bool
}

// match is a candidate: what would be masked, and what surrounds it.
type match struct {
	// ahead is the byte before the match, 0 at the start of the text; before is the
	// match up to the secret, after all that follows.
	ahead                 byte
	before, secret, after string
}

// The words that a name of a secret has in it.
var secretWords = []string{
	"secret", "token", "password", "passwd", "passphrase", "credential", "signature",
	"apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "privatekey", "private_key", "private-key",
	"authkey", "auth_key", "auth-key", "accountkey", "account_key", "account-key",
}

// Separators between a name and its value, plain, escaped for JSON or for a URL.
const (
	quotes    = `(?:\\*["']|%22|%27)?`
	separator = `\s*(?:=>|:=|[:=]|%3[AaDd])(?:\s|%20|\+)*`
	// word is what a secret of unknown form may consist of: see Masker.
	word            = `[A-Za-z0-9_.~+/=@!#%^*-]`
	authorization   = `^(?i)authorization` + quotes + `\]?(?:` + separator + `|\s*,\s*)` + quotes
	privateKeyBegin = `-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY-----`
)

// schemeWords are the authentication schemes a credential may follow.
const schemeWords = `basic|bearer|token|digest|apikey|negotiate|aws4-hmac-sha256`

var schemes = regexp.MustCompile(`(?i)^(?:` + schemeWords + `)(?:$|%20|\+)`)

// patterns is the table of what is found without being known, in order: what is
// certain first.
var patterns = slices.Concat(privateKeys, formatPatterns(), inContext)

func formatPatterns() []pattern {
	all := make([]pattern, len(formats))
	for i := range formats {
		all[i] = formats[i].pattern()
	}
	return all
}

var privateKeys = []pattern{
	{
		// The body is base64 in lines, with the line ends plain or escaped, and the
		// headers of encrypted keys. Nothing else may stand between the markers.
		kind:  "private_key",
		hints: []string{"private key-----"},
		re:    regexp.MustCompile(privateKeyBegin + `(?P<s>(?:\s|\\r|\\n|(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]+|[A-Za-z0-9+/=]{16,})+[A-Za-z0-9+/=]{0,80}(?:\s|\\r|\\n)*)-----END [A-Z0-9 ]{0,20}PRIVATE KEY-----`),
	},
	{
		// Cut off before its end: only whole lines, lest a command below be hidden.
		kind:  "private_key",
		hints: []string{"private key-----"},
		re:    regexp.MustCompile(privateKeyBegin + `(?P<s>(?:(?:\s|\\r|\\n)*[A-Za-z0-9+/=]{48,})+)`),
	},
}

const kindURLCredential = "url_credential"

// inContext are secrets that only what stands around them tells.
var inContext = []pattern{
	{
		kind:   kindURLCredential,
		hints:  []string{"://", "%3a%2f%2f", `:\/\/`},
		re:     regexp.MustCompile(`^(?:://|%3[Aa]%2[Ff]%2[Ff]|:\\/\\/)[A-Za-z0-9_.~!*+%-]*?(?::|%3[Aa])(?P<s>[A-Za-z0-9_.~!*+%=^@-]+)(?:@|%40)[A-Za-z0-9\[]`),
		atHint: true,
		window: 1024,
	},
	{
		// "Authorization: Basic dXNl…": the credential, not the scheme.
		kind:   "authorization",
		hints:  []string{"authorization"},
		re:     regexp.MustCompile(authorization + `(?:` + schemeWords + `)(?:\s|%20|\+)+(?P<s>` + word + `+)`),
		atHint: true,
	},
	{
		// "Authorization: value", without a scheme.
		kind:   "authorization",
		hints:  []string{"authorization"},
		re:     regexp.MustCompile(authorization + `(?P<s>` + word + `{6,})`),
		atHint: true,
		accept: func(m match) bool { return !schemes.MatchString(m.secret) && literal(m) },
	},
	{
		kind:   "basic_credential",
		hints:  []string{"basic"},
		re:     regexp.MustCompile(`^(?i)basic(?:\s|%20|\+)+(?P<s>[A-Za-z0-9+/_-]{6,}(?:={0,2}|(?:%3[Dd]){0,2}))`),
		atHint: true,
		accept: func(m match) bool { return startsWord(m) && isUserPassword(m.secret) },
	},
	{
		kind:   "bearer_token",
		hints:  []string{"bearer"},
		re:     regexp.MustCompile(`^(?i)bearer(?:\s|%20|\+)+(?P<s>[A-Za-z0-9_.~+/=-]{8,})`),
		atHint: true,
		accept: func(m match) bool { return startsWord(m) && hasDigit(m.secret) },
	},
	{
		kind:   "assigned",
		hints:  secretWords,
		re:     regexp.MustCompile(`^[A-Za-z0-9_-]{0,60}` + quotes + `\]?` + separator + quotes + `(?P<s>` + word + `{6,})`),
		atHint: true,
		accept: literal,
	},
}

// literal tells a value that is written out from an expression that fetches one:
// hiding the latter would hide code from a guard.
func literal(m match) bool {
	quoted := strings.HasSuffix(m.before, `"`) || strings.HasSuffix(m.before, `'`) ||
		strings.HasSuffix(m.before, "%22") || strings.HasSuffix(m.before, "%27")
	if quoted {
		return true
	}
	if m.after != "" && strings.ContainsAny(m.after[:1], "([{$`<>|") {
		return false
	}
	return hasDigit(m.secret) && !strings.ContainsAny(m.secret, "/.")
}

// isUserPassword tells the credential of Basic from the word after "basic" in a
// sentence.
func isUserPassword(credential string) bool {
	text, err := url.PathUnescape(credential)
	if err != nil {
		return false
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	return err == nil && bytes.ContainsRune(raw, ':')
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// startsWord reports whether the match is not the tail of a longer word.
func startsWord(m match) bool {
	return m.ahead != '_' && m.ahead != '-' && (m.ahead < '0' || m.ahead > '9') && (m.ahead|0x20 < 'a' || m.ahead|0x20 > 'z')
}
