package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/mcp"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

func (c *call) readMCP() *refusal.Refusal {
	b, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	m, ref := mcp.Decode(c.r.Header, b)
	if ref == nil {
		c.msg = m
	}
	return ref
}

func (c *call) mcpSubjects() ([]guard.Subject, *refusal.Refusal) {
	return c.msg.(*mcp.Body).Subjects()
}

// enforceMCP makes the body be read as it was judged.
func (c *call) enforceMCP() *refusal.Refusal {
	c.r.Header.Set("Content-Type", "application/json")
	c.r.Header.Del("Content-Encoding")
	return nil
}

// filterMCP records what tools answer, or has it judged before the client gets
// it. An event stream flows on event by event.
func (c *call) filterMCP(resp *http.Response) error {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	tools := map[string]string{}
	if m, ok := c.msg.(*mcp.Body); ok {
		tools = m.Tools()
	}
	if mediaType == "text/event-stream" {
		leaveUntransformed(resp.Header)
		resp.Header.Del("Content-Length") // an event may be replaced
		resp.ContentLength = -1
		resp.Body = mcp.NewStream(resp.Body, func(event string, data []byte) []byte {
			if event != "" && event != "message" {
				return nil // the older transport's first event: where to send to
			}
			return c.settleMessage(tools, data)
		})
		return nil
	}
	if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent {
		return nil // no call was answered; clients read nothing of it
	}
	if mediaType != "application/json" {
		if c.g.cfg.JudgeToolResults && len(tools) > 0 {
			return c.refuseResult("in a form that is not MCP's")
		}
		return nil
	}
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	if replacement := c.settleMessage(tools, b); replacement != nil {
		replaceBody(resp, replacement)
	}
	return nil
}

func (c *call) refuseResult(what string) *refusal.Refusal {
	ref := refusal.New(refusal.CodeUpstream, "the MCP server answered "+what+", so its answer could not be judged and is not handed on. The tool may have run.")
	ref.RequestID = c.id
	return ref
}

// settleMessage judges or records one message of the server, takes secrets out of
// it, and returns what the client gets in its place; nil for the message itself.
func (c *call) settleMessage(tools map[string]string, data []byte) []byte {
	if replacement := c.settleResults(tools, data); replacement != nil {
		return replacement
	}
	set := c.hiding()
	if set.Empty() {
		return nil
	}
	v, err := strictjson.Decode(data)
	if err != nil {
		if clean := set.Replace(string(data)); clean != string(data) {
			return []byte(clean)
		}
		return nil
	}
	// A picture's or a sound's data would be broken by a word found in it by chance.
	v, changed := strictjson.MapStrings(v, func(key, s string) string {
		if key == "data" || key == "blob" {
			return s
		}
		return set.Replace(s)
	})
	if !changed {
		return nil
	}
	return strictjson.Encode(v)
}

// settleResults records the tool results in one message of the server, and
// returns what the client gets in its place; nil for the message itself.
func (c *call) settleResults(tools map[string]string, data []byte) []byte {
	results, err := mcp.Results(data)
	if err != nil {
		if !c.g.cfg.JudgeToolResults {
			return nil
		}
		c.g.log.Warn("an MCP server's answer was not understood", zap.String("request_id", c.id), zap.Error(err))
		return refusal.RPCError(c.refuseResult("with something that is not JSON-RPC"), c.firstCall())
	}
	for _, result := range results {
		tool, called := tools[result.ID]
		if !called && c.msg != nil {
			continue // of a list, or of the session's start
		}
		subject := guard.Subject{Kind: guard.KindTool, Target: tool, Text: result.Text, Labels: map[string]string{guard.LabelAction: "result"}}
		if !c.g.cfg.JudgeToolResults {
			sum := sha256.Sum256([]byte(result.Text))
			c.g.log.Info("tool result", zap.String("request_id", c.id), zap.String("sandbox", c.target.Sandbox), zap.String("client", c.client),
				zap.String("tool", c.g.shown(tool)), zap.Int("bytes", len(result.Text)), zap.String("sha256", hex.EncodeToString(sum[:])))
			continue
		}
		if ref := c.judgeResult(subject); ref != nil {
			ref.RequestID, ref.Reason = c.id, c.g.shown(ref.Reason)
			if data = bytes.TrimSpace(data); data[0] != '[' {
				return refusal.RPCError(ref, result.ID)
			}
			errs := make([][]byte, len(results)) // of a batch nothing is handed on
			for i := range results {
				errs[i] = refusal.RPCError(ref, results[i].ID)
			}
			return slices.Concat([]byte("["), bytes.Join(errs, []byte(",")), []byte("]"))
		}
	}
	return nil
}

func (c *call) judgeResult(subject guard.Subject) *refusal.Refusal {
	if ref := c.spendGuardCalls(1); ref != nil {
		return ref
	}
	res := c.ask(c.r.Context(), subject)
	c.recordLate(res)
	if res.ruling.Allow {
		return nil
	}
	ref := refuseRuling(res.ruling)
	ref.Reason = fmt.Sprintf("What the tool answered was blocked; the tool has run. %s", ref.Reason)
	return ref
}

// firstCall is the id that an answer for the whole body goes to.
func (c *call) firstCall() string {
	if m, ok := c.msg.(*mcp.Body); ok {
		if ids, _ := m.Calls(); len(ids) > 0 {
			return ids[0]
		}
	}
	return "null"
}
