package scripting

import (
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// sqlShells are the ways out of a database's command-line client to a shell: the
// last group is the command. psql takes its own commands anywhere in a line,
// sqlite3 and mysql at its beginning, and sqlite3 abbreviated.
var sqlShells = []*regexp.Regexp{
	regexp.MustCompile(`\\!\s*([^\n]+)`),
	regexp.MustCompile(`\\(?:o|out|g|gx|w|write|watch)\b[^|\n]*\|([^\n]+)`),
	regexp.MustCompile("\\\\[a-z]\\w*[^\n`]*`([^`\n]+)`"),
	regexp.MustCompile(`(?is)\bprogram\s+(?:e|\$\w*\$)?'?((?:[^']|'')*)'`),
	regexp.MustCompile(`(?m)^\s*\.s[hy]\w*\s+([^\n]+)`),
	regexp.MustCompile(`(?m)^\s*\.(?:o|im|re|ex)\w*[^|\n]*\|([^\n'"]+)`),
	regexp.MustCompile(`(?im)^\s*(?:system|pager)\s+([^\n]+)`),
	regexp.MustCompile(`\\P\s+([^\n]+)`),
}

// sqlReads and sqlWrites are the files that a statement opens by itself.
var (
	sqlReads  = regexp.MustCompile(`(?i)(?:\bpg_read_(?:binary_)?file|\breadfile|\bload_file|\binfile|\bcopy\s[^;']*?\bfrom|\\i|\\ir|\\include|\\lo_import)\s*\(?\s*'([^']+)'`)
	sqlWrites = regexp.MustCompile(`(?i)(?:\bwritefile|\boutfile|\bdumpfile|\bcopy\s[^;']*?\bto)\s*\(?\s*'([^']+)'`)
)

// leaveDatabase reports what in SQL text leaves the database.
func leaveDatabase(text string, r *effect.Result) {
	for _, shell := range sqlShells {
		for _, at := range shell.FindAllStringSubmatchIndex(text, -1) {
			command := strings.TrimRight(text[at[2]:at[3]], "; ")
			r.Embedded = append(r.Embedded, effect.Embedded{
				Lang: "bash", Text: effect.Const(strings.ReplaceAll(command, "''", "'")),
				Span: effect.Span{Start: at[0], End: at[1]}, Offset: -1, Via: "sql shell",
			})
		}
	}

	opens := func(kind effect.Kind, files *regexp.Regexp) {
		for _, at := range files.FindAllStringSubmatchIndex(text, -1) {
			r.Add(effect.Effect{Kind: kind, Span: effect.Span{Start: at[0], End: at[1]}, Target: effect.Const(text[at[2]:at[3]]), Via: "sql"})
		}
	}
	opens(effect.Read, sqlReads)
	opens(effect.Write, sqlWrites)
}
