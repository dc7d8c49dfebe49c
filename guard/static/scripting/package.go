package scripting

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// ParsePackage reads the scripts of a package.json, a composer.json or a
// deno.json. It goes through the text token by token, so that of a key that
// appears twice both values are read.
func ParsePackage(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	// A mark of the byte order is no part of the text; its place keeps spans.
	if rest, ok := strings.CutPrefix(text, "\uFEFF"); ok {
		text = "   " + rest
	}

	dec := json.NewDecoder(strings.NewReader(text))

	var (
		// keys are the names that lead to the value; lists have an empty one.
		keys  []string
		isKey []bool
	)

	// done is called after each value: in an object a key follows.
	done := func() {
		if n := len(isKey); n > 0 && keys[n-1] != "" {
			keys[n-1], isKey[n-1] = "", true
		}
	}

	for {
		if !b.Spend(1) {
			r.Note(effect.NoteBudget, int(dec.InputOffset()), "out of steps")

			return r
		}

		start := int(dec.InputOffset())

		tok, err := dec.Token()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				looseScripts(&r, text, start)
			}

			return r
		}

		n := len(isKey)

		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				keys, isKey = append(keys, ""), append(isKey, v == '{')
			} else {
				keys, isKey = keys[:n-1], isKey[:n-1]
				done()
			}
		case string:
			if n > 0 && isKey[n-1] {
				// The mark keeps an empty name apart from no name.
				keys[n-1], isKey[n-1] = "."+v, false

				continue
			}

			if n > 1 && (keys[0] == ".scripts" || keys[0] == ".tasks") {
				packageScript(&r, v, effect.Span{Start: start, End: int(dec.InputOffset())})
			}

			done()
		default:
			done()
		}
	}
}

// loosePair is a name and a text of JSON, or of what is nearly JSON.
var loosePair = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"\s*:\s*("(?:[^"\\\n]|\\.)*")`)

// looseScripts judges what follows a fault, such as a comment, that a tool may
// bear: every text there may be a script.
func looseScripts(r *effect.Result, text string, at int) {
	for _, m := range loosePair.FindAllStringSubmatchIndex(text[at:], -1) {
		var script string
		if json.Unmarshal([]byte(text[at+m[2]:at+m[3]]), &script) == nil {
			packageScript(r, script, effect.Span{Start: at + m[2], End: at + m[3]})
		}
	}
}

// packageScript embeds one script. Composer calls itself and PHP with an "@",
// and methods by their names.
func packageScript(r *effect.Result, script string, span effect.Span) {
	if rest, ok := strings.CutPrefix(script, "@"); ok {
		if !strings.HasPrefix(rest, "php ") && !strings.HasPrefix(rest, "composer ") {
			return
		}

		script = rest
	}

	embedBuild(r, script, span, -1, "script")
}

// embedBuild embeds shell text that a build tool runs some time after its file
// was written.
func embedBuild(r *effect.Result, script string, span effect.Span, offset int, via string) {
	if strings.TrimSpace(script) == "" {
		return
	}

	r.Embed(effect.Embedded{Lang: "bash", Text: effect.Const(script), Span: span, Offset: offset, Via: via})
}
