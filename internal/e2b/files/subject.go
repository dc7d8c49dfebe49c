package files

import (
	"net/http"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
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

// TakeSubject is the subject of a file that is read and taken away.
func TakeSubject(path, username string) guard.Subject { return subject("take", path, username, "", "") }

// ReadSubject is the subject of GET /files and the query to forward, or a refusal
// where envd refuses the query or could read it differently.
func ReadSubject(r *http.Request) (s guard.Subject, rawQuery string, ref *refusal.Refusal) {
	query, ref := parseQuery(r)
	if ref != nil {
		return guard.Subject{}, "", ref
	}
	changed, ref := canonicalQuery(query)
	if ref != nil {
		return guard.Subject{}, "", ref
	}
	path := query.Get("path")
	if strings.ContainsRune(path, 0) {
		return guard.Subject{}, "", invalid("The path contains a NUL byte, which no file system knows.")
	}
	rawQuery = r.URL.RawQuery
	if changed {
		rawQuery = query.Encode()
	}
	return subject("read", path, query.Get("username"), "", ""), rawQuery, nil
}

func subject(action, path, username, language, text string) guard.Subject {
	labels := map[string]string{guard.LabelAction: action}
	if username != "" {
		labels[guard.LabelUser] = username
	}
	return guard.Subject{Kind: guard.KindFile, Language: language, Text: text, Target: Judged(path), Labels: labels}
}

// notebookCode joins the code cells of a Jupyter notebook (nbformat 3 and 4).
// Text that is not clearly one, in Python, is judged as it stands.
func notebookCode(text string) (string, bool) {
	nb, err := strictjson.DecodeObject([]byte(text))
	if err != nil {
		return "", false
	}
	if l := member(member(member(nb, "metadata"), "language_info"), "name"); l != nil && l != "python" {
		return "", false
	}
	lists := []any{member(nb, "cells")}
	sheets, _ := member(nb, "worksheets").([]any)
	for _, sheet := range sheets {
		lists = append(lists, member(sheet, "cells"))
	}
	var out strings.Builder
	for _, list := range lists {
		cells, ok := list.([]any)
		if !ok && list != nil {
			return "", false
		}
		for _, cell := range cells {
			switch member(cell, "cell_type") {
			case "markdown", "raw", "heading":
				continue
			}
			for _, key := range []string{"source", "input"} {
				if !writeSource(&out, member(cell, key)) {
					return "", false
				}
			}
			out.WriteString("\n\n")
		}
	}
	return out.String(), true
}

// member is a member of a value that is an object; nil if there is none.
func member(v any, key string) any {
	o, ok := v.(*strictjson.Object)
	if !ok {
		return nil
	}
	m, _ := o.Get(key)
	return m
}

// writeSource writes a cell's source: a string, or a list of lines.
func writeSource(out *strings.Builder, v any) bool {
	switch v := v.(type) {
	case nil:
	case string:
		out.WriteString(v)
	case []any:
		for _, line := range v {
			s, ok := line.(string)
			if !ok {
				return false
			}
			out.WriteString(s)
		}
	default:
		return false
	}
	return true
}
