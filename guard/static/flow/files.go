package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// What the code writes to a file is what it reads there later.

// maxFiles and maxFileText bound what is remembered of files.
const (
	maxFiles    = 64
	maxFileText = 64 << 10
)

// know remembers what an effect writes to a file.
func (m *Machine) know(e *effect.Effect) {
	if e.Kind != effect.Write || len(e.Data.Text) > maxFileText || e.Data.Text == "" {
		return
	}

	key := fileKey(e.Target)
	if key == "" || e.Data.Taint == 0 && !e.Data.IsConst() || len(m.files) >= maxFiles {
		return
	}

	if m.files == nil {
		m.files = map[string]effect.Value{}
	}

	if old, ok := m.files[key]; ok && (old.Taint != 0 || e.Flags.Has(effect.FlagAppend)) {
		m.files[key] = effect.Concat(old, e.Data)

		return
	}

	m.files[key] = e.Data
}

// fileKey tells files apart: by their paths, or by the variable that holds it.
func fileKey(path effect.Value) string {
	if path.IsConst() {
		return strings.TrimPrefix(path.Text, "./")
	}

	return path.Key()
}

// Written is what the code wrote to a file before.
func (m *Machine) Written(path effect.Value) (effect.Value, bool) {
	if len(m.files) == 0 {
		return effect.Value{}, false
	}

	v, ok := m.files[fileKey(path)]

	return v, ok
}

// Content is what is read from a file.
func (m *Machine) Content(path effect.Value) Value {
	origin := path.Text
	if path.IsUnknown() {
		origin = path.Ref
	}

	v := Tainted(effect.TaintFile, origin)

	w, ok := m.Written(path)
	if !ok {
		return v
	}

	if w.IsConst() {
		v.Kind, v.Text = Str, w.Text
	}

	return v.From(Value{Taint: w.Taint, Origin: w.Origin})
}

// RunFile reports that a file is run as code of a language; empty says that the
// file tells.
func (m *Machine) RunFile(c *Call, lang string, path effect.Value) {
	if w, ok := m.Written(path); ok {
		v := Value{Kind: Str, Text: w.Text, Taint: w.Taint, Origin: w.Origin}
		if w.IsUnknown() {
			v = Tainted(w.Taint, w.Origin)
		}

		m.Embed(c, lang, v, 0)
	}

	m.Emit(c, effect.Effect{Kind: effect.Load, Target: path, Lang: lang})
}

// Temporary is the path of a temporary file or directory that a call makes. It
// has a name of ours, so that what is done with it can be told.
func (m *Machine) Temporary(c *Call, suffix Value) Value {
	path := Text("/tmp/tmp" + Number(int64(c.ID)).Value().Text)
	if suffix.IsConst() {
		path.Text += suffix.Text
	}

	return path
}

// ImportWritten reports that a module is imported, if the code wrote a file of
// that name and not all of its text is known.
func (m *Machine) ImportWritten(id tree.ID, module string) {
	if len(m.files) == 0 {
		return
	}

	name := strings.ReplaceAll(module, ".", "/")

	for _, key := range sortedKeys(m.files) {
		base := strings.TrimSuffix(key, ".py")
		if base == key || base != name && !strings.HasSuffix(base, "/"+name) {
			continue
		}

		if w := m.files[key]; w.Taint != 0 {
			m.Embed(&Call{ID: id, Name: "import"}, m.L.Name, Tainted(w.Taint, w.Origin), 0)
		}
	}
}
