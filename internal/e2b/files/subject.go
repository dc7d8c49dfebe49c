package files

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

// WriteSubject is the subject of a write: text is the whole file where the class
// says code, "" for data. Of a notebook the guard sees the cells that are code.
func WriteSubject(path, username string, c Class, text string) guard.Subject {
	if c.Language == notebook {
		c.Language = ""
		if cells, ok := notebookCode(text); ok {
			c.Language, text = "python", cells
		}
	}
	return subject("write", path, username, c.Language, text)
}

// ReadSubject is the subject of GET /files, or a refusal where envd refuses the
// query or could read it differently.
func ReadSubject(r *http.Request) (guard.Subject, *refusal.Refusal) {
	query, ref := parseQuery(r)
	if ref != nil {
		return guard.Subject{}, ref
	}
	path := query.Get("path")
	if strings.ContainsRune(path, 0) {
		return guard.Subject{}, invalid("The path contains a NUL byte, which no file system knows.")
	}
	return subject("read", path, query.Get("username"), "", ""), nil
}

func subject(action, path, username, language, text string) guard.Subject {
	labels := map[string]string{guard.LabelAction: action}
	if username != "" {
		labels[guard.LabelUser] = username
	}
	return guard.Subject{Kind: guard.KindFile, Language: language, Text: text, Target: path, Labels: labels}
}

// notebookCode joins the code cells of a Jupyter notebook (nbformat 3 and 4).
// Text that is not a notebook is judged as it stands.
func notebookCode(text string) (string, bool) {
	type cell struct {
		Type   string          `json:"cell_type"`
		Source json.RawMessage `json:"source"`
		Input  json.RawMessage `json:"input"`
	}
	var nb struct {
		Cells      []cell `json:"cells"`
		Worksheets []struct {
			Cells []cell `json:"cells"`
		} `json:"worksheets"`
		Metadata struct {
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
		} `json:"metadata"`
	}
	if json.Unmarshal([]byte(text), &nb) != nil {
		return "", false
	}
	if l := nb.Metadata.Language.Name; l != "" && l != "python" && l != "ipython" {
		return "", false
	}
	cells := nb.Cells
	for _, w := range nb.Worksheets {
		cells = append(cells, w.Cells...)
	}
	var out []string
	for _, c := range cells {
		if c.Type != "code" {
			continue
		}
		for _, raw := range []json.RawMessage{c.Source, c.Input} {
			lines, ok := sourceLines(raw)
			if !ok {
				return "", false
			}
			out = append(out, lines...)
		}
		out = append(out, "\n\n")
	}
	return strings.Join(out, ""), true
}

// sourceLines reads a cell's source: a string, or an array of lines.
func sourceLines(raw json.RawMessage) ([]string, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, true
	}
	var lines []string
	return lines, json.Unmarshal(raw, &lines) == nil
}
