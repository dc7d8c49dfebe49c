package gateway

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
	"github.com/e2bguard/e2bguard/internal/e2b/archive"
	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// buildSubjects is what runs in a build, and the files that its COPY steps put
// where they are code, though they were none by their name when they were
// uploaded. E2B is told the files by its own name for them.
func (c *call) buildSubjects() ([]guard.Subject, *refusal.Refusal) {
	m := c.msg.(controlMessage)
	copies, ref := m.Copies()
	if ref != nil {
		return nil, ref
	}
	tree := builtTree{links: map[string]bool{}, files: map[string]archivedFile{}}
	for _, step := range copies {
		known, ok := c.g.state.archives.get(archiveKey{c.client, step.Hash})
		switch {
		case !ok:
			return nil, refusal.New(refusal.CodeInvalid, fmt.Sprintf("The files of step %d (COPY) are not known here: they were not uploaded through this gateway, or by another client or replica, or too long ago. Build again; the SDK then uploads them.", step.Step))
		case known.refused != "":
			return nil, refusal.New(refusal.CodePolicy, fmt.Sprintf("The files of step %d (COPY) were not stored. %s", step.Step, known.refused))
		}
		subjects, ref := tree.add(known, step)
		if ref == nil {
			ref = c.reviewMany(subjects)
		}
		if ref != nil {
			ref.Reason = fmt.Sprintf("The files of step %d (COPY) cannot be copied. %s", step.Step, ref.Reason)
			return nil, ref
		}
		step.SetHash(known.name)
	}
	subjects, ref := c.controlSubjects()
	for i, s := range subjects {
		if s.Kind == guard.KindBuild && len(copies) > 0 {
			subjects[i] = tree.withFiles(s)
		}
	}
	return subjects, ref
}

// builtTree is what COPY steps have put where so far.
type builtTree struct {
	links map[string]bool
	files map[string]archivedFile // by path
}

// withFiles adds to a command the copied files that it runs, as far as it names
// them. Of the image's own files nothing is known.
func (t builtTree) withFiles(s guard.Subject) guard.Subject {
	probe := s
	probe.Kind = guard.KindCommand
	asked, bytes := map[string]bool{}, 0
	for range maxJoinRounds {
		runs, _ := static.Runs(probe)
		found := len(probe.Files)
		for _, run := range runs {
			for _, name := range run.Paths {
				f, ok := t.files[name]
				if !ok || asked[name] {
					continue
				}
				asked[name] = true
				switch {
				case f.content == files.Text && !f.forgotten && len(probe.Files) < maxJoinedFiles && bytes+len(f.text) <= maxJoinedBytes:
					bytes += len(f.text)
					probe.Files = append(slices.Clip(probe.Files), guard.File{Path: name, Text: f.text})
				case f.content != files.Binary:
					s.Labels = withLabel(s.Labels, guard.LabelUnseen, name)
				}
				break
			}
		}
		if len(probe.Files) == found {
			break
		}
	}
	s.Files = probe.Files
	return s
}

// add puts the files of an upload where a step copies them, and returns what must be
// judged once more of them.
func (t builtTree) add(a *archived, step control.Copy) ([]guard.Subject, *refusal.Refusal) {
	places, own, err := archive.Place(a.entries, step.Source, step.Destination)
	if err != nil {
		return nil, err.(*refusal.Refusal) //nolint:errorlint // Place says that it is one
	}
	if link := throughLink(step.Destination, t.links); link != "" {
		return nil, refuseThroughLink(link)
	}
	var subjects []guard.Subject
	for _, p := range places {
		if link := throughLink(path.Dir(p.Path), t.links); link != "" {
			return nil, refuseThroughLink(link)
		}
		f := a.files[p.Entry.Path]
		if p.Entry.Of != "" {
			f = a.files[p.Entry.Of]
		}
		t.files[p.Path] = f
		class := files.Classify(p.Path, []byte(f.text[:min(len(f.text), files.HeadBytes)]))
		if !strings.HasPrefix(p.Path, "/") { // it may be anywhere
			class.Code, class.SelfRunning, class.Why = true, true, "as far as one can tell: its folder is not known, so name it in full or in a WORKDIR step"
		}
		if !class.Code || f.class.Code && !class.SelfRunning && f.class.Language == class.Language {
			continue
		}
		subject := files.WriteSubject(p.Path, step.User, class, f.text)
		switch {
		case f.forgotten && !f.class.Code:
			return nil, refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: at %s the file %s is code (%s), and it is too large to be judged there. Copy it elsewhere, or without the other files.", p.Path, p.Entry.Path, class.Why))
		case f.forgotten, f.content != files.Text: // it was judged, but for its place, or it is nothing to read
			subject.Labels = withLabel(subject.Labels, guard.LabelUnseen, p.Path)
		}
		subjects = append(subjects, subject)
	}
	for _, link := range own {
		t.links[link] = true
	}
	return subjects, nil
}

// throughLink is a link that a path leads through; "" for none.
func throughLink(name string, links map[string]bool) string {
	if len(links) == 0 {
		return ""
	}
	for name = path.Clean(name); name != "/" && name != "."; name = path.Dir(name) {
		if links[name] {
			return name
		}
	}
	return ""
}

func refuseThroughLink(link string) *refusal.Refusal {
	return refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: its destination leads through %s, a symbolic link that a step before it has copied. Name the folder itself.", link))
}
