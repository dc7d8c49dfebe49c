package interpreter

import (
	"fmt"

	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// ContextLanguages reads the answer of POST /contexts (one context) or GET
// /contexts (all of them): the language of each context, by its id. The guard
// needs it for code that names a context and no language.
func ContextLanguages(body []byte) (map[string]string, error) {
	v, err := strictjson.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("reading contexts: %w", err)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	languages := make(map[string]string, len(list))
	for _, e := range list {
		o, ok := e.(*strictjson.Object)
		if !ok {
			return nil, fmt.Errorf("reading contexts: %s is no context", strictjson.TypeName(e))
		}
		id, _ := o.Get("id")
		language, _ := o.Get("language")
		name, ok := language.(string)
		key, isString := id.(string)
		if !ok || !isString {
			return nil, fmt.Errorf("reading contexts: a context without id or language")
		}
		languages[key] = name
	}
	return languages, nil
}
