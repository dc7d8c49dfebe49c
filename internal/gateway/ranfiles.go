package gateway

import (
	"path"
	"slices"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
)

// ranPerBox bounds the names remembered of one sandbox's files that were run.
const ranPerBox = 1024

// ran notes the names of files that a call runs. What runs them may read on in what
// is written later: a shell reads its script piece by piece, and a pipe with a name
// holds nothing before.
func (m *fileMemory) ran(sandbox string, runs []static.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, box := range m.boxesOf(sandbox) {
		b := m.box(box)
		for _, run := range runs {
			for _, p := range run.Paths {
				if name := path.Base(p); !run.Library && !slices.Contains(b.ran, name) {
					b.ran = append(b.ran, name)
				}
			}
		}
		if over := len(b.ran) - ranPerBox; over > 0 {
			b.ran = slices.Delete(b.ran, 0, over)
		}
	}
}

// boxesOf are the boxes in which a sandbox's files may be: its own, and those of
// the volumes that are mounted in it, which other sandboxes may have run them from.
func (m *fileMemory) boxesOf(sandbox string) []string {
	boxes := []string{sandbox}
	if m.volumesOf != nil {
		boxes = append(boxes, m.volumesOf(sandbox)...)
	}
	return boxes
}

// classify is files.Classify for a file of a sandbox, or of a volume by its key. The
// path of one that was run
// may be spelled in many ways, so that its name decides.
func (m *fileMemory) classify(sandbox, name string, head []byte) (class files.Class, ran bool) {
	class = files.Classify(name, head)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, box := range m.boxesOf(sandbox) {
		if b, ok := m.boxes.Peek(box); ok && slices.Contains(b.ran, path.Base(name)) {
			ran = true
		}
	}
	if ran && !class.Code {
		class.Code, class.Why = true, "a file of that name was run"
	}
	return class, ran
}

// writeSubjects is what a guard is asked about a file that is written. One that was
// run is also judged as whatever may read it.
func writeSubjects(name, user string, class files.Class, ran bool, text string) []guard.Subject {
	subjects := []guard.Subject{files.WriteSubject(name, user, class, text)}
	if ran && class.Language == "" && text != "" {
		subjects = append(subjects, guard.Subject{Kind: guard.KindInput, Text: text, Target: name})
	}
	return subjects
}
