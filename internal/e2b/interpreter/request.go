// Package interpreter reads and writes the code interpreter's HTTP API: code to
// run, contexts to make, and the NDJSON stream of an execution.
//
// Facts of the API are those of E2B's code interpreter server. Its JSON reader
// takes UTF-16 and UTF-32, the last of two equal keys, and pastes environment
// variables and folders into source text unescaped; this package takes none of
// that.
package interpreter

import (
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strings"
	"unicode"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/codeenv"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Execute is the body of POST /execute.
type Execute struct {
	Code      string
	ContextID string
	Language  string // as the server normalises it; "" if not named
	EnvVars   map[string]string

	object *strictjson.Object
}

// DecodeExecute reads the body of POST /execute strictly.
func DecodeExecute(h http.Header, body []byte) (*Execute, *refusal.Refusal) {
	o, r := decodeObject(h, body)
	if r != nil {
		return nil, r
	}
	e := &Execute{object: o}
	if v, ok := o.Get("code"); !ok {
		return nil, invalid("The body has no code, so nothing was run.")
	} else if e.Code, ok = v.(string); !ok {
		return nil, invalid("code must be a string, so nothing was run.")
	}
	if e.ContextID, r = optionalString(o, "context_id"); r != nil {
		return nil, r
	}
	if e.Language, r = languageOf(o); r != nil {
		return nil, r
	}
	if e.ContextID != "" && e.Language != "" {
		return nil, invalid("Name either context_id or language, not both, so that it is clear what runs the code.")
	}
	if e.EnvVars, r = envVars(o); r != nil {
		return nil, r
	}
	return e, nil
}

// Environment is the variables that the code is given.
func (e *Execute) Environment() map[string]string { return e.EnvVars }

// Words is the code.
func (e *Execute) Words() []string { return []string{e.Code} }

// Subjects returns what a guard must see. contextLanguage is the language of
// the context the code runs in, "" if unknown; it is not asked for where the
// body names a language, or neither a language nor a context (python). The
// variables are refused without a guard where they would become code.
func (e *Execute) Subjects(contextLanguage string) ([]guard.Subject, *refusal.Refusal) {
	language := e.Language
	switch {
	case language != "":
	case e.ContextID != "":
		language = contextLanguage
	default:
		language = defaultLanguage
	}
	for _, name := range sortedKeys(e.EnvVars) {
		if err := codeenv.Interpolated(name, e.EnvVars[name]); err != nil {
			return nil, refuseVariable(err)
		}
	}
	subjects := []guard.Subject{{Kind: guard.KindCode, Language: language, Text: e.Code, Target: e.ContextID}}
	subjects = append(subjects, codeenv.Subjects(e.EnvVars)...)
	if len(e.EnvVars) > 0 {
		names := strings.Join(codeenv.Names(e.EnvVars), ",")
		for i := range subjects {
			if subjects[i].Labels == nil {
				subjects[i].Labels = make(map[string]string)
			}
			subjects[i].Labels[guard.LabelEnvNames] = names
		}
	}
	return subjects, nil
}

func refuseVariable(err error) *refusal.Refusal {
	r := refusal.New(refusal.CodePolicy, "Blocked by policy: the code interpreter pastes environment variables into source code, and "+err.Error()+
		". Nothing was run. Set the variable from the code itself, or leave the character out.")
	r.Err = err
	return r
}

// Encode writes the canonical body; keys not known here survive.
func (e *Execute) Encode() ([]byte, error) { return strictjson.Encode(e.object), nil }

// CreateContext is the body of POST /contexts.
type CreateContext struct {
	Language string // as the server normalises it: "python" if not named
	Cwd      string // "" if not named

	object *strictjson.Object
}

// DecodeContext reads the body of POST /contexts strictly and refuses a cwd
// that would break out of the source text the server pastes it into.
func DecodeContext(h http.Header, body []byte) (*CreateContext, *refusal.Refusal) {
	o, r := decodeObject(h, body)
	if r != nil {
		return nil, r
	}
	c := &CreateContext{object: o}
	if c.Cwd, r = optionalString(o, "cwd"); r != nil {
		return nil, r
	}
	if c.Language, r = languageOf(o); r != nil {
		return nil, r
	}
	if c.Language == "" {
		c.Language = defaultLanguage
	}
	for _, ch := range c.Cwd {
		if !plainInPath(ch) {
			return nil, refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: the code interpreter pastes cwd into source code, and the character %q in it could become code. "+
				"Use a folder whose name has letters, digits and plain punctuation only.", ch))
		}
	}
	if strings.HasPrefix(c.Cwd, "-") {
		return nil, refusal.New(refusal.CodePolicy, "Blocked by policy: a cwd that starts with \"-\" is read as an option. Put \"./\" before it.")
	}
	return c, nil
}

