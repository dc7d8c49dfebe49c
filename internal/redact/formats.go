package redact

import (
	"regexp"
	"strconv"
	"strings"
)

// format is a kind of secret that its issuer marks by a fixed prefix, so that a
// stream can tell its first byte: see Stream. The same table makes the patterns
// of a Masker.
type format struct {
	kind     string
	prefixes []string
	// body are the bytes that may follow the prefix, as in a regular expression's
	// class, and min how many of them make it a secret.
	body string
	min  int
	// class is body, parsed.
	class class
	// whole says that the prefix must not be the tail of a longer word.
	whole bool
	// accept looks at a candidate that is not certain; nil accepts all.
	accept func(secret string) bool
}

// formats are the prefixes that issuers document.
var formats = []format{
	{kind: "jwt", prefixes: []string{"eyJ"}, body: `A-Za-z0-9_.-`, min: 20, accept: jwt.MatchString},
	{kind: "e2b_key", prefixes: []string{"sk_e2b_", "e2b_"}, body: `A-Za-z0-9`, min: 16, accept: digitAfterPrefix},
	{kind: "anthropic_key", prefixes: []string{"sk-ant-"}, body: `A-Za-z0-9_-`, min: 16},
	{kind: "api_key", prefixes: []string{"sk-"}, body: `A-Za-z0-9_-`, min: 16, whole: true, accept: hasDigit}, // Not "sk-learn-based-something".
	{kind: "stripe_key", prefixes: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"}, body: `A-Za-z0-9`, min: 16},
	{kind: "github_token", prefixes: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, body: `A-Za-z0-9`, min: 20},
	{kind: "github_token", prefixes: []string{"github_pat_"}, body: `A-Za-z0-9_`, min: 20},
	{kind: "gitlab_token", prefixes: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glsoat-"}, body: `A-Za-z0-9_-`, min: 16},
	{kind: "aws_key_id", prefixes: []string{"AKIA", "ASIA"}, body: `A-Z0-9`, min: 16},
	{kind: "google_key", prefixes: []string{"AIza"}, body: `A-Za-z0-9_-`, min: 30},
	{kind: "google_key", prefixes: []string{"GOCSPX-", "ya29."}, body: `A-Za-z0-9_-`, min: 20},
	{kind: "slack_token", prefixes: []string{"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"}, body: `A-Za-z0-9-`, min: 10},
	{kind: "slack_webhook", prefixes: []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/"}, body: `A-Za-z0-9_/-`, min: 20},
	{kind: "npm_token", prefixes: []string{"npm_"}, body: `A-Za-z0-9`, min: 30},
	{kind: "pypi_token", prefixes: []string{"pypi-"}, body: `A-Za-z0-9_-`, min: 40},
	{kind: "huggingface_token", prefixes: []string{"hf_"}, body: `A-Za-z0-9`, min: 30},
	{kind: "groq_key", prefixes: []string{"gsk_"}, body: `A-Za-z0-9`, min: 30},
	{kind: "xai_key", prefixes: []string{"xai-"}, body: `A-Za-z0-9`, min: 40},
	{kind: "replicate_token", prefixes: []string{"r8_"}, body: `A-Za-z0-9`, min: 30},
	{kind: "digitalocean_token", prefixes: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, body: `a-f0-9`, min: 40},
	{kind: "sendgrid_key", prefixes: []string{"SG."}, body: `A-Za-z0-9_.-`, min: 33, accept: sendgrid.MatchString},
}

var (
	jwt      = regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
	sendgrid = regexp.MustCompile(`^SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)
)

func init() {
	for i := range formats {
		formats[i].class = newClass(formats[i].body)
	}
}

// digitAfterPrefix tells a key from a name.
func digitAfterPrefix(secret string) bool {
	return hasDigit(secret[strings.LastIndexByte(secret, '_'):])
}

// wordBefore is what a prefix that must stand alone does not follow.
const wordBefore = `A-Za-z0-9_-`

// pattern is the format as a Masker looks for it.
func (f *format) pattern() pattern {
	p := pattern{kind: f.kind}
	quoted := make([]string, len(f.prefixes))
	for i, prefix := range f.prefixes {
		quoted[i] = regexp.QuoteMeta(prefix)
		p.hints = append(p.hints, strings.ToLower(prefix))
	}
	before := ""
	if f.whole {
		before = `(?:^|[^` + wordBefore + `])`
	}
	p.re = regexp.MustCompile(before + `(?P<s>(?:` + strings.Join(quoted, "|") + `)[` + f.body + `]{` + strconv.Itoa(f.min) + `,})`)
	if f.accept != nil {
		p.accept = func(m match) bool { return f.accept(m.secret) }
	}
	return p
}
