package demo

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
)

// attackMark stands in every attack the demo tries, as a comment or in a name.
// The emulator runs what it is given on this machine, so a request that carries
// the mark past the gateway must not be acted on, whatever the gateway thinks.
const attackMark = "e2bguard-demo-attack"

// fuse stands between gateway and emulator and breaks a request whose body
// carries an attack.
type fuse struct {
	next http.Handler

	mu    sync.Mutex
	blown []string
}

var errBlown = errors.New("an attack came past the gateway")

func (f *fuse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = &fusedBody{ReadCloser: r.Body, blow: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.blown = append(f.blown, r.Method+" "+r.URL.Path)
	}}
	f.next.ServeHTTP(w, r)
}

// reached lists the requests that carried an attack past the gateway.
func (f *fuse) reached() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.blown...)
}

// fusedBody fails, for good, at the read that completes the mark.
type fusedBody struct {
	io.ReadCloser
	blow func()
	tail []byte // The last bytes read, in which a mark could have begun.
	err  error
}

func (b *fusedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	seen := append(b.tail, p[:n]...)
	if bytes.Contains(seen, []byte(attackMark)) {
		b.blow()
		b.err = errBlown
		return 0, b.err
	}
	keep := min(len(seen), len(attackMark)-1)
	b.tail = append([]byte(nil), seen[len(seen)-keep:]...)
	return n, err
}
