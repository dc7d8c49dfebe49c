package envd

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

func TestStartSubjects(t *testing.T) {
	code := func(language, text string) guard.Subject {
		return guard.Subject{Kind: guard.KindCode, Language: language, Text: text}
	}
	argv := func(words ...string) []string { return words }
	tests := map[string]struct {
		argv []string
		want []guard.Subject
	}{
		"what the SDKs send":       {argv("/bin/bash", "-l", "-c", "echo 'a b' | wc"), []guard.Subject{command("echo 'a b' | wc")}},
		"terminal of the SDKs":     {argv("/bin/bash", "-i", "-l"), []guard.Subject{command("/bin/bash -i -l")}},
		"clustered options":        {argv("bash", "-lc", "id"), []guard.Subject{command("id")}},
		"c in the middle":          {argv("sh", "-ecx", "id"), []guard.Subject{command("id")}},
		"options behind c":         {argv("bash", "-c", "-l", "id"), []guard.Subject{command("id")}},
		"long options":             {argv("bash", "--login", "--norc", "-c", "id"), []guard.Subject{command("id")}},
		"end of options":           {argv("bash", "-c", "--", "id"), []guard.Subject{command("id")}},
		"lone dash ends options":   {argv("bash", "-c", "-", "id"), []guard.Subject{command("id")}},
		"empty string":             {argv("bash", "-c", ""), []guard.Subject{command("")}},
		"positional parameters":    {argv("bash", "-c", `"$@"`, "x", "rm", "-rf", "/"), []guard.Subject{command(`"$@"`), command(`bash -c '"$@"' x rm -rf /`)}},
		"start-up file":            {argv("bash", "--rcfile", "/tmp/x", "-ic", "id"), []guard.Subject{command("bash --rcfile /tmp/x -ic id"), command("/tmp/x"), command("id")}},
		"one dash, long option":    {argv("bash", "-rcfile", "ls", "-c", "id"), []guard.Subject{command("bash -rcfile ls -c id"), command("ls"), command("id")}},
		"one dash, init file":      {argv("bash", "-init-file", "ls", "-c", "id"), []guard.Subject{command("bash -init-file ls -c id"), command("ls"), command("id")}},
		"one dash, posix":          {argv("bash", "-posix", "-c", "id"), []guard.Subject{command("bash -posix -c id"), command("id")}},
		"shell option":             {argv("bash", "-o", "errexit", "-c", "id"), []guard.Subject{command("bash -o errexit -c id"), command("errexit"), command("id")}},
		"shell option in cluster":  {argv("bash", "-eco", "pipefail", "id"), []guard.Subject{command("bash -eco pipefail id"), command("pipefail"), command("id")}},
		"plus option":              {argv("bash", "+e", "-c", "id"), []guard.Subject{command("bash +e -c id"), command("id")}},
		"unknown option":           {argv("bash", "-Zc", "id"), []guard.Subject{command("bash -Zc id"), command("id")}},
		"path with dots":           {argv("/usr/../bin//bash", "-c", "id"), []guard.Subject{command("id"), command("/usr/../bin//bash -c id")}},
		"c without string":         {argv("bash", "-c"), []guard.Subject{command("bash -c")}},
		"script file":              {argv("bash", "/tmp/x.sh", "-c", "id"), []guard.Subject{command("bash /tmp/x.sh -c id")}},
		"a file called bash":       {argv("/tmp/bash", "-c", "id"), []guard.Subject{command("/tmp/bash -c id")}},
		"zsh":                      {argv("/usr/bin/zsh", "-c", "id"), []guard.Subject{command("id")}},
		"python":                   {argv("python3", "-c", "print(1)"), []guard.Subject{code("python", "print(1)"), command("python3 -c 'print(1)'")}},
		"python, version, cluster": {argv("/usr/bin/python3.11", "-Bc", "print(1)", "-c", "x"), []guard.Subject{code("python", "print(1)"), command("/usr/bin/python3.11 -Bc 'print(1)' -c x")}},
		"python, attached":         {argv("python", "-cprint(1)"), []guard.Subject{code("python", "print(1)"), command("python '-cprint(1)'")}},
		"python, warning option":   {argv("python", "-W", "ignore", "-c", "x=1"), []guard.Subject{code("python", "x=1"), command("python -W ignore -c x=1")}},
		"python module":            {argv("python3", "-m", "http.server"), []guard.Subject{command("python3 -m http.server")}},
		"node":                     {argv("node", "-e", "1"), []guard.Subject{code("javascript", "1"), command("node -e 1")}},
		"node print":               {argv("node", "-pe", "1+1"), []guard.Subject{code("javascript", "1+1"), command("node -pe 1+1")}},
		"node eval word":           {argv("node", "--no-warnings", "--eval=x()"), []guard.Subject{code("javascript", "x()"), command("node --no-warnings '--eval=x()'")}},
		"node option, argument":    {argv("node", "--require", "x", "-e", "y()"), []guard.Subject{code("javascript", "y()"), command("node --require x -e 'y()'")}},
		"python option, argument":  {argv("python", "--check-hash-based-pycs", "always", "-c", "x"), []guard.Subject{code("python", "x"), command("python --check-hash-based-pycs always -c x")}},
		"node script":              {argv("node", "x.js", "-e", "1"), []guard.Subject{command("node x.js -e 1")}},
		"perl, several":            {argv("perl", "-ne", "print;", "-e", "exit"), []guard.Subject{code("perl", "print;\nexit"), command("perl -ne 'print;' -e exit")}},
		"ruby":                     {argv("ruby", "-e", "puts 1"), []guard.Subject{code("ruby", "puts 1"), command("ruby -e 'puts 1'")}},
		"anything else":            {argv("/usr/bin/env", "A=b", "sh", "-c", "it's"), []guard.Subject{command(`/usr/bin/env A=b sh -c 'it'\''s'`)}},
		"assignment as a program":  {argv("A=b", "c"), []guard.Subject{command("'A=b' c")}},
		"newline and empty word":   {argv("printf", "a\nb", ""), []guard.Subject{command("printf 'a\nb' ''")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			subjects, r := messageOf(t, startPath, start(tt.argv[0], tt.argv[1:]...)).Subjects(http.Header{})
			require.Nil(t, r)
			assert.Equal(t, tt.want, subjects)
		})
	}
}

