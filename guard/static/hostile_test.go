package static

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// hostilePieces are repeated to a megabyte; each leans on another recursion or
// loop of a parser.
var hostilePieces = map[string][]string{
	"bash": {
		"(", "$(", "{ ", "<(", "a[", "$((", "`", "\"$(", "if ", "while ", "until ", "! ", "time ", "a|", "a&&", "a||b;", "${", "${a:-", "case a in ", "function f ", "f()", "[[ ", "[[ ! ", "<<A\n", "((", "$[", "'", "\"",
		"\\", "a=(", "{a,", "{1..9}", "x() { x", "coproc ", "select x in ", "for x in a;do ", "&", ">a ", "eval ", "sudo ", "bash -c '", "env ", "xargs ", "a ", "a;", "a\n", "$a", "${a}", "\x00", "\xff", "\u200b", "𝓪", "]]", ")", ";;", "}", "<<<a ",
		"a=$(a) ", "echo $(echo $(", "f(){ f;};f;", "x=$x$x;", "for i in {1..9};do ", "alias a=a;a;", "cat <<E\nE\n", "@(", "$((1+", "a&", "\"${a[@]:1:${#a}}\"", "a>(", "{a,b}{a,b}{a,b}", "x+=aaaaaaaaaaaaaaaaaaaaaaaa;", "printf %s%s a;", "echo a|tr a-z b|",
	},
	"python":     {"(", "[", "{", "lambda:", "not ", "-", "f'{", "a.", "a[", "if x:\n ", "\n", "x=", "'", "\"\"\"", "a(", "a+", "**", "def f():\n ", "\\\n", "import a\n", "a=a+a\n", "exec('", "%%bash\n", "!", "@a\n", "x if y else ", "*a,", "\u202e", "eval(", "print(a)\n"},
	"javascript": {"(", "[", "{", "a=>", "!", "-", "`${", "a.", "a[", "if(a)", "\n", "a=", "'", "/*", "a(", "a+", "function f(){", "class A{", "<a>", "...", "?:", "a?b:", "//\n", "eval('", "async ()=>", "new ", "await ", "a;"},
	"perl":       {"(", "{", "`", "\"", "system(", "fork ", "$a", "qx{"},
	"":           {"(", "a", "\xff\xfe", "<", "{\"a\":", "\n"},
}

// TestHostileInputIsBounded holds the promise that no text ends the process,
// hangs it, or takes long. The time is generous, for busy machines; what is
// measured in benchmarks is in bench_test.go.
func TestHostileInputIsBounded(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for lang, pieces := range hostilePieces {
		for _, p := range pieces {
			text := strings.Repeat(p, (1<<20)/len(p))
			start := time.Now()
			f := g.Inspect(guard.Subject{Kind: guard.KindCode, Language: lang, Text: text})
			took := time.Since(start)

			assert.Less(t, took, 2*time.Second, "%s %q", lang, p)
			assert.LessOrEqual(t, f.Steps, 2*g.opts.MaxSteps+len(text), "%s %q", lang, p)

			if testing.Verbose() && took > 40*time.Millisecond {
				t.Logf("%s %q: %v, %d steps, %v", lang, p, took, f.Steps, rulesOf(f))
			}
		}
	}
}

func TestTooLongTextIsBlocked(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{MaxBytes: 100})
	f := g.Inspect(code("bash", strings.Repeat("a", 101)))

	assert.Equal(t, []string{"not-analysable"}, rulesOf(f))
	assert.Empty(t, rulesOf(g.Inspect(code("bash", strings.Repeat("a", 100)))))
}

func TestOverBudgetIsBlocked(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{MaxSteps: 50})
	f := g.Inspect(code("bash", strings.Repeat("echo a b c\n", 100)))

	assert.Contains(t, rulesOf(f), "not-analysable")
}

// TestLongFilesGetMoreSteps: a bundled library is no attack.
func TestLongFilesGetMoreSteps(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	long := strings.Repeat("const a = require('path').join('x', 'y');\nfunction f(a, b) { return a + b * 2; }\n", 4000)

	s := file("write", "/home/user/app/vendor.js", long)
	assert.Greater(t, g.steps(s), g.opts.MaxSteps)
	assert.Empty(t, rulesOf(g.Inspect(s)))
	assert.Equal(t, g.opts.MaxSteps, g.steps(code("javascript", long)))
}

func TestDeepNestingIsBlocked(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	deep := strings.Repeat("(", 5000) + "ls" + strings.Repeat(")", 5000)

	assert.Contains(t, rulesOf(g.Inspect(code("bash", deep))), "not-analysable")
	assert.Empty(t, rulesOf(g.Inspect(code("bash", strings.Repeat("(", 20)+"ls"+strings.Repeat(")", 20)))))
}
