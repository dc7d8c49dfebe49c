package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// pyBody is a request body as the server's framework reads it.
type pyBody map[string]any

// fieldError is one entry of FastAPI's 422 answer.
type fieldError struct {
	Loc  []any        `json:"loc"`
	Msg  string       `json:"msg"`
	Type string       `json:"type"`
	Ctx  *syntaxPlace `json:"ctx,omitempty"`
}

// syntaxPlace is where a body stops being JSON.
type syntaxPlace struct {
	Msg    string `json:"msg"`
	Doc    string `json:"doc"`
	Pos    int    `json:"pos"`
	LineNo int    `json:"lineno"`
	ColNo  int    `json:"colno"`
}

const maxInterpreterBody = 64 << 20

// readBody reads and records a JSON object, or answers what the server would.
// A missing content type counts as JSON, a charset is ignored.
func readBody(w http.ResponseWriter, r *http.Request) (pyBody, bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInterpreterBody))
	if err != nil {
		fastJSON(w, http.StatusBadRequest, map[string]string{"detail": "There was an error parsing the body"})
		return nil, false
	}
	refuse := func(e fieldError) (pyBody, bool) {
		fastJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": []fieldError{e}})
		return nil, false
	}
	if len(raw) == 0 {
		return refuse(fieldError{Loc: []any{"body"}, Msg: "field required", Type: "value_error.missing"})
	}
	notDict := fieldError{Loc: []any{"body"}, Msg: "value is not a valid dict", Type: "type_error.dict"}
	if header := r.Header.Get("Content-Type"); header != "" {
		kind, _, _ := mime.ParseMediaType(header)
		main, sub, _ := strings.Cut(kind, "/")
		if main != "application" || (sub != "json" && !strings.HasSuffix(sub, "+json")) {
			return refuse(notDict)
		}
	}
	v, err := pyLoads(raw)
	var syntax *pySyntaxError
	if errors.As(err, &syntax) {
		line, col := syntax.place()
		return refuse(fieldError{
			Loc: []any{"body", syntax.pos}, Msg: syntax.Error(), Type: "value_error.jsondecode",
			Ctx: &syntaxPlace{syntax.message, syntax.doc, syntax.pos, line, col},
		})
	}
	if err != nil {
		fastJSON(w, http.StatusBadRequest, map[string]string{"detail": "There was an error parsing the body"})
		return nil, false
	}
	body, ok := v.(map[string]any)
	if !ok {
		return refuse(notDict)
	}
	if record, err := json.Marshal(body); err == nil {
		pendingOf(r.Context()).commit(record)
	}
	return body, true
}

func (b pyBody) optional(name string) (string, []fieldError) {
	switch v := b[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	return "", []fieldError{{Loc: []any{"body", name}, Msg: "str type expected", Type: "type_error.str"}}
}

// execution is a checked /execute request.
type execution struct {
	code, contextID, language string
	env                       map[string]string
}

func parseExecution(b pyBody) (execution, []fieldError) {
	var x execution
	var problems, more []fieldError
	if _, ok := b["code"]; !ok {
		problems = append(problems, fieldError{Loc: []any{"body", "code"}, Msg: "field required", Type: "value_error.missing"})
	}
	x.code, more = b.optional("code")
	problems = append(problems, more...)
	x.contextID, more = b.optional("context_id")
	problems = append(problems, more...)
	x.language, more = b.optional("language")
	problems = append(problems, more...)
	switch env := b["env_vars"].(type) {
	case nil:
	case map[string]any:
		x.env = make(map[string]string, len(env))
		for k, v := range env {
			switch v := v.(type) {
			case string:
				x.env[k] = v
			case float64:
				x.env[k] = fmt.Sprint(v)
			default:
				problems = append(problems, fieldError{Loc: []any{"body", "env_vars", k}, Msg: "str type expected", Type: "type_error.str"})
			}
		}
	default:
		problems = append(problems, fieldError{Loc: []any{"body", "env_vars"}, Msg: "value is not a valid dict", Type: "type_error.dict"})
	}
	return x, problems
}

func (in *interpreter) execute(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	x, problems := parseExecution(body)
	if len(problems) > 0 {
		fastJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": problems})
		return
	}
	if x.contextID != "" && x.language != "" {
		fastText(w, http.StatusBadRequest, "Only one of context_id or language can be provided")
		return
	}
	c, err := in.contextFor(r.Context(), x)
	if err != nil {
		fastText(w, http.StatusInternalServerError, err.Error())
		return
	}
	if c == nil {
		fastText(w, http.StatusNotFound, "Context "+x.contextID+" not found")
		return
	}
	// The real answer has no content type; nil keeps net/http from guessing one.
	w.Header()["Content-Type"] = nil
	out := &lineWriter{w: w, flush: http.NewResponseController(w).Flush}
	in.run(r.Context(), c, x, out)
	in.sb.abortIfGone()
	out.write(map[string]any{}, "end_of_execution")
}

// contextFor finds the context that a request means, making a language's
// default one at first use.
func (in *interpreter) contextFor(ctx context.Context, x execution) (*codeContext, error) {
	if x.contextID != "" {
		return in.get(x.contextID), nil
	}
	language := normalLanguage(x.language)
	in.mu.Lock()
	c := in.contexts[in.defaults[language]]
	in.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := in.create(ctx, language, interpreterHome)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.defaults[language] = c.id
	return c, nil
}

// Timing of an execution. The keepalive's source is the code interpreter's
// server; how long an interrupt may take is ours.
const (
	keepaliveInterval = 5 * time.Second
	interruptAgain    = 500 * time.Millisecond
	interruptGrace    = 5 * time.Second
)

// run executes code and streams what happens. A client that goes away
// interrupts the kernel.
func (in *interpreter) run(ctx context.Context, c *codeContext, x execution, out *lineWriter) {
	ticker := time.NewTicker(keepaliveInterval)
	defer ticker.Stop()
	for waiting := true; waiting; {
		select {
		case <-c.busy:
			waiting = false
		case <-ctx.Done():
			return
		}
	}
	defer c.release()
	if strings.Contains(x.code, loneSurrogate) {
		// Python cannot encode it for the kernel, and loses the connection.
		out.failure("WebSocketError", "The connections was lost, rerun the code to get the results")
		out.failure("UnexpectedEndOfExecution", "Connection to the execution was closed before the execution was finished")
		return
	}
	if err := in.start(c); err != nil {
		out.failure("ContextRestarting", err.Error())
		return
	}
	c.count++
	out.write(map[string]any{"execution_count": c.count}, "number_of_executions")
	k, marker := c.kernel, randomHex(8)
	if err := k.send(x.code, x.env, c.count, marker); err != nil {
		in.restarted(c, out)
		return
	}
	var giveUp, again <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case e, ok := <-k.events:
			switch {
			case !ok:
				in.sb.abortIfGone()
				in.restarted(c, out)
				return
			case e.E == "done":
				k.awaitMarkers(marker, out.event)
				return
			}
			out.event(e)
			ticker.Reset(keepaliveInterval)
		case <-ticker.C:
			out.write(map[string]any{}, "keepalive")
		case <-done:
			k.interrupt()
			done, giveUp, again = nil, time.After(interruptGrace), time.After(interruptAgain)
		case <-again:
			// Between running and waiting, node may have missed it.
			k.interrupt()
			again = time.After(interruptAgain)
		case <-giveUp:
			k.close()
			giveUp = nil
		}
	}
}

