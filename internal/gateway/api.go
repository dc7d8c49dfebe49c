package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// apiAnswer is what E2B's control plane says to the gateway's own question.
type apiAnswer struct {
	status int
	header http.Header
	body   []byte
}

// askAPI sends a request of the gateway's own to E2B's control plane and reads
// the answer whole. The path is below api_url. In pass-through mode the gateway
// has no key, and asks with the client's.
func (g *Gateway) askAPI(ctx context.Context, method, path, query string, client http.Header) (apiAnswer, error) {
	u := g.fwd.api.JoinPath(path)
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return apiAnswer{}, fmt.Errorf("asking E2B: %w", err)
	}
	if g.vault() {
		req.Header.Set("X-Api-Key", g.cfg.Upstream.APIKey.Reveal())
	} else {
		for _, name := range []string{"X-Api-Key", "Authorization"} {
			if v := client.Get(name); v != "" {
				req.Header.Set(name, v)
			}
		}
	}
	resp, err := g.fwd.control.RoundTrip(req)
	if err != nil {
		return apiAnswer{}, fmt.Errorf("asking E2B: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		err = errors.New("the answer is larger than e2bguard reads")
	}
	if err != nil {
		return apiAnswer{}, fmt.Errorf("reading E2B's answer: %w", err)
	}
	return apiAnswer{resp.StatusCode, resp.Header, b}, nil
}