// Wherever a word stands among a program's arguments, and whatever options stand
// around it, the guard sees it.
func TestNoArgumentIsHidden(t *testing.T) {
	programs := []string{
		"bash", "/bin/sh", "/usr/bin/zsh", "dash", "ash", "ksh", "python3", "/usr/bin/python3.11", "node", "bun", "perl", "ruby", "php", "R", "Rscript", "lua",
		"env", "busybox", "./bash", "/tmp/bash", "/usr/../bin/bash", "/bin/sh ", "sudo", "/proc/self/exe",
	}
	around := []string{"", "-c", "-lc", "-ec", "-s", "-o", "--", "-", "+c", "+x", "--rcfile", "--norc", "-i", "-e", "-pe", "-m", "-W", "--eval", "--eval=x", "-x", "x", "-O"}
	const word = "the-word" // no cluster of options
	shows := func(program string, args ...string) bool {
		subjects, r := messageOf(t, startPath, start(program, args...)).Subjects(http.Header{})
		for _, s := range subjects {
			if strings.Contains(s.Text, word) {
				return true
			}
		}
		return r != nil
	}
	for _, program := range programs {
		for _, a := range around {
			for _, b := range around {
				for _, args := range [][]string{{a, b, word}, {a, word, b}, {word, a, b}, {a, b, "x", word}, {a, "x", b, word}, {a + word, b}, {a, b + word, "x"}} {
					if !shows(program, args...) {
						t.Fatalf("%s %q", program, args)
					}
				}
			}
		}
	}
}

func TestStartSubjectsCarryContext(t *testing.T) {
	req := start("/bin/bash", "-c", "id")
	req.Process.Cwd = proto.String("/work")
	req.Process.Envs = map[string]string{"B": "secret", "A": "x"}
	req.Tag = proto.String("job")
	subjects, r := messageOf(t, startPath, req).Subjects(http.Header{"Authorization": {"Basic cm9vdDo="}})
	require.Nil(t, r)
	require.NotEmpty(t, subjects)
	assert.Equal(t, guard.Subject{
		Kind: guard.KindCommand, Language: "bash", Text: "id", Target: "job",
		Labels: map[string]string{guard.LabelCwd: "/work", guard.LabelEnvNames: "A,B", guard.LabelUser: "root"},
	}, subjects[0])
}