// restarted forgets a dead kernel; the next execution starts a new one.
func (in *interpreter) restarted(c *codeContext, out *lineWriter) {
	c.kernel.close()
	in.mu.Lock()
	c.kernel, c.count = nil, 0
	in.mu.Unlock()
	out.failure("ContextRestarting", "Context was restarted")
}

// unquoted takes the quotes off a string's representation, as the server does.
func unquoted(text string) string {
	const quotes = 2
	for _, q := range []string{"'", `"`} {
		if len(text) >= quotes && strings.HasPrefix(text, q) && strings.HasSuffix(text, q) {
			return text[1 : len(text)-1]
		}
	}
	return text
}

// lineWriter writes the answer: one JSON object a line, spelled as Python
// spells it, and sent at once.
type lineWriter struct {
	w     io.Writer
	flush func() error
}

// field order of the lines. Source: the code interpreter's server.
var lineFields = []string{
	"execution_count", "name", "value", "traceback", "text", "timestamp", "html", "markdown", "svg", "png", "jpeg", "pdf",
	"latex", "json", "javascript", "data", "chart", "extra", "is_main_result",
}

func (l *lineWriter) write(fields map[string]any, kind string) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	fmt.Fprintf(&b, `{"type":"%s"`, kind)
	for _, name := range lineFields {
		v, ok := fields[name]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, `,"%s":`, name)
		if encoder.Encode(v) != nil {
			return
		}
		b.Truncate(b.Len() - 1) // Encode's newline.
	}
	b.WriteByte('}')
	_, _ = l.w.Write(append(pyStyle(b.Bytes()), '\n')) // A client that is gone is noticed by its context.
	_ = l.flush()
}

func (l *lineWriter) failure(name, value string) {
	l.write(map[string]any{"name": name, "value": value, "traceback": ""}, "error")
}

// pyTime is how datetime.isoformat spells a time in UTC.
const pyTime = "2006-01-02T15:04:05.000000-07:00"

func (l *lineWriter) event(e kernelEvent) {
	switch e.E {
	case "stdout", "stderr":
		l.write(map[string]any{"text": e.Text, "timestamp": time.Now().UTC().Format(pyTime)}, e.E)
	case "error":
		l.write(map[string]any{"name": e.Name, "value": e.Value, "traceback": e.Traceback}, "error")
	case "result":
		fields := map[string]any{"extra": map[string]any{}, "is_main_result": e.Main}
		var data map[string]json.RawMessage
		if json.Unmarshal(e.Data, &data) != nil {
			return
		}
		for name, v := range data {
			fields[name] = v
		}
		var text string
		if json.Unmarshal(data["text"], &text) == nil {
			fields["text"] = unquoted(text)
		}
		l.write(fields, "result")
	}
}
