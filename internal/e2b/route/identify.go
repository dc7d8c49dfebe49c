package route

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Identify decides, once, which sandbox, port and operation a request means.
// publicDomain is the gateway's own domain, "" if it has none. Whatever has no
// interpretation, or more than one, is refused; the Target then says the plane
// as far as it is known, for whoever renders the refusal.
func Identify(r *http.Request, publicDomain string) (Target, *refusal.Refusal) {
	if ref := checkForm(r); ref != nil {
		return Target{Plane: Control}, ref
	}
	at, ref := locate(r, publicDomain)
	if ref != nil {
		return Target{Plane: guessPlane(r.URL.Path)}, ref
	}
	t := Target{Plane: planeOf(at, r.URL.Path), Sandbox: at.sandbox, Port: at.port, ByHost: at.byHost}
	if t.Plane == Port {
		return identifyPort(t, r)
	}
	return identifyPath(t, r)
}

// SetHeaders replaces the routing headers of a request that goes upstream by
// the canonical ones of the target; on the control plane there are none.
func (t Target) SetHeaders(h http.Header) {
	h.Del(HeaderSandboxID)
	h.Del(HeaderSandboxPort)
	if t.Sandbox != "" {
		h[HeaderSandboxID] = []string{t.Sandbox}
		h[HeaderSandboxPort] = []string{utoa(t.Port)}
	}
}

// checkForm refuses the forms of a request target that have no place here.
func checkForm(r *http.Request) *refusal.Refusal {
	switch {
	case r.Method == http.MethodConnect:
		return unroutable("CONNECT asks for a forward proxy, which e2bguard is not. Set E2B_API_URL and E2B_SANDBOX_URL instead of a proxy")
	case r.URL.Opaque != "" || r.URL.User != nil:
		return unroutable("the request target is no path")
	case r.URL.Host != "" && !strings.EqualFold(r.URL.Host, r.Host):
		return unroutable("the request target and the Host header name different hosts, so the request has two meanings")
	case !strings.HasPrefix(r.URL.Path, "/") && r.URL.Path != "":
		return unroutable("the request target is no path")
	}
	return nil
}

// planeOf says which plane a place and a decoded path mean.
func planeOf(at place, decoded string) Plane {
	switch at.port {
	case 0:
		if decoded == "/volumecontent" || strings.HasPrefix(decoded, "/volumecontent/") {
			return Volume
		}
		if ownPaths[decoded] {
			return Own
		}
		return Control
	case PortEnvd:
		if decoded == "/files" || strings.HasPrefix(decoded, "/files/") {
			return Files
		}
		return Envd
	case PortInterpreter:
		return Interpreter
	case PortMCP:
		return MCP
	default:
		return Port
	}
}

// guessPlane says which plane's client sends such a path, so that a request that
// could not be routed is answered in a form its client reads.
func guessPlane(decoded string) Plane {
	switch {
	case decoded == "/files" || strings.HasPrefix(decoded, "/files/"):
		return Files
	case strings.HasPrefix(decoded, "/process.Process/"), strings.HasPrefix(decoded, "/filesystem.Filesystem/"):
		return Envd
	case decoded == "/execute", decoded == "/contexts", strings.HasPrefix(decoded, "/contexts/"):
		return Interpreter
	default:
		return Control
	}
}

// identifyPort leaves the path as it is: what listens there is the user's, and
// may tell "//" from "/".
func identifyPort(t Target, r *http.Request) (Target, *refusal.Refusal) {
	t.Path, t.RawPath = r.URL.Path, r.URL.EscapedPath()
	if t.Path == "" {
		t.Path, t.RawPath = "/", "/"
	}
	e := lookup(t.Plane, r.Method, nil)
	t.Row = e.Row
	return t, nil
}