// Each is run by envd in a way that its fields do not tell, or by nobody honest.
func TestStartHygiene(t *testing.T) {
	env := func(name, value string) *processpb.StartRequest {
		req := start("/bin/true")
		req.Process.Envs = map[string]string{name: value}
		return req
	}
	tagged := start("/bin/true")
	tagged.Tag = proto.String("_system")
	inFolder := start("/bin/true")
	inFolder.Process.Cwd = proto.String("/tmp\x00")
	for name, req := range map[string]*processpb.StartRequest{
		"no process":             {},
		"empty command":          start(""),
		"option to nice":         start("-n", "5", "/bin/sh"),
		"end of options to nice": start("--", "/bin/sh"),
		"system tag":             tagged,
		"nul in command":         start("/bin/true\x00x"),
		"nul in argument":        start("/bin/true", "a\x00b"),
		"nul in variable":        env("A", "\x00"),
		"nul in folder":          inFolder,
		"variable in a name":     env("BASH_ENV=/tmp/x;A", "b"),
		"millions of arguments":  start("ls", make([]string, maxWords+1)...),
		"empty name":             env("", "b"),
	} {
		t.Run(name, func(t *testing.T) {
			subjects, r := messageOf(t, startPath, req).Subjects(http.Header{})
			require.NotNil(t, r)
			assert.Empty(t, subjects)
			assert.Contains(t, []refusal.Code{refusal.CodeInvalid, refusal.CodePolicy}, r.Code)
		})
	}
}

func TestFileSubjects(t *testing.T) {
	file := func(action, path string) guard.Subject {
		return guard.Subject{Kind: guard.KindFile, Target: path, Labels: map[string]string{guard.LabelAction: action}}
	}
	const service = "/filesystem.Filesystem/"
	for name, tt := range map[string]struct {
		path string
		msg  proto.Message
		want []guard.Subject
	}{
		"remove":  {service + "Remove", &filesystempb.RemoveRequest{Path: "/x"}, []guard.Subject{file("remove", "/x")}},
		"mkdir":   {service + "MakeDir", &filesystempb.MakeDirRequest{Path: "/x"}, []guard.Subject{file("mkdir", "/x")}},
		"stat":    {service + "Stat", &filesystempb.StatRequest{Path: "/x"}, []guard.Subject{file("list", "/x")}},
		"list":    {service + "ListDir", &filesystempb.ListDirRequest{Path: "/x"}, []guard.Subject{file("list", "/x")}},
		"watch":   {service + "WatchDir", &filesystempb.WatchDirRequest{Path: "/x"}, []guard.Subject{file("watch", "/x")}},
		"watcher": {service + "CreateWatcher", &filesystempb.CreateWatcherRequest{Path: "/x"}, []guard.Subject{file("watch", "/x")}},
		"move":    {service + "Move", &filesystempb.MoveRequest{Source: "/a", Destination: "/data/b"}, []guard.Subject{file("take", "/a"), file("move", "/data/b")}},
		"events":  {service + "GetWatcherEvents", &filesystempb.GetWatcherEventsRequest{WatcherId: "w"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			subjects, r := messageOf(t, tt.path, tt.msg).Subjects(http.Header{})
			require.Nil(t, r)
			assert.Equal(t, tt.want, subjects)
		})
	}
}

// envd hands ".." in an absolute path to the kernel, where it follows symbolic
// links: /var/run/../etc is /etc. So the path is resolved before it is judged,
// and forwarded that way.
func TestAbsolutePathsAreResolvedByName(t *testing.T) {
	const linked = "/var/run/../etc/x"
	for path, body := range map[string]string{
		"/filesystem.Filesystem/Remove":        `{"path":"` + linked + `"}`,
		"/filesystem.Filesystem/MakeDir":       `{"path":"` + linked + `"}`,
		"/filesystem.Filesystem/Stat":          `{"path":"` + linked + `"}`,
		"/filesystem.Filesystem/ListDir":       `{"path":"` + linked + `"}`,
		"/filesystem.Filesystem/WatchDir":      frameOf(0, `{"path":"`+linked+`"}`),
		"/filesystem.Filesystem/CreateWatcher": `{"path":"` + linked + `"}`,
		"/filesystem.Filesystem/Move":          `{"source":"` + linked + `","destination":"` + linked + `"}`,
		"/process.Process/Start":               frameOf(0, `{"process":{"cmd":"ls","cwd":"`+linked+`"}}`),
	} {
		m := methodOf(t, path)
		msg, r := Decode(m, Encoding{Codec: JSON, Stream: m.Kind == ServerStream}, strings.NewReader(body), maxTest)
		require.Nil(t, r, path)
		encoded, err := msg.Encode()
		require.NoError(t, err)
		assert.NotContains(t, string(encoded), "..", path)
		assert.Contains(t, string(encoded), "/var/etc/x", path)
		subjects, r := msg.Subjects(http.Header{})
		require.Nil(t, r, path)
		for _, s := range subjects {
			assert.NotContains(t, s.Target+s.Labels[guard.LabelCwd], "..", path)
		}
	}
}

