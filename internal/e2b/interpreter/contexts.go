package interpreter

import (
	"fmt"

	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Context is what is known of a context of the interpreter.
type Context struct {
	Language string
	// Cwd is the folder it was made in; "" if the answer does not say.
	Cwd string
}

// Contexts reads the answer of POST /contexts (one context) or GET /contexts (all
// of them), by their ids. The guard needs the language for code that names a
// context and no language, and the folder for the files that it names.
func Contexts(body []byte) (map[string]Context, error) {
	v, err := strictjson.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("reading contexts: %w", err)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	contexts := make(map[string]Context, len(list))
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
		cwd, _ := o.Get("cwd")
		folder, _ := cwd.(string)
		contexts[key] = Context{name, folder}
	}
	return contexts, nil
}

// Nothing is the body of an execution of no code, in the context or the language's
// own.
func Nothing(contextID, language string) map[string]string {
	body := map[string]string{"code": ""}
	switch {
	case contextID != "":
		body["context_id"] = contextID
	case language != "":
		body["language"] = language
	}
	return body
}
