package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// envdStatusError is an answer of envd's that is not a success.
type envdStatusError struct {
	status int
	body   string
}

func (e *envdStatusError) Error() string {
	return fmt.Sprintf("envd answered %d: %s", e.status, e.body)
}

// askEnvd makes a unary call of the gateway's own to the sandbox of this call, with
// the client's own credentials.
func (c *call) askEnvd(ctx context.Context, path string, request, answer proto.Message) error {
	b, err := protojson.Marshal(request)
	if err != nil {
		return fmt.Errorf("writing a call to envd: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.sandboxURL().JoinPath(path).String(), bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("writing a call to envd: %w", err)
	}
	route.Target{Sandbox: c.target.Sandbox, Port: c.target.Port}.SetHeaders(req.Header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", ownAgent)
	for _, name := range []string{headerEnvdToken, "Authorization"} {
		if v := c.r.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	c.setTokens(req.Header)
	resp, err := c.g.fwd.data.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("calling envd: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return &envdStatusError{resp.StatusCode, string(b)}
	}
	b, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading envd's answer: %w", err)
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, answer); err != nil {
		return fmt.Errorf("reading envd's answer: %w", err)
	}
	return nil
}
