package envd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
)

func show(uses []envd.Use) string {
	var out []string
	for _, u := range uses {
		switch {
		case u.Changed != "":
			out = append(out, "changed:"+u.Changed)
		case u.Path != "":
			out = append(out, ">"+u.Path)
		case u.Sure:
			out = append(out, u.Language+"!")
		default:
			out = append(out, u.Language)
		}
	}
	return strings.Join(out, " ")
}

// Wrappers hide the real command: luisgf/infrabroker#352.
func TestWhatBecomesOfStandardInput(t *testing.T) {
	for script, want := range map[string]string{
		// Interpreters, seen through what starts them.
		"bash": "bash!", "sh -s": "bash!", "exec bash": "bash!", "bash -i": "bash!", "bash --norc -i": "bash!",
		"python3": "python! bash", "python3 -i": "python! bash", "python3 -": "python! bash", "/usr/bin/python3.12": "python! bash",
		"python3 -u": "python bash", "python3 app.py": "python bash", "python3 -c 'exec(input())'": "python bash",
		"node": "javascript! bash", "node -i": "javascript! bash", "Rscript -": "r! bash", "ruby": "ruby! bash", "perl -": "perl! bash",
		"psql -h db": "sql! bash", "sqlite3 a.db": "sql! bash", "mysql": "sql! bash", "irb": "ruby! bash",
		"env A=1 timeout 5 sudo -u root nohup python3": "python! bash",
		"timeout -s KILL 5 bash":                       "bash!", "nice -n 5 bash": "bash!", "exec -a x bash": "bash!", "A=1 bash": "bash!",
		"bash -c 'bash -c python3'": "python! bash", "cd /app && source .venv/bin/activate && python3": "bash python! bash",
		"sudo -i": "bash", "sudo -s": "bash", "env -S 'cat'": "bash", "su": "bash", "ssh host": "bash", "docker exec -i c sh": "bash",
		"xargs rm": "bash", "awk '{system($0)}'": "bash", "sed 's/a/b/e'": "bash",
		// What is made at run time, or is not known by name, may be anything.
		"$SHELL": "bash", "\"$x\"": "bash", "./run": "bash", "/tmp/cat": "bash", "bash run.sh": "bash", "ba\\sh": "bash!", `"ba"'sh'`: "bash!",
		"`echo bash`": "bash", "eval \"$(cat)\"": "bash", "cat | bash": "bash!", "cat <(bash)": "bash!", "cat | tee >(bash)": "bash!",
		"if true; then bash; fi": "bash!", "while read x; do $x; done": "bash", "f() { bash; }; f": "bash!", "(bash)": "bash!", "{ bash; } 2>&1": "bash!",
		"bash < /dev/stdin": "bash!", "bash 0<&3": "bash!", "exec 3<&0; bash <&3": "bash!", "cp /dev/stdin x": "bash", "broken (": "bash",
		`echo "$(cat)" | bash`: "bash!", `read x; echo "$x" | sh`: "bash!", "x=$(cat); bash -c \"$x\"": "bash", "bash <<E\n$(cat)\nE": "bash!", `bash <<< "$x"`: "bash!",
		// Data.
		"cat": "", "wc -l": "", "jq .": "", "grep x": "", "gzip -c": "", "tar xf -": "", "cd /app && cat": "", "while read x; do echo \"$x\"; done": "",
		"bash < script": "", "python3 <<< 'print(1)'": "", "bash <<EOF\nls\nEOF": "", "echo x | bash": "", "sleep 100": "", "bash <&-": "bash!",
		// Data that stays.
		"cat > a.sh": ">a.sh", "cat >> ~/.bashrc": ">~/.bashrc", "tee a.py": ">a.py", "dd of=x.sh": ">x.sh", "cat > \"$F\"": ">\"$F\"",
		"base64 -d > x.sh": ">x.sh", "cat | tee a > b": ">a >b", "cat > /dev/null": "", "{ cat; } > x": ">x",
		// Data that runs as something else.
		"base64 -d | bash": "changed:base64", "gunzip | python3": "changed:gunzip", "tr a b | cat | sh": "changed:tr",
	} {
		args := []string{"-l", "-c", script}
		got := show(envd.StdinUses("/bin/bash", args))
		assert.Equal(t, dedupe(want), got, script)
	}
	assert.Equal(t, "bash!", show(envd.StdinUses("/bin/bash", []string{"-i", "-l"})))
	assert.Equal(t, "", show(envd.StdinUses("cat", nil)))
	assert.Equal(t, "bash", show(envd.StdinUses("/home/user/cat", nil)))
}

func dedupe(want string) string {
	var out []string
	for w := range strings.FieldsSeq(want) {
		dup := false
		for _, o := range out {
			dup = dup || o == w
		}
		if !dup {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

func FuzzStdinUses(f *testing.F) {
	for _, s := range []string{"bash", "cat | tee >(bash) > x", "while read x; do $x; done", "f() { f; }; f", "python3 <<E\nE", "()0"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, script string) { envd.ScriptUses(script) })
}
