package files

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Compose is the body of POST /files/compose: files that become one, in their
// order, and are gone then.
type Compose struct {
	Sources     []string // Canonical
	Destination string   // Canonical
	Username    string

	object *strictjson.Object
}

// The members of a compose. envd reads their names in any case, and of one that is
// there twice the last. Source: envd.
const (
	composeSources     = "source_paths"
	composeDestination = "destination"
	composeUsername    = "username"
)

// DecodeCompose reads a compose strictly: what envd could read differently is
// refused.
func DecodeCompose(h http.Header, body []byte) (*Compose, *refusal.Refusal) {
	if ref := refuseRepeated(h); ref != nil {
		return nil, ref
	}
	if e := strings.ToLower(h.Get("Content-Encoding")); e != "" && e != "identity" {
		return nil, unsupported("The sandbox takes no compressed body here. Send it plain.")
	}
	o, err := strictjson.DecodeObject(body)
	if err != nil {
		ref := invalid("The body cannot be decoded, so nothing was composed: " + err.Error() + ".")
		ref.Err = err
		return nil, ref
	}
	known := []string{composeSources, composeDestination, composeUsername}
	for _, key := range o.Keys() {
		for _, name := range known {
			if key != name && strings.EqualFold(key, name) {
				return nil, invalid("The member " + strconv.Quote(key) + " must be written " + name + ".")
			}
		}
	}
	c := &Compose{object: o}
	list, _ := o.Get(composeSources)
	sources, ok := list.([]any)
	if !ok || len(sources) == 0 {
		return nil, invalid(composeSources + " must be a list of paths that is not empty.")
	}
	for _, v := range sources {
		path, ref := composePath(v, composeSources)
		if ref != nil {
			return nil, ref
		}
		c.Sources = append(c.Sources, path)
	}
	to, _ := o.Get(composeDestination)
	var ref *refusal.Refusal
	if c.Destination, ref = composePath(to, composeDestination); ref != nil {
		return nil, ref
	}
	switch name, _ := o.Get(composeUsername); name := name.(type) {
	case nil:
	case string:
		c.Username = name
	default:
		return nil, invalid(composeUsername + " must be a string.")
	}
	canonical := make([]any, len(c.Sources))
	for i, s := range c.Sources {
		canonical[i] = s
	}
	o.Set(composeSources, canonical)
	o.Set(composeDestination, c.Destination)
	return c, nil
}

func composePath(v any, name string) (string, *refusal.Refusal) {
	path, ok := v.(string)
	if !ok || path == "" || strings.ContainsRune(path, 0) {
		return "", invalid(name + " must be paths: text that is not empty and holds no NUL byte.")
	}
	return Canonical(path), nil
}

// Encode writes the canonical body; members not known here survive.
func (c *Compose) Encode() ([]byte, error) { return strictjson.Encode(c.object), nil }