// identifyPath matches the decoded path against the table and rebuilds the one
// form that is forwarded.
func identifyPath(t Target, r *http.Request) (Target, *refusal.Refusal) {
	if t.Plane == Envd || t.Plane == Files {
		if e := internalRoute(r.URL.Path); e != nil {
			t.Plane, t.Row, t.Path, t.RawPath = Envd, e.Row, e.Pattern, e.Pattern
			return t, nil
		}
	}
	if ref := checkQuery(r.URL.RawQuery); ref != nil {
		return t, ref
	}
	var buf [8]string
	raw := r.URL.EscapedPath()
	segs, ref := decodeSegments(buf[:0], raw)
	if ref != nil {
		return t, ref
	}
	e := lookup(t.Plane, r.Method, segs)
	if e == nil || !servedAsWritten(t.Plane, raw, e) {
		if t.Plane == Control {
			if signed, ok := identifySigned(r, raw, segs); ok {
				return signed, nil
			}
			if guess := guessPlane(r.URL.Path); guess != Control {
				return Target{Plane: guess}, unroutable("the request names no sandbox. On this host the headers " + HeaderSandboxID + " and " + HeaderSandboxPort + " do. " + oldSDKs)
			}
		}
		if t.Plane == Own && r.Method != http.MethodPost {
			return t, wrongMethod(r)
		}
		return t, unknown(t.Plane, r)
	}
	if e.Operation == Preflight {
		return identifyPreflight(t, e, r, segs)
	}
	t.Row = e.Row
	if len(e.names) == 0 {
		t.Path, t.RawPath = e.Pattern, e.Pattern
		return t, nil
	}
	t.Params = e.values(segs)
	if ref := checkParams(t.Params); ref != nil {
		return t, ref
	}
	t.Path, t.RawPath = e.rebuild(t.Params)
	if t.Path != t.RawPath && ambiguous(t.Plane, r.Method, t.Path, e) {
		return t, unknown(t.Plane, r)
	}
	return t, nil
}

// identifySigned knows a signed URL in URL form. It names no sandbox: which one
// is meant only the holder of the tokens can tell, by the signature.
func identifySigned(r *http.Request, raw string, segs []string) (Target, bool) {
	e := lookup(Files, r.Method, segs)
	if e == nil || e.Operation != FilesRead && e.Operation != FilesWrite || !servedAsWritten(Files, raw, e) || !r.URL.Query().Has("signature") {
		return Target{}, false
	}
	return Target{Plane: Files, Port: PortEnvd, Path: e.Pattern, RawPath: e.Pattern, Row: e.Row}, true
}

// identifyPreflight lets a browser ask whether it may ask. A preflight has no
// body and names the method it asks for; anything else is no preflight.
func identifyPreflight(t Target, e *entry, r *http.Request, segs []string) (Target, *refusal.Refusal) {
	if r.ContentLength != 0 || r.Header.Get("Origin") == "" || r.Header.Get("Access-Control-Request-Method") == "" {
		return t, unknown(t.Plane, r)
	}
	t.Row, t.Path, t.RawPath = e.Row, "/", "/"
	if len(segs) == 0 {
		return t, nil
	}
	var escaped strings.Builder
	for _, seg := range segs {
		escaped.WriteByte('/')
		escaped.WriteString(escapeSegment(seg))
	}
	t.Path, t.RawPath = "/"+strings.Join(segs, "/"), escaped.String()
	return t, nil
}

// internalRoute finds envd's internal routes as its edge does, on the cleaned
// decoded path, so that no spelling of them gets through.
func internalRoute(decoded string) *entry {
	clean := path.Clean("/" + decoded)
	root := trees[treeKey{Envd, "*"}]
	if n := root.literal[clean[1:]]; n != nil {
		return n.row
	}
	return nil
}

// servedAsWritten refuses the escaped spellings that envd itself does not know:
// it decodes the method of an RPC and nothing else.
func servedAsWritten(plane Plane, raw string, e *entry) bool {
	if plane != Envd && plane != Files || !strings.Contains(raw, "%") {
		return true
	}
	service := e.Pattern[:strings.LastIndexByte(e.Pattern, '/')+1]
	return plane == Envd && service != "/" && strings.HasPrefix(raw, service)
}

// decodeSegments splits an escaped path and decodes each segment once. Paths
// that another reader could take for a different one are refused.
func decodeSegments(segs []string, raw string) ([]string, *refusal.Refusal) {
	if raw == "" || raw == "/" {
		return segs, nil
	}
	for seg := range strings.SplitSeq(raw[1:], "/") {
		if strings.IndexByte(seg, '%') >= 0 {
			decoded, err := url.PathUnescape(seg)
			if err != nil {
				return nil, badPath(raw)
			}
			seg = decoded
		}
		if seg == "" || seg == "." || seg == ".." || !plainText(seg) {
			return nil, badPath(raw)
		}
		segs = append(segs, seg)
	}
	return segs, nil
}

// plainText reports whether a segment is UTF-8 without control characters and
// backslashes.
func plainText(seg string) bool {
	for i := range len(seg) {
		if c := seg[i]; c < 0x20 || c == 0x7f || c == '\\' {
			return false
		}
	}
	return utf8.ValidString(seg)
}

