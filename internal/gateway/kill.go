package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
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
	err := c.askEnvd(ctx, "/process.Process/SendSignal", &processpb.SendSignalRequest{
		Process: &processpb.ProcessSelector{Selector: &processpb.ProcessSelector_Pid{Pid: pid}},
		Signal:  processpb.Signal_SIGNAL_SIGKILL,
	}, new(processpb.SendSignalResponse))
	var status *envdStatusError
	if errors.As(err, &status) && status.status == http.StatusNotFound {
		return nil // it has ended by itself
	}
	return err
}