// plainInPath reports whether a character means only itself in every template
// that cwd is pasted into: an IPython %cd line (which expands $ and {}, and ends
// at every Unicode line break) and quoted strings of JavaScript, R, Java and
// bash.
func plainInPath(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) || strings.ContainsRune(" /._-~+@=,:()[]#%&^", c)
}

// Subjects returns what a guard must see.
func (c *CreateContext) Subjects() ([]guard.Subject, *refusal.Refusal) {
	if c.Cwd == "" {
		return nil, nil
	}
	return []guard.Subject{{
		Kind: guard.KindFile, Target: c.Cwd,
		Labels: map[string]string{guard.LabelAction: "list", guard.LabelCwd: c.Cwd},
	}}, nil
}

// Encode writes the canonical body; keys not known here survive.
func (c *CreateContext) Encode() ([]byte, error) { return strictjson.Encode(c.object), nil }

// CanonicalHeaders makes the request headers fit a body of Encode.
func CanonicalHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Del("Content-Encoding")
	h.Del("Content-Length")
}

// decodeObject reads a JSON object from a request that the server would read as
// JSON.
func decodeObject(h http.Header, body []byte) (*strictjson.Object, *refusal.Refusal) {
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		values := h.Values(name)
		for _, v := range values {
			if v != values[0] {
				return nil, invalid("The header " + name + " is sent more than once with different values. Send it once.")
			}
		}
	}
	if e := strings.ToLower(h.Get("Content-Encoding")); e != "" && e != "identity" {
		return nil, refusal.New(refusal.CodeUnsupported, "The code interpreter takes no compressed bodies. Send the body plain.")
	}
	if ct := h.Get("Content-Type"); ct != "" {
		base, _, err := mime.ParseMediaType(ct)
		subtype, ok := strings.CutPrefix(base, "application/")
		if err != nil || !ok || subtype != "json" && !strings.HasSuffix(subtype, "+json") {
			return nil, refusal.New(refusal.CodeUnsupported, "The Content-Type must be application/json.")
		}
	}
	o, err := strictjson.DecodeObject(body)
	if err != nil {
		r := invalid("The body cannot be decoded, so nothing was run: " + err.Error() + ".")
		r.Err = err
		return nil, r
	}
	return o, nil
}

// optionalString is a member that is a string, null or absent.
func optionalString(o *strictjson.Object, key string) (string, *refusal.Refusal) {
	v, _ := o.Get(key)
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", invalid(key + " must be a string, so nothing was run.")
	}
}

func envVars(o *strictjson.Object) (map[string]string, *refusal.Refusal) {
	v, _ := o.Get("env_vars")
	if v == nil {
		return nil, nil
	}
	members, ok := v.(*strictjson.Object)
	if !ok {
		return nil, invalid("env_vars must be an object, so nothing was run.")
	}
	vars := make(map[string]string, members.Len())
	for _, name := range members.Keys() {
		value, _ := members.Get(name)
		s, ok := value.(string)
		if !ok {
			return nil, invalid("The values of env_vars must be strings, so nothing was run.")
		}
		vars[name] = s
	}
	return vars, nil
}

const defaultLanguage = "python"

// languageOf reads the language and puts it into the body as it was read here:
// lower case, without space around it, aliases resolved.
func languageOf(o *strictjson.Object) (string, *refusal.Refusal) {
	named, r := optionalString(o, "language")
	if r != nil || named == "" {
		return "", r
	}
	language := strings.ToLower(strings.TrimSpace(named))
	switch language {
	case "js":
		language = "javascript"
	case "ts":
		language = "typescript"
	}
	for _, c := range language {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("_+.#-", c) {
			return "", invalid("The language's name has characters that no kernel's name has. Use python, javascript, typescript, r, java or bash.")
		}
	}
	if language == "" {
		return "", invalid("The language is blank. Leave it out, or use python, javascript, typescript, r, java or bash.")
	}
	o.Set("language", language)
	return language, nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func invalid(reason string) *refusal.Refusal { return refusal.New(refusal.CodeInvalid, reason) }
