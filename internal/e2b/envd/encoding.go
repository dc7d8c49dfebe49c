package envd

import (
	"mime"
	"net/http"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Codec is how messages are written.
type Codec uint8

// The codecs.
const (
	JSON Codec = iota + 1
	Proto
)

// String returns the codec's name in content types.
func (c Codec) String() string {
	if c == Proto {
		return "proto"
	}
	return "json"
}

// Encoding is how one call's messages are written and framed.
type Encoding struct {
	Codec  Codec
	Stream bool // framed (Connect streaming); otherwise one bare message
	Gzip   bool // frames may be, or the one message is, compressed
}

// ContentType is the canonical content type of the encoding.
func (e Encoding) ContentType() string {
	if e.Stream {
		return "application/connect+" + e.Codec.String()
	}
	return "application/" + e.Codec.String()
}

// Headers that change how a request is read. envd takes the first value of a
// repeated one; two that differ have no honest reading.
const (
	headerContentType     = "Content-Type"
	headerContentEncoding = "Content-Encoding"
	headerStreamEncoding  = "Connect-Content-Encoding"
	headerStreamAccept    = "Connect-Accept-Encoding"
	headerVersion         = "Connect-Protocol-Version"
	headerTimeout         = "Connect-Timeout-Ms"
	headerKeepalive       = "Keepalive-Ping-Interval"
	headerAuthorization   = "Authorization"
)

// Classify tells how a request's messages are encoded, and refuses every
// encoding that envd refuses or that is not read here (gRPC, gRPC-Web).
func Classify(m Method, h http.Header) (Encoding, *refusal.Refusal) {
	if r := refuseAmbiguous(h); r != nil {
		return Encoding{}, r
	}
	enc, r := classifyType(m, h.Get(headerContentType))
	if r != nil {
		return Encoding{}, r
	}
	if v := h.Get(headerVersion); v != "" && v != "1" {
		return Encoding{}, invalid("Connect-Protocol-Version must be 1. Use a current E2B SDK.")
	}
	compression := headerContentEncoding
	if enc.Stream {
		compression = headerStreamEncoding
		// envd ignores a whole-body encoding on a stream and then fails on the
		// framing; some proxy on the way might not.
		if v := h.Get(headerContentEncoding); v != "" && v != "identity" {
			return Encoding{}, unsupported("A stream's body cannot have Content-Encoding " + quote(v) +
				"; compress single messages with Connect-Content-Encoding: gzip, or send it plain.")
		}
	}
	switch v := h.Get(compression); v {
	case "", "identity":
	case "gzip":
		enc.Gzip = true
	default:
		return Encoding{}, unsupported("Request compression " + quote(v) + " is not supported. Send the request plain, or with gzip.")
	}
	return enc, nil
}

// classifyType accepts the content types that envd's handlers accept: in any
// letter case, with no parameter but charset=utf-8 for JSON.
func classifyType(m Method, value string) (Encoding, *refusal.Refusal) {
	base, params, err := mime.ParseMediaType(value)
	if err != nil {
		return Encoding{}, unsupported("The Content-Type cannot be read. E2B's RPC wants " + wanted(m) + ".")
	}
	if strings.HasPrefix(base, "application/grpc") {
		return Encoding{}, unsupported("gRPC and gRPC-Web are not spoken here. Use the Connect protocol (" + wanted(m) + "), as every E2B SDK does.")
	}
	enc := Encoding{Stream: m.Kind != Unary}
	for _, c := range []Codec{JSON, Proto} {
		enc.Codec = c
		if base != enc.ContentType() {
			continue
		}
		charset, ok := params["charset"]
		if len(params) == 0 || len(params) == 1 && ok && c == JSON && strings.EqualFold(charset, "utf-8") {
			return enc, nil
		}
	}
	return Encoding{}, unsupported("Content-Type " + quote(value) + " is not one this call can have. Use " + wanted(m) + ".")
}

func wanted(m Method) string {
	return Encoding{Codec: JSON, Stream: m.Kind != Unary}.ContentType()
}

// refuseAmbiguous refuses headers that are sent twice with different values.
func refuseAmbiguous(h http.Header) *refusal.Refusal {
	for _, name := range []string{
		headerContentType, headerContentEncoding, headerStreamEncoding, headerVersion,
		headerTimeout, headerKeepalive, headerAuthorization,
	} {
		values := h.Values(name)
		for _, v := range values {
			if v != values[0] {
				return invalid("The header " + name + " is sent more than once with different values. Send it once.")
			}
		}
	}
	return nil
}

func invalid(reason string) *refusal.Refusal { return refusal.New(refusal.CodeInvalid, reason) }

func unsupported(reason string) *refusal.Refusal {
	return refusal.New(refusal.CodeUnsupported, reason)
}

// quote shows a client's value in a reason: short, and without control
// characters.
func quote(s string) string {
	const limit = 80
	s = strings.ToValidUTF8(s, "?")
	out := make([]rune, 0, limit)
	for _, r := range s {
		if len(out) == limit {
			out = append(out, '…')
			break
		}
		if r < ' ' || r == 0x7F {
			r = '?'
		}
		out = append(out, r)
	}
	return `"` + string(out) + `"`
}
