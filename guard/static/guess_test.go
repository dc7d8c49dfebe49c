package static

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// A text whose language nobody named is judged as all that it may be: a line of it
// may be all there is, and the words of one language stand easily in another's
// comments.
func TestTextWithoutALanguage(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for text, rule := range map[string]string{
		`os.system('rm -rf /')`:                                           "delete-system-tree",
		`__import__('os').system('rm -rf /')`:                             "delete-system-tree",
		`shutil.rmtree('/')`:                                              "delete-system-tree",
		`subprocess.run(['rm','-rf','/'])`:                                "delete-system-tree",
		`open('/etc/shadow').read()`:                                      "read-credentials",
		`require('child_process').execSync('rm -rf /')`:                   "delete-system-tree",
		`fs.rmSync('/', {recursive:true})`:                                "delete-system-tree",
		`Bun.spawn(['rm','-rf','/'])`:                                     "delete-system-tree",
		`rm -rf /`:                                                        "delete-system-tree",
		"# const let var require( => function ===\nos.system('rm -rf /')": "delete-system-tree",
		"// import def print( from elif except self.\nfs.rmSync('/', {recursive:true})": "delete-system-tree",
		`print("hello")`:                                    "",
		`console.log([1, 2].map(x => x * 2))`:               "",
		`ls -la /home/user`:                                 "",
		`Please summarise it; don't delete anything (yet).`: "",
		strings.Repeat("test('x', () => { expect(f(`a`)).toEqual({ a: [1] }); });\n", 2000): "",
	} {
		f := g.Inspect(guard.Subject{Kind: guard.KindCode, Text: text})
		if rule == "" {
			assert.Empty(t, rulesOf(f), "%.200s", text)
		} else {
			assert.Contains(t, rulesOf(f), rule, text)
		}
	}
}
