package scripting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// A database's client runs shell commands, too.
func TestCommandsOfDatabaseClients(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`\! ls -l`:                             "ls -l",
		`select 1; \! ls`:                      "ls",
		`\o |ls`:                               "ls",
		`select 1 \g | ls`:                     " ls",
		"\\set x `ls`":                         "ls",
		"copy t from program 'echo ''a''';":    "echo 'a'",
		"COPY t TO PROGRAM\n'ls'":              "ls",
		".shell ls":                            "ls",
		".sys ls":                              "ls",
		"select 1;\n.once |ls":                 "ls",
		".import '|ls' t":                      "ls",
		"system ls;":                           "ls",
		"pager ls":                             "ls",
		"select * from t where a = '|ls';":     "",
		".separator |":                         "",
		".mode csv":                            "",
		"select system_user, count(*) from t;": "",
	} {
		var got []string
		for _, e := range ParseSQL(text, effect.NewBudget(10_000)).Embedded {
			got = append(got, e.Text.Text)
		}

		assert.Equal(t, want, strings.Join(got, "+"), text)
	}

	files := ParseSQL("copy t from '/etc/shadow'; select writefile('/etc/cron.d/x', 'y'), load_file('/root/.ssh/id_rsa');", effect.NewBudget(10_000))
	assert.Equal(t, "read:/etc/shadow | read:/root/.ssh/id_rsa | write:/etc/cron.d/x", summary(files))
}
