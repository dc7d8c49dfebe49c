package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// interruptGrace is how long code has to end after it was interrupted, which the
// interpreter does some seconds after its stream was closed.
const interruptGrace = 15 * time.Second

// endCode sees to it that code whose stream the gateway has closed, which
// interrupts it, has come to an end: else its context is started anew, and if that
// does not help either, the sandbox is killed. Each step has a bound.
func (c *call) endCode(cause string) {
	m, ok := c.msg.(*interpreter.Execute)
	if !ok {
		return
	}
	after := c.afterwards()
	contextID, language := m.ContextID, m.Language
	c.g.background.after(c.g.interruptGrace, func() {
		err := after.codeEnded(contextID, language)
		if err == nil {
			return
		}
		if restart := after.restartContext(contextID, language); restart == nil {
			if err = after.codeEnded(contextID, language); err == nil {
				return
			}
		}
		after.killSandbox(cause, "code would not end at its limit", err)
	})
}

// codeEnded asks for the end of an empty piece of code, which comes after that of
// any other in the context.
func (c *call) codeEnded(contextID, language string) error {
	b, err := json.Marshal(interpreter.Nothing(contextID, language))
	if err != nil {
		return err
	}
	answer, err := c.askInterpreter(c.g.background.ctx, http.MethodPost, "/execute", string(b))
	if err == nil && !strings.Contains(answer, "end_of_execution") {
		err = fmt.Errorf("the interpreter answered %.200q", answer)
	}
	return err
}

// restartContext starts a context anew: the one that was named, or the only one of
// the language.
func (c *call) restartContext(contextID, language string) error {
	if contextID == "" {
		answer, err := c.askInterpreter(c.g.background.ctx, http.MethodGet, "/contexts", "")
		if err != nil {
			return err
		}
		contexts, err := interpreter.Contexts([]byte(answer))
		if err != nil {
			return err
		}
		if language == "" {
			language = "python"
		}
		for id, context := range contexts {
			switch {
			case context.Language != language:
			case contextID != "":
				return fmt.Errorf("there are several contexts of %s", language)
			default:
				contextID = id
			}
		}
	}
	if contextID == "" {
		return fmt.Errorf("there is no context of %s", language)
	}
	_, err := c.askInterpreter(c.g.background.ctx, http.MethodPost, "/contexts/"+contextID+"/restart", "")
	return err
}

// askInterpreter makes a call of the gateway's own to the interpreter of this
// call's sandbox and reads the answer to its end.
func (c *call) askInterpreter(ctx context.Context, method, path, body string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.sandboxURL().JoinPath(path).String(), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	route.Target{Sandbox: c.target.Sandbox, Port: c.target.Port}.SetHeaders(req.Header)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	c.setTokens(req.Header)
	resp, err := c.g.fwd.data.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("calling the interpreter: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("reading the interpreter's answer: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("the interpreter answered %d", resp.StatusCode)
	}
	return string(b), nil
}
