package gateway

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/e2bguard/e2bguard/internal/e2b/archive"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
)

// Bounds of what is remembered of the files of builds: the least recently used go
// first, and are uploaded again when they are needed.
const (
	archivesKept, archiveBytesKept = 4096, 96 << 20
	// archiveTextBytes is the most text that is kept of one upload.
	archiveTextBytes = 8 << 20
)

// archiveMemory holds what came through the gateway for builds, between its upload
// and the build that says where it is to go. It is safe for concurrent use.
type archiveMemory struct {
	mu    sync.Mutex
	all   *simplelru.LRU[archiveKey, *archived]
	bytes int
}

// archiveKey is what a client calls its files.
type archiveKey struct{ client, hash string }

// archived is one upload. It is not changed once it is in the memory.
type archived struct {
	// refused is why the files were not stored; "" if they were.
	refused string
	// name is what E2B calls them.
	name    string
	entries []archive.Entry
	// files are those with content of their own, by path.
	files map[string]archivedFile
}

// archivedFile is what is known of a file.
type archivedFile struct {
	content files.Content
	text    string
	// forgotten says that it has a text which was not kept, for its length.
	forgotten bool
	// class is what the file was judged as when it was uploaded.
	class files.Class
}

func newArchiveMemory() *archiveMemory {
	m := new(archiveMemory)
	var err error
	m.all, err = simplelru.NewLRU(archivesKept, func(_ archiveKey, a *archived) { m.bytes -= a.size() })
	if err != nil {
		panic(err) // only for a size below one
	}
	return m
}

func (m *archiveMemory) put(key archiveKey, a *archived) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Remove(key)
	m.all.Add(key, a)
	m.bytes += a.size()
	for m.bytes > archiveBytesKept && m.all.Len() > 1 {
		m.all.RemoveOldest()
	}
}

func (m *archiveMemory) get(key archiveKey) (*archived, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.Get(key)
}

// size is about what it takes in memory.
func (a *archived) size() int {
	const perEntry = 300
	n := len(a.refused) + perEntry*len(a.entries)
	for _, e := range a.entries {
		n += 2*len(e.Path) + len(e.Target)
	}
	for _, f := range a.files {
		n += len(f.text)
	}
	return n
}
