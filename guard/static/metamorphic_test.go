package static

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// transform is a change of text that leaves what it does as it was.
type transform struct {
	name string
	// neutral says that it adds no suspicion either, so that what passes must
	// still pass.
	neutral bool
	fn      func(string) string
}

func sq(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// padding is harmless text of ten kilobytes.
func padding(line string) string { return strings.Repeat(line+"\n", 10<<10/(len(line)+1)) }

var bashTransforms = []transform{
	{"comment before", true, func(s string) string { return "# a comment\n" + s }},
	{"padding before", true, func(s string) string { return padding("echo \"step $i of $n\" | tee -a build.log") + s }},
	{"padding after", true, func(s string) string { return s + "\n" + padding("ls -la src | grep main") }},
	{"statement before", true, func(s string) string { return "set -e\nmkdir -p out\n" + s }},
	{"shebang", true, func(s string) string { return "#!/usr/bin/env bash\n" + s }},
	{"indented", true, func(s string) string {
		if strings.Contains(s, "<<") {
			return s
		}

		return "\n\n   " + strings.ReplaceAll(s, "\n", "\n   ") + "  \n"
	}},
	{"CRLF", false, func(s string) string {
		if strings.Contains(s, "<<") {
			return s
		}

		return "ls\r\n" + s + "\r\n"
	}},
	{"if true", true, func(s string) string { return "if true; then\n" + s + "\nfi" }},
	{"block", true, func(s string) string { return "{\n" + s + "\n}" }},
	{"subshell", true, func(s string) string { return "(\n" + s + "\n)" }},
	{"function called", true, func(s string) string { return "wrapped() {\n" + s + "\n}\nwrapped" }},
	{"function not called", true, func(s string) string { return "wrapped() {\n" + s + "\n}" }},
	{"and list", true, func(s string) string { return "true && {\n" + s + "\n}" }},
	{"or list", true, func(s string) string { return "false || {\n" + s + "\n}" }},
	{"case", true, func(s string) string { return "case x in\nx)\n" + s + "\n;;\nesac" }},
	{"for loop", false, func(s string) string { return "for once in 1; do\n" + s + "\ndone" }},
	{"trap", false, func(s string) string { return "trap " + sq(s) + " EXIT" }},
	{"bash -c", true, func(s string) string { return "bash -c " + sq(s) }},
	{"sudo bash -c", false, func(s string) string { return "sudo bash -c " + sq(s) }},
	{"env timeout", true, func(s string) string { return "env A=1 timeout 60 bash -c " + sq(s) }},
	{"nohup nice", true, func(s string) string { return "nice -n 5 bash -lc " + sq(s) }},
	{"eval", true, func(s string) string { return "eval " + sq(s) }},
	{"variable and eval", true, func(s string) string { return "cmd=" + sq(s) + "\neval \"$cmd\"" }},
	{"heredoc", true, func(s string) string {
		if strings.Contains(s, "WRAP") {
			return s
		}

		return "bash <<'WRAP'\n" + s + "\nWRAP"
	}},
	{"pipe", true, func(s string) string { return "printf '%s' " + sq(s) + " | bash" }},
	{"written and run", true, func(s string) string { return "printf '%s\\n' " + sq(s) + " > step.sh\nbash step.sh" }},
	{"split string", false, func(s string) string {
		half := len(s) / 2
		for half > 0 && half < len(s) && s[half]&0xC0 == 0x80 {
			half--
		}

		return "a=" + sq(s[:half]) + "\nb=" + sq(s[half:]) + "\neval \"$a$b\""
	}},
	{"base64", false, func(s string) string {
		return "echo " + base64.StdEncoding.EncodeToString([]byte(s)) + " | base64 -d | bash"
	}},
	{"hex", false, func(s string) string { return "echo " + hex.EncodeToString([]byte(s)) + " | xxd -r -p | sh" }},
	{"base64 twice", false, func(s string) string {
		once := base64.StdEncoding.EncodeToString([]byte(s))

		return "bash -c \"$(echo " + base64.StdEncoding.EncodeToString([]byte(once)) + " | base64 -d | base64 -d)\""
	}},
	{"substitution", false, func(s string) string { return "out=$(\n" + s + "\n)\necho \"$out\"" }},
	{"python", false, func(s string) string { return "python3 -c " + sq(fmt.Sprintf("import os; os.system(%q)", s)) }},
}

func pyq(s string) string { return fmt.Sprintf("%q", s) }

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

// plainPython says whether text may be indented and wrapped.
func plainPython(s string) bool { return !strings.ContainsAny(s, "%!") && !strings.Contains(s, "'''") }

func pythonBody(wrap func(string) string) func(string) string {
	return func(s string) string {
		if !plainPython(s) {
			return s
		}

		return wrap(s)
	}
}

var pythonTransforms = []transform{
	{"comment before", true, pythonBody(func(s string) string { return "# a comment\n" + s })},
	{"docstring before", true, pythonBody(func(s string) string { return "\"\"\"Do one step.\"\"\"\n" + s })},
	{"padding before", true, pythonBody(func(s string) string { return padding("value = [x * 2 for x in range(10)]") + s })},
	{"padding after", true, pythonBody(func(s string) string { return s + "\n" + padding("print('step', len('abc'))") })},
	{"if true", true, pythonBody(func(s string) string { return "if True:\n" + indent(s) })},
	{"try", true, pythonBody(func(s string) string { return "try:\n" + indent(s) + "\nexcept Exception as error:\n    print(error)" })},
	{"function called", true, pythonBody(func(s string) string { return "def step():\n" + indent(s) + "\nstep()" })},
	{"function not called", true, pythonBody(func(s string) string { return "def step():\n" + indent(s) })},
	{"main", true, pythonBody(func(s string) string {
		return "def main():\n" + indent(s) + "\n\nif __name__ == '__main__':\n    main()"
	})},
	{"method", true, pythonBody(func(s string) string {
		return "class Job:\n    def run(self):\n" + indent(indent(s)) + "\n\nJob().run()"
	})},
	{"exec", false, pythonBody(func(s string) string { return "exec(" + pyq(s) + ")" })},
	{"exec of pieces", false, pythonBody(func(s string) string { return "exec(" + pyq(s[:len(s)/2]) + " + " + pyq(s[len(s)/2:]) + ")" })},
	{"base64", false, pythonBody(func(s string) string {
		return "import base64 as b\nexec(b.b64decode('" + base64.StdEncoding.EncodeToString([]byte(s)) + "'))"
	})},
	{"hex", false, pythonBody(func(s string) string { return "exec(bytes.fromhex('" + hex.EncodeToString([]byte(s)) + "').decode())" })},
	{"shell", false, pythonBody(func(s string) string {
		if strings.Contains(s, "\n") {
			return s
		}

		return "!python3 -c " + sq(s)
	})},
	{"child", false, pythonBody(func(s string) string {
		return "import subprocess, sys\nsubprocess.run([sys.executable, '-c', " + pyq(s) + "])"
	})},
}

func transformsOf(lang string) []transform {
	switch lang {
	case "bash":
		return bashTransforms
	case "python":
		return pythonTransforms
	}

	return nil
}

// statement says whether a sample is whole statements that can be wrapped.
func statement(lang, text string) bool {
	if lang != "bash" {
		return true
	}

	// A here-document in a wrapper needs its delimiter alone on a line, and an
	// open bracket or a trailing "&" of its own changes what a wrapper means.
	return !strings.Contains(text, "$0")
}

// rarely leaves out the long variants of most samples, to spare time.
func rarely(tr transform, i int) bool { return strings.HasPrefix(tr.name, "padding") && i%5 != 0 }

// TestWhatMustBlockBlocksInEverySpelling is the metamorphic half of TestRules.
func TestWhatMustBlockBlocksInEverySpelling(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	total, missed := 0, 0

	for _, s := range allSamples() {
		rule, _ := RuleByID(s.rule)
		if rule.Severity < High {
			continue
		}

		for i, text := range s.block {
			if !statement(s.lang, text) {
				continue
			}

			for _, tr := range transformsOf(s.lang) {
				if rarely(tr, i) {
					continue
				}

				total++
				changed := tr.fn(text)

				if decide(t, g, code(s.lang, changed)) != guard.Block {
					missed++

					assert.Fail(t, "passes after a neutral change", "%s, %s: %s", s.rule, tr.name, text)
				}
			}
		}
	}

	t.Logf("%d variants, %d missed", total, missed)
}

// TestWhatMustPassPassesInEverySpelling is the same for look-alikes.
func TestWhatMustPassPassesInEverySpelling(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	total := 0

	for _, s := range allSamples() {
		for i, text := range s.pass {
			if !statement(s.lang, text) {
				continue
			}

			for _, tr := range transformsOf(s.lang) {
				if !tr.neutral || rarely(tr, i) {
					continue
				}

				total++

				f := g.Inspect(code(s.lang, tr.fn(text)))
				assert.Empty(t, rulesOf(f), "%s, %s: %s", s.rule, tr.name, text)
			}
		}
	}

	t.Logf("%d variants", total)
}
