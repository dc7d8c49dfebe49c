package archive

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// Placed is a file where a COPY step puts it.
type Placed struct {
	// Entry has the content: of a file behind a link, the file's.
	Entry Entry
	// Path is absolute if the destination is.
	Path string
}

// maxPlaced bounds the places of one step: links to folders multiply them.
const maxPlaced = 200_000

// Source is the file or folder of the archive that a COPY step with this source
// moves: what stands before the first wildcard.
func Source(pattern string) string {
	pattern = strings.TrimSuffix(pattern, "/") + "/"
	source := "."
	for i := range len(pattern) {
		switch pattern[i] {
		case '/':
			source = pattern[:i]
			continue
		case '*', '?', '[', '{':
		default:
			continue
		}
		break
	}
	return path.Clean(source)
}

// Place says where the files of an archive end up, and where the links do. A
// destination that ends with a slash is a folder. Of one that does not, E2B's
// builder moves a single file there, or into it if it is a folder already: both
// are said.
func Place(entries []Entry, source, destination string) (files []Placed, links []string, err error) {
	p := placer{byPath: make(map[string]Entry, len(entries)), source: source, to: strings.TrimRight(destination, "/")}
	single := false
	for _, e := range entries {
		if !inside(source, e.Path) && e.Kind != Folder {
			return nil, nil, denied(e.Path, fmt.Sprintf("is none that the step copies, whose source is %q", shorten(source)))
		}
		if e.Kind == Link && (e.Path == source || !within(source, e)) {
			return nil, nil, denied(e.Path, fmt.Sprintf("is a symbolic link to %q, which is not among the files that are copied; copy the file itself, or use resolveSymlinks", shorten(e.Target)))
		}
		single = single || e.Path == source && e.Kind == File
		p.byPath[e.Path] = e
	}
	if single {
		e, name := p.byPath[source], path.Base(source)
		if strings.HasSuffix(destination, "/") || destination == "." {
			return []Placed{{e, path.Join(destination, name)}}, nil, nil
		}
		return []Placed{{e, path.Clean(destination)}, {e, path.Join(destination, name)}}, nil, nil
	}
	for _, e := range entries {
		if e.Kind == File {
			p.sorted = append(p.sorted, e)
		}
	}
	slices.SortFunc(p.sorted, byName)
	for _, e := range entries {
		if !inside(source, e.Path) {
			continue
		}
		switch e.Kind {
		case File:
			p.add(e, p.place(e.Path))
		case Link:
			links = append(links, p.place(e.Path))
			p.follow(e)
		}
		if len(p.files) > maxPlaced {
			return nil, nil, refusal.New(refusal.CodeTooLarge, "The files of a COPY step have more names, by symbolic links, than this gateway takes. Copy the files themselves.")
		}
	}
	return p.files, links, nil
}

type placer struct {
	byPath map[string]Entry
	sorted []Entry // the files
	source string
	to     string
	files  []Placed
}

func (p *placer) add(e Entry, at string) { p.files = append(p.files, Placed{e, at}) }

// place is where a path of the archive ends up.
func (p *placer) place(name string) string {
	return path.Join(p.to+"/", strings.TrimPrefix(strings.TrimPrefix(name, p.source), "/"))
}

// maxLinks is how many links in a row the kernel follows.
const maxLinks = 40

// follow adds what is found by the name of a link: a file, or those of a folder.
func (p *placer) follow(link Entry) {
	name := path.Join(path.Dir(link.Path), link.Target)
	for range maxLinks {
		next, isLink := throughLink(name, p.byPath)
		if !isLink {
			break
		}
		name = next
	}
	if e, ok := p.byPath[name]; ok && e.Kind == File {
		p.add(e, p.place(link.Path))
		return
	}
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	i, _ := slices.BinarySearchFunc(p.sorted, Entry{Path: prefix}, byName)
	for ; i < len(p.sorted) && strings.HasPrefix(p.sorted[i].Path, prefix) && len(p.files) <= maxPlaced; i++ {
		p.add(p.sorted[i], path.Join(p.place(link.Path), strings.TrimPrefix(p.sorted[i].Path, prefix)))
	}
}

// throughLink resolves the first part of a path that is a link.
func throughLink(name string, entries map[string]Entry) (string, bool) {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if e, ok := entries[name[:i]]; ok && e.Kind == Link {
			return path.Join(path.Dir(e.Path), e.Target, name[i:]), true
		}
	}
	return name, false
}

func byName(a, b Entry) int { return strings.Compare(a.Path, b.Path) }
