package emulator

import "sync"

// broadcast hands each value to every subscriber and waits for the slow ones:
// a process that nobody reads fast enough is held back, as by a pipe. With no
// subscriber, values are dropped.
type broadcast[T any] struct {
	mu     sync.Mutex
	subs   map[*subscription[T]]struct{}
	closed bool
}

type subscription[T any] struct {
	values chan T
	gone   chan struct{}
	once   sync.Once
}

const subscriptionBuffer = 64

func (b *broadcast[T]) subscribe() *subscription[T] {
	s := &subscription[T]{values: make(chan T, subscriptionBuffer), gone: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(s.values)
		return s
	}
	if b.subs == nil {
		b.subs = make(map[*subscription[T]]struct{})
	}
	b.subs[s] = struct{}{}
	return s
}

func (b *broadcast[T]) unsubscribe(s *subscription[T]) {
	s.once.Do(func() { close(s.gone) })
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subs, s)
}

// send must not be called from two goroutines with close between them.
func (b *broadcast[T]) send(v T) {
	b.mu.Lock()
	subs := make([]*subscription[T], 0, len(b.subs))
	for s := range b.subs {
		subs = append(subs, s)
	}
	b.mu.Unlock()
	for _, s := range subs {
		select {
		case s.values <- v:
		case <-s.gone:
		}
	}
}

func (b *broadcast[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for s := range b.subs {
		close(s.values)
	}
	b.subs = nil
}
