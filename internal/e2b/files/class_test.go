package files_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

func TestClassify(t *testing.T) {
	const data, code, runs = 0, 1, 2
	elf := "\x7fELF\x02\x01\x01\x00"
	for _, tt := range []struct {
		path, head string
		class      int
		language   string
	}{
		{"/home/user/data.csv", "a,b\n1,2\n", data, ""},
		{"/home/user/notes.txt", "hello", data, ""},
		{"/home/user/README.md", "# hi", data, ""},
		{"/home/user/config.json", "{}", data, ""},
		{"/home/user/model.bin", elf, data, ""},
		{"/home/user/a.out", elf, data, ""},
		{"/home/user/tool", elf, data, ""},
		{"/tmp/image.png", "\x89PNG\r\n\x1a\n\x00", data, ""},
		{"/home/user/dump", strings.Repeat("text ", files.HeadBytes/5+1)[:files.HeadBytes], data, ""},
		{"/home/user/empty", "", data, ""},
		{"/home/user/.config/app/settings.json", "{}", data, ""},
		{"/dev/shm/x.dat", "1", data, ""},
		{"/opt/app/values.yaml", "a: 1", data, ""},

		{"/home/user/x.py", "print(1)", code, "python"},
		{"/home/user/X.PY", "print(1)", code, "python"},
		{"script.sh", "id", code, "bash"},
		{"/srv/index.js", "1", code, "javascript"},
		{"/srv/index.tsx", "1", code, "typescript"},
		{"/srv/a.R", "1", code, "r"},
		{"/srv/A.java", "1", code, "java"},
		{"/srv/nb.ipynb", "{}", code, "ipynb"},
		{"/srv/run", "#!/bin/sh\nid", code, "bash"},
		{"/srv/data.csv", "#!/usr/bin/env python3\n", code, "python"},
		{"/srv/run", "#! /usr/bin/env -S node --x\n", code, "javascript"},
		{"/srv/run", "#!/usr/bin/env A=b deno run\n", code, "javascript"},
		{"/srv/run", "#!/usr/bin/python3.11", code, "python"},
		{"/srv/run", "#!/opt/odd", code, ""},
		{"/srv/run", "#!", code, ""},
		{"/srv/notes", "rm -rf /\n", code, ""},
		{"/srv/notes", "caf\xc3", code, ""},
		{"/srv/Makefile", "all:\n\trm -rf /\n", code, ""},
		{"/srv/package.json", `{"scripts":{}}`, code, ""},
		{"/srv/Dockerfile", "FROM x", code, ""},
		{"/srv/api.dockerfile", "FROM x", code, ""},
		{"/srv/conftest.py", "", code, "python"},
		{"/srv/.vscode/tasks.json", "{}", code, ""},
		{"/srv/.devcontainer/devcontainer.json", "{}", code, ""},
		{"/srv/pixi.toml", "", code, ""},
		{"/srv/a.just", "a:\n", code, ""},
		{"/srv/Jenkinsfile.nightly", "", code, ""},

		{"/home/user/.bashrc", "", runs, "bash"},
		{".bashrc", "", runs, "bash"},
		{"~/.profile", "", runs, "bash"},
		{"x/../.zshrc", "", runs, "bash"},
		{"/root/.bash_login", elf, runs, "bash"},
		{"/tmp/home/.bash_aliases", "", runs, "bash"},
		{"/etc/profile.d/a.sh", "", runs, "bash"},
		{"/etc/hosts", "", runs, ""},
		{"/etc/ld.so.preload", "", runs, ""},
		{"//etc//cron.d/./x", "", runs, ""},
		{"/tmp/../etc/passwd", "", runs, ""},
		{"../../etc/cron.d/x", "", runs, ""},
		{"../../../../../usr/bin/ls", elf, runs, ""},
		{"/var/spool/cron/crontabs/user", "", runs, ""},
		{"/home/user/.ssh/authorized_keys", "", runs, ""},
		{"~/.ssh/config", "", runs, ""},
		{"/repo/.git/hooks/pre-commit", "#!/bin/bash\n", runs, "bash"},
		{"/repo/.git/config", "", runs, ""},
		{"/repo/.husky/pre-push", "", runs, ""},
		{"/home/user/.gitconfig", "", runs, ""},
		{"/x/site-packages/sitecustomize.py", "", runs, "python"},
		{"/x/site-packages/a.pth", "import os", runs, "python"},
		{"/usr/local/bin/tool", elf, runs, ""},
		{"/home/user/.local/bin/git", elf, runs, ""},
		{"~/bin/ls", elf, runs, ""},
		{"/root/go/bin/x", elf, runs, ""},
		{"/repo/node_modules/.bin/tsc", "", runs, ""},
		{"/home/user/.config/autostart/x.desktop", "", runs, "desktop"},
		{"/home/user/.config/systemd/user/x.service", "", runs, "systemd"},
		{"/home/user/.ipython/profile_default/startup/00.py", "", runs, "python"},
		{"/home/user/.npmrc", "", runs, ""},
		{"/home/user/.vimrc", "", runs, ""},
		{"/proc/sys/kernel/core_pattern", "|/tmp/x", runs, ""},
		{"/dev/sda", "", runs, ""},
		{"/lib/x86_64-linux-gnu/libc.so.6", elf, runs, ""},
	} {
		t.Run(tt.path, func(t *testing.T) {
			c := files.Classify(tt.path, []byte(tt.head))
			assert.Equal(t, tt.class >= code, c.Code)
			assert.Equal(t, tt.class == runs, c.SelfRunning)
			if c.Code {
				assert.Equal(t, tt.language, c.Language)
				assert.NotEmpty(t, c.Why)
			}
		})
	}
}

