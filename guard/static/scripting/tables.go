package scripting

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// ParseCron reads a cron table: five fields, or a word after "@", then maybe a
// user, then shell text.
func ParseCron(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	at := 0

	for line := range strings.SplitAfterSeq(text, "\n") {
		start := at
		at += len(line)

		if !b.Spend(1) {
			r.Note(effect.NoteBudget, start, "out of steps")

			return r
		}

		cmd := cronCommand(strings.TrimSpace(line))
		if cmd == "" {
			continue
		}

		span := effect.Span{Start: start, End: at}
		r.Add(effect.Effect{Kind: effect.Schedule, Span: span, Target: effect.Const("cron entry"), Data: effect.Const(cmd), Via: "cron"})
		r.Embed(effect.Embedded{Lang: "bash", Text: effect.Const(cmd), Span: span, Offset: -1, Via: "cron"})
	}

	return r
}

// cronCommand is the command of a line of a cron table.
func cronCommand(line string) string {
	if line == "" || line[0] == '#' {
		return ""
	}

	skip := 5
	if line[0] == '@' {
		skip = 1
	} else if !strings.ContainsAny(line[:1], "0123456789*") {
		return ""
	}

	rest := line
	for range skip {
		_, after, ok := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
		if !ok {
			return ""
		}

		rest = after
	}

	rest = strings.TrimLeft(rest, " \t")
	if user, cmd, ok := strings.Cut(rest, " "); ok && (user == "root" || user == "user" || user == "www-data" || user == "nobody") {
		return cmd
	}

	return rest
}

// ParseUnit reads a systemd unit: its Exec lines.
func ParseUnit(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	at := 0

	for line := range strings.SplitAfterSeq(text, "\n") {
		start := at
		at += len(line)

		if !b.Spend(1) {
			r.Note(effect.NoteBudget, start, "out of steps")

			return r
		}

		key, val, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && strings.HasPrefix(key, "Exec") {
			r.Embed(effect.Embedded{
				Lang: "bash", Text: effect.Const(strings.TrimLeft(val, "-+!@: ")), Span: effect.Span{Start: start, End: at}, Offset: -1, Via: key,
			})
		}
	}

	return r
}

// BrowserTable is the target of a Call that reads a browser's saved passwords,
// cookies or cards.
const BrowserTable = "browser credentials"

// browserTables are columns and tables of browsers' own databases: every part
// of a line must be there.
var browserTables = [][]string{
	{"PASSWORD_VALUE", "LOGINS"}, {"ENCRYPTED_VALUE", "COOKIES"}, {"CARD_NUMBER_ENCRYPTED"}, {"MOZ_COOKIES"}, {"MOZ_LOGINS"}, {"NSSPRIVATE"},
}

func browserTable(stmt string) bool {
	stmt = strings.ToUpper(stmt[:min(len(stmt), 4096)])

	for _, parts := range browserTables {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(stmt, p)
		}

		if all {
			return true
		}
	}

	return false
}

// ParseSQL reports statements that destroy or that leave the database.
func ParseSQL(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	leaveDatabase(text, &r)

	at := 0

	for stmt := range strings.SplitAfterSeq(text, ";") {
		start := at
		at += len(stmt)

		if !b.Spend(1 + len(stmt)/64) {
			r.Note(effect.NoteBudget, start, "out of steps")

			return r
		}

		words := strings.Fields(strings.ToUpper(stmt[:min(len(stmt), 512)]))
		if len(words) < 2 {
			continue
		}

		span := effect.Span{Start: start, End: at}

		switch {
		case words[0] == "SELECT" && browserTable(stmt):
			r.Add(effect.Effect{Kind: effect.Call, Span: span, Target: effect.Const(BrowserTable), Via: "sql"})
		case words[0] == "DROP" && (words[1] == "DATABASE" || words[1] == "SCHEMA" || words[1] == "TABLE" || words[1] == "USER"),
			words[0] == "TRUNCATE", words[0] == "DELETE" && !strings.Contains(strings.ToUpper(stmt), "WHERE"):
			r.Add(effect.Effect{Kind: effect.Call, Span: span, Target: effect.Const("sql " + strings.ToLower(words[0]+" "+words[1])), Via: "sql"})
		case strings.Contains(strings.ToUpper(stmt), "COPY") && strings.Contains(strings.ToUpper(stmt), " PROGRAM "), strings.Contains(strings.ToLower(stmt), "xp_cmdshell"),
			strings.Contains(strings.ToLower(stmt), "into outfile"), strings.HasPrefix(strings.TrimSpace(stmt), `\!`):
			r.Add(effect.Effect{Kind: effect.Call, Span: span, Target: effect.Const("sql shell"), Via: "sql"})
		}
	}

	return r
}