// envd takes an empty path for the home: removing it would remove everything.
func TestEmptyPathIsTheHome(t *testing.T) {
	const service = "/filesystem.Filesystem/"
	for path, msg := range map[string]proto.Message{
		service + "Remove": &filesystempb.RemoveRequest{},
		service + "Move":   &filesystempb.MoveRequest{Source: "", Destination: "/tmp/x"},
	} {
		_, r := messageOf(t, path, msg).Subjects(http.Header{})
		require.NotNil(t, r, path)
		assert.Equal(t, refusal.CodeInvalid, r.Code)
	}
	subjects, r := messageOf(t, service+"ListDir", &filesystempb.ListDirRequest{}).Subjects(http.Header{})
	require.Nil(t, r)
	assert.Equal(t, "~", subjects[0].Target)
}

// A moved file whose text is unknown may not go where it would run by itself.
func TestMoveOntoSelfRunningPathIsRefused(t *testing.T) {
	for _, to := range []string{
		"/home/user/.bashrc", ".profile", "~/.ssh", "/etc/cron.d/x", "/repo/.git/hooks", "/usr/bin/ls",
		"/home/user/x/../.bashrc", "../../etc/profile.d/a.sh", "/usr/lib/python3/sitecustomize.py", "/etc", "/",
	} {
		_, r := messageOf(t, "/filesystem.Filesystem/Move", &filesystempb.MoveRequest{Source: "/tmp/x", Destination: to}).Subjects(http.Header{})
		require.NotNil(t, r, to)
		assert.Equal(t, refusal.CodePolicy, r.Code)
	}
}

// With its text, it is judged as one that is written there.
func TestMoveWithItsTextIsJudgedAsAWrite(t *testing.T) {
	m := messageOf(t, "/filesystem.Filesystem/Move", &filesystempb.MoveRequest{Source: "/tmp/x", Destination: "/repo/.git/hooks/pre-commit"})
	text := "#!/usr/bin/env python3\nprint(1)\n"
	m.MovedText = &text
	subjects, r := m.Subjects(http.Header{})
	require.Nil(t, r)
	require.Len(t, subjects, 2)
	assert.Equal(t, "take", subjects[0].Labels[guard.LabelAction])
	assert.Equal(t, "/repo/.git/hooks/pre-commit", subjects[1].Target)
	assert.Equal(t, text, subjects[1].Text)
	assert.Equal(t, "python", subjects[1].Language)
}

// Every method is either looked into or known to carry nothing to judge.
func TestEveryMethodIsConsidered(t *testing.T) {
	silent := map[string]bool{
		"/process.Process/List": true, "/process.Process/Connect": true, "/process.Process/Update": true, "/process.Process/SendSignal": true,
		"/process.Process/CloseStdin": true, "/filesystem.Filesystem/GetWatcherEvents": true, "/filesystem.Filesystem/RemoveWatcher": true,
	}
	for _, m := range Methods() {
		if m.Kind == ClientStream || m.Path == "/process.Process/SendInput" { // judged with what the process is
			_, r := Decode(m, Encoding{Codec: JSON, Stream: true}, http.NoBody, maxTest)
			require.NotNil(t, r, "%s has no decoder, so it must be refused", m.Path)
			continue
		}
		msg := &Message{Method: m, Encoding: Encoding{Codec: JSON}, Proto: m.newRequest()}
		subjects, r := msg.Subjects(http.Header{})
		assert.Equal(t, silent[m.Path], len(subjects) == 0 && r == nil, m.Path)
	}
}