// A folder moved into place brings its start-up files along.
func TestSelfRunningFolders(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/etc": true, "/usr": true, "/usr/": true, "/home": true, "/home/user": true, "~": true, "~/": true, "": true, "/root": true, "/var": true,
		"/repo/.git": true, "/home/user/.ssh": true, "/home/user/.config": true, "/home/user/.local": true, "/repo/.git/hooks": true, "/usr/bin": true, "/home/user/bin": true,
		"/home/user/project": false, "/tmp": false, "/tmp/x": false, "/usr/share/fonts/a.ttf": false, "project/bin/x": false, "/data/etc/x.csv": false,
		"/home/user/.config/app": false, "/repo/.github/x.txt": false, "/run/user/1000/x": false, "/var/run/x": true, "/var/lock/x": true, "/usr/games/ls": true, "/usr/share/perl5/x": true,
	} {
		why, ok := files.SelfRunning(path)
		assert.Equal(t, want, ok, "%q (%s)", path, why)
		assert.Equal(t, ok, why != "", path)
	}
}

func TestBuildFilesAreCode(t *testing.T) {
	for name, want := range map[string]bool{
		"package.json": true, "/repo/Makefile": true, "Dockerfile.dev": true, "Containerfile.dev": true, "a.dockerfile": true,
		"/repo/.github/workflows/ci.yml": true, ".github/actions/x/action.yaml": true, "/repo/data.yml": false, "/repo/.github/logo.png": false,
	} {
		assert.Equal(t, want, files.Classify(name, []byte("a: b\n")).Code, name)
	}
}

func TestWriteSubject(t *testing.T) {
	s := files.WriteSubject("/a.py", "root", files.Classify("/a.py", nil), "print(1)")
	assert.Equal(t, guard.Subject{
		Kind: guard.KindFile, Language: "python", Text: "print(1)", Target: "/a.py",
		Labels: map[string]string{guard.LabelAction: "write", guard.LabelUser: "root"},
	}, s)
}

func TestNotebookIsJudgedByItsCells(t *testing.T) {
	class := files.Classify("/a.ipynb", nil)
	for name, tt := range map[string]struct{ text, language, judged string }{
		"lines": {
			`{"cells":[{"cell_type":"markdown","source":["# rm -rf /"]},{"cell_type":"code","source":["import os\n","os.getcwd()"]},{"cell_type":"code","source":"1+1"}]}`,
			"python", "import os\nos.getcwd()\n\n1+1\n\n",
		},
		"version 3":         {`{"worksheets":[{"cells":[{"cell_type":"code","input":["x"]}]}]}`, "python", "x\n\n"},
		"other language":    {`{"metadata":{"language_info":{"name":"R"}},"cells":[]}`, "", `{"metadata":{"language_info":{"name":"R"}},"cells":[]}`},
		"not a notebook":    {`print("x")`, "", `print("x")`},
		"key in other case": {`{"cells":[{"cell_type":"code","source":"evil()"}],"Cells":[]}`, "python", "evil()\n\n"},
		"key twice":         {`{"cells":[{"source":"evil()"}],"cells":[]}`, "", `{"cells":[{"source":"evil()"}],"cells":[]}`},
		"odd source":        {`{"cells":[{"cell_type":"code","source":{"a":1}}]}`, "", `{"cells":[{"cell_type":"code","source":{"a":1}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := files.WriteSubject("/a.ipynb", "", class, tt.text)
			assert.Equal(t, tt.language, s.Language)
			assert.Equal(t, tt.judged, s.Text)
		})
	}
}

func TestReadSubject(t *testing.T) {
	s, _, ref := files.ReadSubject(httptest.NewRequest("GET", "http://sandbox.test/files?path=%2Fetc%2Fshadow&username=user", nil))
	require.Nil(t, ref)
	assert.Equal(t, guard.Subject{
		Kind: guard.KindFile, Target: "/etc/shadow", Labels: map[string]string{guard.LabelAction: "read", guard.LabelUser: "user"},
	}, s)
	for _, query := range []string{"path=a&path=b", "path=a;b", "path=%zz", "path=%00"} {
		r := httptest.NewRequest("GET", "http://sandbox.test/files", nil)
		r.URL.RawQuery = query
		_, _, ref := files.ReadSubject(r)
		require.NotNil(t, ref, query)
		assert.Equal(t, refusal.CodeInvalid, ref.Code)
	}
}
