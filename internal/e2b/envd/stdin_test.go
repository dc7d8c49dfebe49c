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
			out = append(out, "changed:"+strings.ReplaceAll(u.Changed, " ", "_"))
		case u.Made:
			out = append(out, ">?"+u.Path)
		case u.Path != "":
			out = append(out, ">"+u.Path)
		case u.Before != "":
			out = append(out, u.Language+"("+strings.ReplaceAll(u.Before, " ", "_")+")")
		case u.Parts:
			out = append(out, u.Language+"~")
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
		"sudo -i": "bash python", "sudo -s": "bash python", "env -S 'cat'": "bash python", "su": "bash", "ssh host": "bash", "docker exec -i c sh": "bash",
		"xargs rm": "bash(rm)", "xargs -n 1 -I{} sh -c {}": "bash(sh_-c_{})", "awk '{system($0)}'": "bash", "sed 's/a/b/e'": "bash",
		// What is made at run time, or is not known by name, may be anything.
		"$SHELL": "bash python", "\"$x\"": "bash python", "./run": "bash python", "/tmp/cat": "bash python", "bash run.sh": "bash", "ba\\sh": "bash!", `"ba"'sh'`: "bash!",
		"`echo bash`": "bash python", "eval \"$(cat)\"": "bash", "cat | bash": "bash!", "cat <(bash)": "bash!", "cat | tee >(bash)": "bash!",
		"if true; then bash; fi": "bash!", "while read x; do $x; done": "bash~ bash python", "while read -r x; do $x; done": "bash python", "f() { bash; }; f": "bash!", "(bash)": "bash!", "{ bash; } 2>&1": "bash!",
		"bash < /dev/stdin": "bash!", "bash 0<&3": "bash!", "exec 3<&0; bash <&3": "bash!", "cp /dev/stdin x": "bash", "broken (": "bash",
		`echo "$(cat)" | bash`: "changed:echo", `read -r x; printf '%s\n' "$x" | sh`: "bash!", `read -r x; echo "$x" | sh`: "changed:echo", "x=$(cat); bash -c \"$x\"": "bash", "bash <<E\n$(cat)\nE": "changed:the_script", `bash <<< "$(cat)"`: "bash!", `bash <<< "$x"`: "",
		// Data.
		"cat": "", "wc -l": "", "jq .": "", "grep x": "", "gzip -c": "", "tar xf -": "", "cd /app && cat": "", "while read x; do echo \"$x\"; done": "",
		"bash < script": "", "python3 <<< 'print(1)'": "", "bash <<EOF\nls\nEOF": "", "echo x | bash": "", "sleep 100": "", "bash <&-": "bash!",
		// Data that stays.
		"cat > a.sh": ">a.sh", "cat >> ~/.bashrc": ">~/.bashrc", "tee a.py": ">a.py", "dd of=x.sh": ">x.sh", "cat > \"$F\"": ">?\"$F\"",
		"base64 -d > x.sh": ">x.sh", "cat | tee a > b": ">a >b", "cat > /dev/null": "", "{ cat; } > x": ">x",
		"cat > a.bin > $F; F=x": ">a.bin >?$F", "F=a.py; cat > $F": ">a.py", "D=~/.ssh; cat > $D/config": ">~/.ssh/config", "cat > ~/.prof*": ">?~/.prof*",
		"cat > $D/a.png": ">$D/a.png", "cat > $D/hook": ">?$D/hook", "cd /etc/cron.d; cat > job": ">job >/etc/cron.d/job", "T=$(mktemp); cat > $T": ">/tmp/tmp.0",
		"split - x": ">xaa", "sort --compress-program=gzip": "", "tar xz --strip-components=1 -C \"$D\"": "", "tar x -I zstd": "", "split --filter='gzip > $FILE.gz'": ">$FILE.gz",
		// What a variable holds of the input is data until it is run or evaluated.
		"while IFS= read -r l; do echo \"got $l\"; done": "", "read -p 'Name: ' n; echo \"Hello $n\"": "", "x=$(cat); echo ${#x}": "", "while read -r f; do wc -l \"$f\"; done": "",
		"read -r x; case $x in y) ls;; esac": "", "read -r x; [[ $x == y ]] && ls": "", "read -r x; [ \"$x\" = y ] && ls": "", "x=$(cat); jq . <<< \"$x\"": "",
		"read -r x; echo $((x))": "bash", "read -r x; ((x)) && ls": "bash", "read -r x; [[ $x -eq 1 ]]": "bash", "read -r x; y[x]=1": "bash", "read -r x; echo ${y:x}": "bash",
		"read -r x; echo ${!x}": "bash", "read -r x; echo ${x@P}": "changed:the_shell", "read -r x; trap \"$x\" EXIT": "bash", "read -r x; declare \"$x\"": "bash", "read -r PS4": "changed:the_shell",
		"read -r x; let \"$x\"": "bash", "read -r x; export BASH_ENV=$x": "bash", "read -r x; test -v \"$x\"": "bash", "read -r x; printf -v \"$x\" y": "bash", "read x y; ls $((y))": "bash~",
		"f() { eval \"$1\"; }; read -r x; f \"$x\"": "bash", "for w in $(cat); do $w; done": "bash~ bash python",
		"mapfile -t -C f a": "changed:mapfile", "mapfile -t a; eval \"${a[0]}\"": "bash~ bash",
		// Data that runs as something else.
		"IFS=Q read -ra a; eval \"${a[*]}\"": "changed:IFS bash", "read -r -d X a; eval \"$a\"": "changed:read bash", "IFS=, read -r a b; echo \"$b\"": "", "read -n 1 k; echo \"$k\"": "",
		"read -r x; eval \"${x//Q/}\"": "changed:the_script bash", "read -r a; read -r b; eval \"$a$b\"": "changed:the_script bash", "x=$(rev); eval \"$x\"": "changed:rev bash", "bash <(rev)": "changed:rev bash",
		"f() { bash; }; rev | f": "changed:rev", "printf \"$(cat)\" | sh": "bash changed:printf", "head -n 5 | bash": "changed:head", "cat -s | sh": "changed:cat",
		"base64 -d > ~/.profile": ">~/.profile changed:base64", "X=pro; rev > ~/.${X}file": ">~/.profile changed:rev", "rev > $F": ">?$F changed:rev", "rev > a.txt": ">a.txt",
		"split --filter=sh": "changed:split", "tar x --to-com=sh": "changed:tar", "tar -xI 'sh -s'": "changed:tar", "sort --compress-program sh": "changed:sort",
		// Programs that go by the name of another.
		"PATH=/tmp/p:$PATH; cat": "bash python", "env PATH=/tmp/p cat": "bash python", "alias cat=bash; cat": "bash python", "cat() { bash; }; cat": "bash!", "hash -p /bin/sh cat; cat": "bash python",
		"PATH=$PATH:/opt/x; cat": "", "BASH_ENV=/dev/stdin sh -c true; cat": "bash python",
		"base64 -d | bash": "changed:base64", "gunzip | python3": "changed:gunzip", "tr a b | cat | sh": "changed:tr",
	} {
		args := []string{"-l", "-c", script}
		got := show(envd.StdinUses("/bin/bash", args))
		assert.Equal(t, dedupe(want), got, script)
	}
	assert.Equal(t, "bash!", show(envd.StdinUses("/bin/bash", []string{"-i", "-l"})))
	assert.Equal(t, "", show(envd.StdinUses("cat", nil)))
	assert.Equal(t, "bash python", show(envd.StdinUses("/home/user/cat", nil)))
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
