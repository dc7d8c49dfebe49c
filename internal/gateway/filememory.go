package gateway

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/e2bguard/e2bguard/internal/e2b/files"
)

// Bounds of what is remembered of files: the least recently used go first.
const (
	// maxFileText is the longest file, in bytes, whose text is kept or read.
	maxFileText = 256 << 10
	// Per sandbox, and of all of them.
	filesPerBox, fileBytesPerBox = 512, 4 << 20
	boxesKept, fileBytesKept     = 10_000, 128 << 20
)

// fileMemory holds the texts of files that came through the gateway, for when they
// are run. It is safe for concurrent use.
//
// What it holds of a file is true only until something else may have written it:
// see fresh.
type fileMemory struct {
	mu    sync.Mutex
	boxes *simplelru.LRU[string, *fileBox]
	bytes int
	// volumesOf are the keys of the volumes that are mounted in a sandbox; nil for
	// none.
	volumesOf func(sandbox string) []string
}

// fileBox is a sandbox's files, or a volume's.
type fileBox struct {
	files *simplelru.LRU[string, *fileText]
	bytes int
	// runs counts what was started that may write files, running what is not over.
	runs, running int
	// writes counts writes, as they begin and as they end.
	writes int
	// ran are the names of files that were run: see fileMemory.ran.
	ran []string
	// workDirs are, by user, where commands start; "" for the home.
	workDirs map[string]string
}

// fileText is the text of one file.
type fileText struct {
	content files.Content
	text    string
	// runs and writes are the box's counts when the text was written.
	runs, writes int
}

func newFileMemory() *fileMemory {
	m := new(fileMemory)
	var err error
	m.boxes, err = simplelru.NewLRU(boxesKept, func(_ string, b *fileBox) { m.bytes -= b.bytes })
	if err != nil {
		panic(err) // only for a size below one
	}
	return m
}

// box returns a sandbox's files; m.mu is held.
func (m *fileMemory) box(sandbox string) *fileBox {
	if b, ok := m.boxes.Get(sandbox); ok {
		return b
	}
	b := new(fileBox)
	b.files, _ = simplelru.NewLRU(filesPerBox, func(_ string, f *fileText) {
		b.bytes -= len(f.text)
		m.bytes -= len(f.text)
	})
	m.boxes.Add(sandbox, b)
	return b
}

// forget drops what is known of a sandbox.
func (m *fileMemory) forget(sandbox string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boxes.Remove(sandbox)
}

// started notes that something runs that may write any file; the function that is
// returned says that it is over.
func (m *fileMemory) started(sandbox string) (over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(sandbox)
	b.runs++
	b.running++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		b.running--
	}
}

// fileChange is a file of a change, and what it will hold.
type fileChange struct {
	path    string
	content files.Content // Unseen: not known
	text    string
}

// change notes that files are about to change: what is at the paths, or below
// them, is forgotten until the function that is returned is told whether it was
// done.
func (m *fileMemory) change(sandbox string, files []fileChange) (done func(ok bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(sandbox)
	b.writes++
	writes, runs := b.writes, b.runs
	for _, f := range files {
		b.drop(f.path)
	}
	return func(ok bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		alone := b.writes == writes && b.runs == runs
		b.writes++
		for _, f := range files {
			b.drop(f.path)
			// What else was written or started meanwhile may have written the same file.
			if ok && alone && f.content != 0 && len(f.text) <= maxFileText && m.boxes.Contains(sandbox) {
				m.keep(b, f)
			}
		}
	}
}

// keep adds a file; m.mu is held.
func (m *fileMemory) keep(b *fileBox, f fileChange) {
	b.files.Add(f.path, &fileText{content: f.content, text: f.text, runs: b.runs, writes: b.writes})
	b.bytes += len(f.text)
	m.bytes += len(f.text)
	for b.bytes > fileBytesPerBox {
		b.files.RemoveOldest()
	}
	for m.bytes > fileBytesKept {
		m.boxes.RemoveOldest()
	}
}

// drop forgets a file, or a folder with all that is in it.
func (b *fileBox) drop(path string) {
	b.files.Remove(path)
	for _, p := range b.files.Keys() {
		if strings.HasPrefix(p, strings.TrimSuffix(path, "/")+"/") {
			b.files.Remove(p)
		}
	}
}

// lookup returns what a file holds, as far as that is certain: nothing was
// started since it was written. Once anything was started there may be symbolic
// links, by which a write to another path is one to this; then only what was
// written last is certain.
func (m *fileMemory) lookup(sandbox, path string) (string, files.Content) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.boxes.Get(sandbox)
	if !ok {
		return "", files.Unseen
	}
	f, ok := b.files.Get(path)
	if !ok || f.runs != b.runs || b.running > 0 || b.runs > 0 && f.writes != b.writes {
		return "", files.Unseen
	}
	return f.text, f.content
}

// maxUsers bounds for how many users a folder is kept.
const maxUsers = 16

func (m *fileMemory) workDir(sandbox, user string) (dir string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.boxes.Get(sandbox); ok {
		dir, known = b.workDirs[user]
	}
	return dir, known
}

func (m *fileMemory) setWorkDir(sandbox, user, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.box(sandbox)
	if b.workDirs == nil || len(b.workDirs) >= maxUsers {
		b.workDirs = map[string]string{}
	}
	b.workDirs[user] = dir
}
