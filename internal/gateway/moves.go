package gateway

import (
	"context"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// moveSubjects judges a move as a write of the text that arrives, where that may be
// code by its place or its name.
func (c *call) moveSubjects() ([]guard.Subject, *refusal.Refusal) {
	m := c.msg.(*envd.Message)
	from, to := m.MovePaths()
	there := fileChange{path: files.Absolute(to, c.user())}
	class, ran := c.g.state.files.classify(c.target.Sandbox, to, nil)
	if from != "" && class.Code {
		there.text, there.content = c.fileText(from, c.user())
		if there.content == files.Text {
			m.MovedText = &there.text
		}
	} else {
		there.text, there.content = c.rememberedFile(files.Absolute(from, c.user()))
	}
	subjects, ref := m.Subjects(c.r.Header)
	if ran && there.content == files.Text {
		subjects = append(subjects, writeSubjects(to, c.user(), class, ran, there.text)...)
	}
	if gone := files.Absolute(from, c.user()); plainPlace(gone) && plainPlace(there.path) {
		c.moved = []fileChange{{path: gone}, there}
	}
	return subjects, ref
}

// fileText is what a file holds, from memory or from the sandbox.
func (c *call) fileText(name, user string) (string, files.Content) {
	path := files.Absolute(name, user)
	if text, content := c.rememberedFile(path); content != files.Unseen {
		return text, content
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), joinTimeout)
	defer cancel()
	return c.readFile(ctx, name)
}

func (c *call) readCompose() *refusal.Refusal {
	b, ref := c.bodyBytes()
	if ref != nil {
		return ref
	}
	m, ref := files.DecodeCompose(c.r.Header, b)
	if ref == nil {
		c.msg = m
	}
	return ref
}

// composeSubjects judges the files that are read, and the text that is written.
func (c *call) composeSubjects() ([]guard.Subject, *refusal.Refusal) {
	m := c.msg.(*files.Compose)
	if len(m.Sources) >= maxSubjects {
		return nil, refusal.New(refusal.CodeInvalid, "more files are to be joined than one call may judge, so nothing was joined. Join them in several calls.")
	}
	joined, whole := c.composed(m)
	class, ran := c.g.state.files.classify(c.target.Sandbox, m.Destination, []byte(joined[:min(len(joined), files.HeadBytes)]))
	if class.Code && !whole {
		return nil, refusal.New(refusal.CodePolicy, "Blocked by policy: the file "+m.Destination+" would be code ("+class.Why+"), and what it is joined of could not be read to be judged. Write it in one call, with its content.")
	}
	subjects := make([]guard.Subject, 0, len(m.Sources)+1)
	for _, source := range m.Sources {
		subjects = append(subjects, files.TakeSubject(source, m.Username))
	}
	there := fileChange{path: files.Absolute(m.Destination, m.Username)}
	if whole {
		there.text, there.content = files.ReadContent([]byte(joined))
	}
	if !class.Code {
		joined = ""
	}
	subjects = append(subjects, writeSubjects(m.Destination, m.Username, class, ran, joined)...)
	c.keepComposed(m, there)
	return subjects, nil
}

func (c *call) keepComposed(m *files.Compose, there fileChange) {
	moved := []fileChange{there}
	for _, source := range m.Sources {
		moved = append(moved, fileChange{path: files.Absolute(source, m.Username)})
	}
	for _, f := range moved {
		if !plainPlace(f.path) {
			return
		}
	}
	c.moved = moved
}

// composed is the text that a compose writes, or as much of its beginning as could
// be read.
func (c *call) composed(m *files.Compose) (text string, whole bool) {
	var b strings.Builder
	ctx, cancel := context.WithTimeout(c.r.Context(), time.Duration(len(m.Sources))*joinTimeout)
	defer cancel()
	for _, source := range m.Sources {
		path := files.Absolute(source, m.Username)
		part, content := c.rememberedFile(path)
		if content == files.Text {
			b.WriteString(part)
		} else {
			raw, complete := c.readRaw(ctx, path)
			b.Write(raw)
			if !complete {
				return b.String(), false
			}
		}
		if b.Len() > maxComposed {
			return b.String(), false
		}
	}
	return b.String(), true
}

// maxComposed bounds the text that a compose is judged with.
const maxComposed = 4 << 20
