package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// killTimeout bounds the call that ends a process.
const killTimeout = 5 * time.Second

// kill ends the process of this call in its sandbox, with the client's own
// credentials. It is needed where the gateway ends a stream: envd lets a process
// run on when nobody listens.
func (c *call) kill(pid uint32) {
	if pid == 0 {
		return // a Connect by tag, or no start event yet: there is nothing to name
	}
	// The client may be gone by now, and the process must be gone all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), killTimeout)
	go func() {
		defer cancel()
		if err := c.sendKill(ctx, pid); err != nil {
			c.g.log.Warn("could not kill a process that passed its limit; it may run on until its sandbox ends",
				zap.String("request_id", c.id), zap.String("sandbox", c.target.Sandbox), zap.Uint32("pid", pid), zap.Error(err))
		}
	}()
}

func (c *call) sendKill(ctx context.Context, pid uint32) error {
	b, err := protojson.Marshal(&processpb.SendSignalRequest{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}},
		Signal:  processpb.Signal_SIGNAL_SIGKILL,
	})
	if err != nil {
		return err
	}
	u := c.g.fwd.sandbox.JoinPath("/process.Process/SendSignal")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(b))
	if err != nil {
		return err
	}
	route.Target{Sandbox: c.target.Sandbox, Port: c.target.Port}.SetHeaders(req.Header)
	req.Header.Set("Content-Type", "application/json")
	for _, name := range []string{headerEnvdToken, "Authorization"} {
		if v := c.r.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	c.setTokens(req.Header)
	resp, err := c.g.fwd.data.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return fmt.Errorf("envd answered %d: %s", resp.StatusCode, answer)
	}
	return nil
}
