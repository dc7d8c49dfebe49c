package effect

import "strings"

// Hole is the rune that stands for an unknown part of a Value's text. It is a
// private-use rune; the engine replaces it in the text under review before any
// front end sees it, so it never comes from outside.
const Hole = '\uF8FF'

// HoleText is Hole as a string.
const HoleText = string(Hole)

// MaxText is the longest text, in bytes, that folding may produce. Longer
// results become unknown, with a NoteLimited.
const MaxText = 256 << 10

// Taint is a set of sources that a value's content came from.
type Taint uint32

// The sources.
const (
	// TaintFile is content of a file; Origin holds the path where known.
	TaintFile Taint = 1 << iota
	// TaintEnv is one environment variable; Origin holds its name.
	TaintEnv
	// TaintEnvAll is the whole environment.
	TaintEnvAll
	// TaintSecret is known to be a secret by what it is: a key store's answer, a
	// metadata endpoint's token, a password prompt. Front ends set it only when
	// the API itself yields secrets (keyring, browser stores); paths and names of
	// variables are the engine's business.
	TaintSecret
	// TaintDownload is a response body or a downloaded file; Origin: the URL.
	TaintDownload
	// TaintNetwork was read from a socket or a listening server's request.
	TaintNetwork
	// TaintDecoded came out of base64, hex, rot13, xor, zlib, character codes,
	// reversal or another encoding that hides text.
	TaintDecoded
	// TaintInput is standard input, arguments or a prompt.
	TaintInput
	// TaintInfo is a fact about host or user (hostname, user, processes).
	TaintInfo
	// TaintOutput is the output of a program that was started.
	TaintOutput
	// TaintCapture is keyboard, screen, clipboard, camera or microphone.
	TaintCapture
	// TaintPickle came out of a deserialiser.
	TaintPickle
	// TaintRandom is random.
	TaintRandom
	// TaintSocket is not content but a socket, or its descriptor.
	TaintSocket
	// TaintEncoded was put into an encoding (base64, hex), as data is that is to
	// leave unnoticed or inside another format.
	TaintEncoded
	// TaintSelf is not content but the path of the file that the code itself is.
	TaintSelf
)

var taintNames = []struct {
	t    Taint
	name string
}{
	{TaintFile, "file"},
	{TaintEnv, "env"},
	{TaintEnvAll, "environment"},
	{TaintSecret, "secret"},
	{TaintDownload, "download"},
	{TaintNetwork, "network"},
	{TaintDecoded, "decoded"},
	{TaintInput, "input"},
	{TaintInfo, "host info"},
	{TaintOutput, "program output"},
	{TaintCapture, "capture"},
	{TaintPickle, "pickle"},
	{TaintRandom, "random"},
	{TaintSocket, "socket"},
	{TaintEncoded, "encoded"},
	{TaintSelf, "own path"},
}

// Any says whether any source of x is set.
func (t Taint) Any(x Taint) bool { return t&x != 0 }

// String lists the sources, separated by commas.
func (t Taint) String() string {
	var names []string

	for _, n := range taintNames {
		if t.Any(n.t) {
			names = append(names, n.name)
		}
	}

	return strings.Join(names, ", ")
}

// Value is what is known about a value: a constant (no Hole in Text), partly
// known (text with holes), or unknown (just a hole); in each case with the
// sources that flowed into it. The zero Value is the empty constant.
type Value struct {
	// Text is the known text; each run of unknown content is one Hole.
	Text string
	// Taint is where the content came from.
	Taint Taint
	// Origin is the path, URL or variable the first source names, several joined
	// by a line feed.
	Origin string
	// Ref identifies an unknown value, so that two effects on the same variable
	// can be told to concern the same thing: the variable's name, or the text of
	// the expression. Empty for constants.
	Ref string
	// Many says that it stands for each of many numbers in turn, or has such a
	// number in it.
	Many bool
}

// BlockRef starts the Ref of an unknown value of a known, large size, which
// follows in bytes.
const BlockRef = "block:"

// Processes is the Origin of the numbers of all processes there are.
const Processes = "all processes"

// Const is a known text.
func Const(s string) Value { return Value{Text: s} }

// Unknown is an unknown value with the given sources.
func Unknown(t Taint) Value { return Value{Text: HoleText, Taint: t} }

// IsConst says whether the whole text is known.
func (v Value) IsConst() bool { return !strings.Contains(v.Text, HoleText) }

// IsEmpty says whether it is known to be the empty text.
func (v Value) IsEmpty() bool { return v.Text == "" }

// IsUnknown says whether nothing of the text is known.
func (v Value) IsUnknown() bool { return v.Text == HoleText }

// Prefix is the text before the first unknown part.
func (v Value) Prefix() string {
	before, _, _ := strings.Cut(v.Text, HoleText)

	return before
}

// Has says whether any of the sources flowed into v.
func (v Value) Has(t Taint) bool { return v.Taint.Any(t) }

// With returns v with sources added.
func (v Value) With(t Taint) Value {
	v.Taint |= t

	return v
}

// From returns v with a source and where it came from added.
func (v Value) From(t Taint, origin string) Value {
	v.Taint |= t
	v.Origin = joinOrigin(v.Origin, origin)

	return v
}

// Key identifies what v stands for: its text if constant, else its Ref; empty
// if neither is known.
func (v Value) Key() string {
	if v.IsConst() {
		return v.Text
	}

	if v.Ref != "" {
		return "$" + v.Ref
	}

	if v.IsUnknown() {
		return ""
	}

	return v.Text
}

// Origins lists the sources' names.
func (v Value) Origins() []string {
	if v.Origin == "" {
		return nil
	}

	return strings.Split(v.Origin, "\n")
}

// Concat joins values: texts one after the other, sources united.
func Concat(vs ...Value) Value {
	if len(vs) == 1 {
		return vs[0]
	}

	var (
		out Value
		b   strings.Builder
	)

	for _, v := range vs {
		out.Taint |= v.Taint
		out.Many = out.Many || v.Many
		out.Origin = joinOrigin(out.Origin, v.Origin)

		if out.Ref == "" {
			out.Ref = v.Ref
		}

		t := v.Text
		if strings.HasPrefix(t, HoleText) && strings.HasSuffix(b.String(), HoleText) {
			t = t[len(HoleText):]
		}

		b.WriteString(t)
	}

	out.Text = b.String()
	if len(out.Text) > MaxText {
		out.Text = HoleText
	}

	if out.IsConst() {
		out.Ref = ""
	}

	return out
}

// Merge is what is known where either value may flow: equal constants stay,
// anything else is unknown, with the sources of both.
func Merge(a, b Value) Value {
	out := Value{Text: a.Text, Taint: a.Taint | b.Taint, Origin: joinOrigin(a.Origin, b.Origin), Ref: a.Ref}
	if a.Text != b.Text {
		out.Text = HoleText
	}

	return out
}

// maxOrigins bounds how many sources a value names.
const maxOrigins = 8

func joinOrigin(a, b string) string {
	switch {
	case b == "" || a == b:
		return a
	case a == "":
		return b
	}

	have := strings.Split(a, "\n")
	for add := range strings.SplitSeq(b, "\n") {
		if len(have) >= maxOrigins {
			break
		}

		known := false

		for _, h := range have {
			if h == add {
				known = true

				break
			}
		}

		if !known {
			have = append(have, add)
		}
	}

	return strings.Join(have, "\n")
}
