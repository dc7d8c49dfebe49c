package store

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/audit"
)

// Follower keeps a store up with a log that is being written. What it has missed,
// because it was not running or the database could not be written, it reads later.
type Follower struct {
	news chan struct{}
	end  context.CancelFunc
	done chan struct{}
}

// pause gathers what is written in a short time into one transaction.
const pause = 200 * time.Millisecond

// Follow begins to follow the log at path.
func Follow(s *Store, path string, log *zap.Logger) *Follower {
	ctx, end := context.WithCancel(context.Background())
	f := &Follower{news: make(chan struct{}, 1), end: end, done: make(chan struct{})}
	f.Written()
	go func() {
		defer close(f.done)
		for {
			select {
			case <-f.news:
			case <-ctx.Done():
				return
			}
			if err := s.Sync(ctx, audit.Files(path)...); err != nil && ctx.Err() == nil {
				log.Error("the audit store is behind its log; it is tried again with the next record", zap.Error(err))
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	}()
	return f
}

// Written says that there is something new; it does not block.
func (f *Follower) Written() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Close stops following.
func (f *Follower) Close() error {
	f.end()
	<-f.done
	return nil
}
