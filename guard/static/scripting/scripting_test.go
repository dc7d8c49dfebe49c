package scripting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

func summary(r effect.Result) string {
	var out []string

	for _, e := range r.Effects {
		s := e.Kind.String() + ":" + e.Target.Text
		if e.Flags.Has(effect.FlagNetIO) {
			s += "!"
		}

		out = append(out, s)
	}

	for _, e := range r.Embedded {
		out = append(out, e.Lang+":"+e.Text.Text)
	}

	return strings.ReplaceAll(strings.Join(out, " | "), effect.HoleText, "?")
}

func TestScanners(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		parse effect.Parser
		text  string
		want  string
	}{
		{ParsePerl, `system("ls -l"); print "system('x')";`, "bash:ls -l"},
		{ParsePerl, "`id`", "bash:id"},
		{ParsePerl, `exec "rm", "-rf", "/x"`, "exec:rm"},
		{ParsePerl, `# system("x")` + "\n1;", ""},
		{ParsePerl, `$c = "ls"; system($c);`, "bash:ls"},
		{ParsePerl, `unlink "a", "b"`, "delete:a | delete:b"},
		{ParsePerl, `fork while fork`, "spawn: | spawn:"},
		{ParsePerl, `use Socket; exec("/bin/sh -i")`, "connect:? | exec:sh! | bash:/bin/sh -i"},
		{ParseRuby, `%x{ls}`, "bash:ls"},
		{ParseRuby, `FileUtils.rm_rf("/a")`, "delete:/a"},
		{ParseRuby, `puts "hi #{x}"; system "ls #{y}"`, "bash:ls ?"},
		{ParsePHP, `<?php shell_exec("ls"); echo file_get_contents("/a"); ?>`, "read:/a | bash:ls"},
		{ParsePHP, `eval(base64_decode("eA=="));`, "eval:"},
		{ParseLua, `os.execute("ls") os.remove('a')`, "delete:a | bash:ls"},
		{ParseTcl, `spawn ssh host`, ""},
		{ParseCron, "# c\n* * * * * root rm x\n@daily y z\nMAILTO=a\n", "schedule:cron entry | schedule:cron entry | bash:rm x | bash:y z"},
		{ParseUnit, "[Service]\nExecStart=-/bin/a b\nUser=x\n", "bash:/bin/a b"},
		{ParseSQL, "SELECT 1; DROP TABLE a; DELETE FROM b; DELETE FROM c WHERE d = 1", "call:sql drop table | call:sql delete from"},
	} {
		assert.Equal(t, c.want, summary(c.parse(c.text, effect.NewBudget(10_000))), c.text)
	}
}

func TestBudgetEndsTheScan(t *testing.T) {
	t.Parallel()

	for _, parse := range []effect.Parser{ParsePerl, ParseCron, ParseUnit, ParseSQL} {
		r := parse(strings.Repeat("a b;\n", 100), effect.NewBudget(5))
		assert.NotEmpty(t, r.Notes)
	}
}

// FuzzScan: no panic on any text.
func FuzzScan(f *testing.F) {
	f.Add(`system("a")`)
	f.Add("`")
	f.Add(`"#{`)
	f.Add("* * * * *")

	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []effect.Parser{ParsePerl, ParseRuby, ParsePHP, ParseLua, ParseTcl, ParseCron, ParseUnit, ParseSQL} {
			parse(text, effect.NewBudget(10_000))
		}
	})
}