// checkQuery refuses queries that parsers read differently: a ";" voids the
// parameter for Go's parser and separates two for others.
func checkQuery(raw string) *refusal.Refusal {
	bad := strings.IndexByte(raw, ';') >= 0
	for i := 0; i < len(raw) && !bad; i++ {
		switch c := raw[i]; {
		case c < 0x20 || c == 0x7f:
			bad = true
		case c == '%':
			bad = i+2 >= len(raw) || !isHex(raw[i+1]) || !isHex(raw[i+2])
		}
	}
	if bad {
		return refusal.New(refusal.CodeInvalid, `e2bguard could not read this request: its query holds a ";", a broken escape or a control character, which servers read differently. Escape such characters as %XX.`)
	}
	return nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// checkParams makes variables canonical and refuses those E2B would not take.
func checkParams(params map[string]string) *refusal.Refusal {
	for name, value := range params {
		switch name {
		case "sandboxID":
			id, ok := SandboxID(value)
			if !ok {
				return refusal.New(refusal.CodeInvalid, "e2bguard could not read this request: "+quote(value)+" is no sandbox id. An id is lower-case letters and digits.")
			}
			params[name] = id
		case "templateID", "alias":
			// A template of another team is "team/name:tag", its slash escaped.
			team, rest, _ := strings.Cut(value, "/")
			if value[0] == '/' || value[len(value)-1] == '/' || strings.Contains(rest, "/") || team == ".." || team == "." || rest == ".." || rest == "." {
				return refusal.New(refusal.CodeInvalid, "e2bguard could not read this request: "+quote(value)+" is no template. A template is a name or id, or \"team/name:tag\".")
			}
		case ParamVolume:
			if strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
				return refusal.New(refusal.CodeInvalid, "e2bguard could not read this request: "+quote(value)+" is no volume id. An id is letters, digits and dashes.")
			}
		default:
			if strings.Contains(value, "/") {
				return refusal.New(refusal.CodeInvalid, "e2bguard could not read this request: the "+name+" in its path holds a slash.")
			}
		}
	}
	return nil
}

// SandboxID returns the id in a text that names a sandbox: E2B takes
// "<id>-<client id>" too, and ignores what follows the dash.
func SandboxID(text string) (string, bool) {
	id, client, _ := strings.Cut(text, "-")
	return id, validID(id) && !strings.Contains(client, "-")
}

// ambiguous reports whether a server that decodes the whole path before it
// splits it would see another operation.
func ambiguous(plane Plane, method, decoded string, e *entry) bool {
	other := lookup(plane, method, strings.Split(decoded[1:], "/"))
	return other != nil && other.Operation != e.Operation
}

// rebuild writes the pattern with its variables, decoded and escaped.
func (e *entry) rebuild(params map[string]string) (decoded, escaped string) {
	var d, r strings.Builder
	next := 0
	for pattern := e.Pattern[1:]; pattern != ""; {
		seg, rest, _ := strings.Cut(pattern, "/")
		pattern = rest
		d.WriteByte('/')
		r.WriteByte('/')
		if seg[0] != '{' {
			d.WriteString(seg)
			r.WriteString(seg)
			continue
		}
		value := params[e.names[next]]
		next++
		d.WriteString(value)
		r.WriteString(escapeSegment(value))
	}
	return d.String(), r.String()
}

// escapeSegment escapes as JavaScript's encodeURIComponent does, which is what
// E2B's SDKs send.
func escapeSegment(s string) string {
	plain := func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.!~*'()", c) >= 0
	}
	i := 0
	for i < len(s) && plain(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func badPath(raw string) *refusal.Refusal {
	return refusal.New(refusal.CodeUnknown, "e2bguard refused the path "+quote(raw)+": it has empty, relative or undecodable parts, which servers read differently. Send the path as E2B's API names it.")
}

// unknown names the path as it was sent: an escaped one may look known when
// decoded.
func unknown(plane Plane, r *http.Request) *refusal.Refusal {
	return refusal.New(refusal.CodeUnknown, r.Method+" "+quote(r.URL.EscapedPath())+" is not an operation e2bguard knows on the "+string(plane)+" plane, so it was not forwarded. Check the method and path; if a newer E2B has it, e2bguard needs an update first. Do not retry by another route.")
}

// wrongMethod answers for an endpoint of the gateway's own: all of them take POST.
func wrongMethod(r *http.Request) *refusal.Refusal {
	ref := refusal.New(refusal.CodeUnknown, r.Method+" is not what "+quote(r.URL.Path)+" takes: send POST.")
	ref.Status = http.StatusMethodNotAllowed
	return ref
}
