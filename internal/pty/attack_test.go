package pty

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// show marks a step of an attack that the terminal shows, not one that is typed.
const show = "show:"

const prompt = "\x1b[?2004huser@e2b:~$ "

// attacks are ways to have a shell run what nobody judged. The last message of
// each must be refused; the ones before pass, for they do no harm by themselves.
var attacks = map[string][]string{
	"plainly":                        {"rm -rf /\r"},
	"with a line feed":               {"rm -rf /\n"},
	"with operate-and-get-next":      {"rm -rf /\x0f"},
	"with Enter in a broken key":     {"rm -rf /\x1b[\r"},
	"with Enter in half a rune":      {"rm -rf /\xc3\r"},
	"split over messages":            {"r", "m -r", "f ", "/", "\r"},
	"after another line":             {"ls\rrm -rf /\r"},
	"corrected into":                 {"rx\x7fm -rf /\r"},
	"backspaced beyond the start":    {"\x7f\x7f\x7frm -rf /\r"},
	"behind a killed comment":        {"# harmless\x15rm -rf /\r"},
	"behind a killed word":           {"#x\x17rm -rf /\r"},
	"inserted by cursor moves":       {"rm /\x1b[D-rf \r"},
	"inserted at the start":          {" -rf /\x01rm\r"},
	"with the comment deleted":       {"#rm -rf /\x01\x1b[3~\r"},
	"with the comment deleted, ^D":   {"#rm -rf /\x01\x04\r"},
	"yanked":                         {"rm -rf /\x15\x19\r"},
	"yanked later":                   {"rm -rf /\x15", "ls\r", show + "ls\r\n" + prompt, "\x19\r"},
	"transposed":                     {"mr\x14 -rf /\r"},
	"typed by a numeric argument":    {"r\x1b1m -rf /\r"},
	"word-wise":                      {"rm -rf / x\x1bb\x0b\r"},
	"in a bracketed paste":           {"\x1b[200~rm -rf /\x1b[201~\r"},
	"after the end of a paste":       {"\x1b[200~ls\x1b[201~\rrm -rf /\r"},
	"with a marker in the paste":     {"\x1b[200~echo \x1b[201~\x15rm -rf /\r"},
	"a paste's own line":             {"\x1b[200~ls\nrm -rf /\nls\x1b[201~"},
	"a paste, split":                 {"\x1b[200~ls\nrm -rf", " /\n"},
	"quoted insert of an Enter":      {"echo \x16\r", "x\x15rm -rf /\r"},
	"editor":                         {"ls", "\x18\x05"},
	"init file":                      {"\x18\x12"},
	"keyboard macro":                 {"\x18("},
	"macro run":                      {"\x18e"},
	"expanding the line":             {"echo $(rm -rf /)", "\x1b\x05"},
	"a comment undone":               {"#rm -rf /", "\x1b1\x1b#"},
	"other editing mode":             {"ls", "\x1b\r"},
	"any command by name":            {"\x1bx"},
	"completing a substitution":      {"echo $(rm -rf /)", "\t"},
	"bind a macro":                   {"bind '\"a\":\"rm -rf /\\n\"'\r"},
	"bind a command":                 {"bind -x '\"a\":rm -rf /'\r"},
	"bind from a file":               {"bind -f x\r"},
	"stty end of line":               {"stty eol x\r"},
	"stty without echo":              {"stty -echo\r"},
	"stty in a list":                 {"true; stty intr x\r"},
	"stty by sudo":                   {"sudo stty raw\r"},
	"fc":                             {"fc -s rm\r"},
	"fc, an editor":                  {"fc\r"},
	"history by number":              {"!42\r"},
	"history by prefix":              {"!rm\r"},
	"history in quotes":              {"echo \"!rm\"\r"},
	"history, substituted":           {"^a^b\r"},
	"history of before":              {"!!\r"},
	"history of a harmless part":     {"echo rm -rf /\r", show + "echo rm -rf /\r\nrm -rf /\r\n" + prompt, "!!:1-\r"},
	"history makes the line":         {"echo /\r", show + "echo /\r\n/\r\n" + prompt, "rm -rf !$\r"},
	"continued":                      {"rm -rf \\\r", show + "\r\n> ", "/\r"},
	"continued inside a word":        {"r\\\r", show + "\r\n> ", "m -rf /\r"},
	"a loop":                         {"for i in /; do\r", show + "\r\n> ", "rm -rf $i\r"},
	"a condition":                    {"if true\r", "then rm -rf /\r", "fi\r"},
	"a function":                     {"f() {\r", show + "\r\n> ", "rm -rf /\r"},
	"a variable of before":           {"a=rm\r", show + "a=rm\r\n" + prompt, "$a -rf /\r"},
	"an alias of before":             {"alias l='rm -rf'\r", show + "\r\n" + prompt, "l /\r"},
	"a variable, after many lines":   append(append([]string{"a=rm\r"}, strings.Split(strings.Repeat("ls -la\r\x00", 199)+"ls\r", "\x00")...), "$a -rf /\r"),
	"heredoc for a shell":            {"sh <<X\r", show + "\r\n> ", "rm -rf /\r"},
	"read and eval":                  {"read x; eval $x\r", show + "\r\n", "rm -rf /\r"},
	"read and run":                   {"read x\r", show + "\r\n", "rm\r", show + "rm\r\n" + prompt, "$x -rf /\r"},
	"read without Enter":             {"read -N 8 x; eval \"$x\"\r"},
	"cat into a shell":               {"cat | sh\r", show + "\r\n", "rm -rf /\r"},
	"cat into a shell, ^D":           {"cat | sh\r", show + "\r\n", "rm -rf /\x04"},
	"sh":                             {"sh\r", show + "\x1b[?2004l\r\n$ ", "rm -rf /\r"},
	"sh, its own word erase":         {"sh\r", show + "\x1b[?2004l\r\n$ ", "rm -rf /x\x17\r"},
	"exec sh":                        {"exec sh\r", show + "\x1b[?2004l\r\n$ ", "rm -rf /\n"},
	"sh, ^D":                         {"exec sh\r", show + "\x1b[?2004l\r\n$ ", "rm -rf /\x04"},
	"bash --norc":                    {"bash --norc\r", show + "\x1b[?2004l\r\nbash$ ", "rm -rf /\r"},
	"su":                             {"su -\r", show + "\x1b[?2004l\r\nPassword: ", "rm -rf /\r"},
	"ssh":                            {"ssh host\r", show + "\x1b[?2004l\r\nhost$ ", "rm -rf /\r"},
	"tmux":                           {"tmux\r"},
	"screen":                         {"screen -S x\r"},
	"python, a line at a time":       {"python3\r", show + "\x1b[?2004l\r\n>>> ", "import os\r", show + "import os\r\n>>> ", "os.system('rm -rf /')\r"},
	"python, the name changed":       {"python3\r", show + "\x1b[?2004l\r\n>>> ", "from os import system as s\r", show + "\r\n>>> ", "s('rm -rf /')\r"},
	"python, unseen":                 {"python3\r", "import os\r", "os.system('rm -rf /')\r"},
	"python by another name":         {"./run\r", show + "\x1b[?2004l\r\n>>> ", "import os; os.system('rm -rf /')\r"},
	"node":                           {"node\r", show + "\x1b[?2004l\r\n> ", "require('child_process').execSync('rm -rf /')\r"},
	"python, after a bad line":       {"python3\r", show + "\x1b[?2004l\r\n>>> ", "def f(:\r", show + "\r\n>>> ", "from os import system as s\r", show + "\r\n>>> ", "s('rm -rf /')\r"},
	"python with the shell's prompt": {"python3\r", show + "\x1b[?2004l\r\n>>> ", "import sys; sys.ps1 = 'user@e2b:~$ '\r", show + "\r\n" + prompt, "from os import system as s\r", show + "\r\n" + prompt, "s('rm -rf /')\r"},
	"python that is not":             {"python3\r", show + "\x1b[?2004l\r\n>>> ", "rm -rf /\r"},
	"vim, a command":                 {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":!rm -rf /\r"},
	"vim, read a command":            {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":r !rm -rf /\r"},
	"vim, a function":                {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":call system('rm -rf /')\r"},
	"vim, a terminal":                {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":terminal rm -rf /\r"},
	"vim, typed and run":             {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", "irm -rf /\x1b:.w !sh\r"},
	"less, a command":                {"less x\r", show + "\x1b[?2004l\x1b[?1049h", "!rm -rf /\r"},
	"less, a pipe":                   {"less x\r", show + "\x1b[?2004l\x1b[?1049h", "|.rm -rf /\r"},
	"man":                            {"man ls\r", show + "\x1b[?2004l\x1b[?1049h", "!rm -rf /\r"},
	"vim, left":                      {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":q\r", show + "\x1b[?1049l\r\n" + prompt, "rm -rf /\r"},
	"a faked alternate screen":       {"printf '\\e[?1049h'\r", show + "\x1b[?2004l\r\n\x1b[?1049h" + prompt, "rm -rf /\r"},
	"a faked one, from the history":  {"printf '\\e[?1049h'\r", show + "\x1b[?2004l\r\n\x1b[?1049h" + prompt, "\x1b[A\r"},
	"a faked vim":                    {"vim x\r", show + "\x1b[?2004l\r\n\x1b[?1049h" + prompt, "i\x15rm -rf /\r"},
	"a faked prompt":                 {"printf '\\e]0;x\\a'\r", show + "\r\n\x1b]0;user\x07\x1bP+q\x1b\\>>> ", "rm -rf /\r"},
	"vim, left in the same message":  {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":q\r\x1b[A\r"},
	"vim, left, and not answered":    {"vim x\r", show + "\x1b[?2004l\x1b[?1049h", ":q\r", "\x1b[A", "\r"},
	"a history of one's own":         {"history -s 'x'\r"},
	"a history file of one's own":    {"HISTFILE=/tmp/x bash\r"},
	"given up, but not":              {"rm -rf \x03", "/\r"},
	"stopped text":                   {"cat\r", show + "\x1b[?2004l\r\n", "#\x1a", "rm -rf /\r"},
	"editing mode of vi":             {"set -o vi\r", show + "\r\n" + prompt, "ls\x1bv"},
	"vi, a macro":                    {"set -o vi\r", show + "\r\n" + prompt, "\x1b@a"},
	"keys that are read elsewhere":   {"INPUTRC=/tmp/x bash\r"},
	"builtins replaced":              {"enable -f ./x.so ls\r"},
	"history and Enter at once":      {"ls\r\x1b[A\r"},
	"a resized screen":               {"ls\x1b[200~\x0d\x1b[201~rm", "\x15rm -rf /\r"},
}

func TestAttacksAreRefused(t *testing.T) {
	review := reviewer(t)
	for name, steps := range attacks {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Command: "/bin/bash", Args: []string{"-i", "-l"}, Cols: 80, Rows: 24, UTF8: true})
			s.Output([]byte(prompt))
			for i, step := range steps {
				if out, ok := strings.CutPrefix(step, show); ok {
					s.Output([]byte(out))
					continue
				}
				p := s.Keys([]byte(step))
				why := judge(review, p)
				if i == len(steps)-1 {
					require.True(t, why != "" || p.Look != nil, "reviewed: %q", p.Reviews) // or read from the screen first
					return
				}
				require.Empty(t, why, "step %d: %q", i+1, step)
				require.Nil(t, p.Look)
				s.Commit(p)
			}
		})
	}
}

// TestUnseenLinesAreReadFromTheScreenAndTypedAgain: a line from the history or a
// completion is judged as the screen shows it, and what is judged is what is sent.
func TestUnseenLinesAreReadFromTheScreenAndTypedAgain(t *testing.T) {
	review := reviewer(t)
	for name, c := range map[string]struct {
		keys, shown, want string
		blocked           bool
	}{
		"history":               {"\x1b[A", "ls -la", "ls -la", false},
		"a harmful line of it":  {"\x1b[A", "rm -rf /", "rm -rf /", true},
		"a completion":          {"cat no\t", "cat notes.txt ", "cat notes.txt ", false},
		"a dangerous name":      {"rm -rf /ho\t", "rm -rf /home ", "rm -rf /home ", true},
		"searched":              {"\x12rm", "rm -rf /", "rm -rf /", true},
		"undone":                {"#rm -rf /\x1f", "rm -rf /", "rm -rf /", true},
		"a key with no meaning": {"\x1b[1;5Drm -rf /", "rm -rf /", "rm -rf /", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Command: "/bin/bash", Args: []string{"-i", "-l"}, Cols: 80, Rows: 24, UTF8: true})
			s.Output([]byte(prompt))
			first := s.Keys([]byte(c.keys))
			require.Nil(t, first.Look)
			require.Equal(t, c.keys, string(first.Send), "keys flow at once")
			s.Commit(first)
			p := s.Keys([]byte("\r"))
			require.NotNil(t, p.Look)
			require.Equal(t, "\x05"+mark, string(p.Look.Ask))
			s.Commit(p)
			_, ok := s.Read(p.Look, false)
			require.False(t, ok, "the screen does not show the mark yet")
			s.Output([]byte(c.shown + mark))
			then, ok := s.Read(p.Look, false)
			require.True(t, ok)
			require.Equal(t, "\x15"+c.want+"\r", string(then.Send))
			require.Contains(t, then.Reviews, Review{Language: "bash", Text: c.want})
			require.Equal(t, c.blocked, judge(review, then) != "")
		})
	}
}

// TestWithoutTheScreenUnknownLinesAreRefused until they are given up and typed.
func TestWithoutTheScreenUnknownLinesAreRefused(t *testing.T) {
	for _, keys := range []string{"\x1b[A\r", "\x10\r", "ls \t\r", "\x12x\r", "\x1b[1;5Dx\r", "\x1b.\r", "\x1f\r"} {
		s := New(Options{Command: "bash"})
		require.False(t, s.Seen())
		require.Equal(t, unseenHint, s.Keys([]byte(keys)).Refusal, "%q", keys)
		p := s.Keys([]byte(keys[:len(keys)-1]))
		require.Empty(t, p.Refusal)
		s.Commit(p)
		p = s.Keys([]byte("\x03ls\r"))
		require.Empty(t, p.Refusal)
		require.Equal(t, "ls", p.Reviews[0].Text)
	}
}

// TestPasswordsAreHiddenAndForgotten: they are judged, for the prompt may be
// faked, and kept nowhere.
func TestPasswordsAreHiddenAndForgotten(t *testing.T) {
	s := New(Options{Command: "bash", Cols: 80, Rows: 24, UTF8: true})
	s.Output([]byte(prompt))
	s.Commit(s.Keys([]byte("sudo ls\r")))
	s.Output([]byte("sudo ls\x1b[?2004l\r\n[sudo] password for user: "))
	p := s.Keys([]byte("hunter2=x\r"))
	require.NotEmpty(t, p.Reviews)
	for _, r := range p.Reviews {
		require.True(t, r.Hidden)
	}
	s.Commit(p)
	s.Output([]byte("\r\n" + prompt))
	for _, r := range s.Keys([]byte("ls\r")).Reviews {
		require.NotContains(t, r.Text, "hunter2")
		require.False(t, r.Hidden)
	}
}

// TestAScreenThatIsTooLargeIsNotFollowed: its size is the client's word.
func TestAScreenThatIsTooLargeIsNotFollowed(t *testing.T) {
	require.False(t, New(Options{Command: "bash", Cols: 1 << 30, Rows: 1 << 30}).Seen())
	s := New(Options{Command: "bash", Cols: 80, Rows: 24})
	require.True(t, s.Seen())
	s.Resize(1<<20, 2)
	require.False(t, s.Seen())
}

// FuzzScreen: whatever a program writes, the screen stays whole.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[2J\x1b[5;5Hx\x1b[10L\x1b[?1049l"), 80, 24)
	f.Add([]byte("\x1b[2;3r\x1b[9999S\x1b[9999T\n\n\n日本"), 1, 3)
	f.Add([]byte("\x1b[4h\x1b[@a日\x1b[99999999P"), 2, 1)
	f.Fuzz(func(t *testing.T, out []byte, cols, rows int) {
		s := New(Options{Command: "bash", Cols: cols, Rows: rows})
		if !s.Seen() {
			return
		}
		s.Output(out)
		s.Resize(cols/2+1, rows+1)
		if !s.Seen() {
			return
		}
		s.Output(out)
		_, _ = s.screen.before()
		_ = s.screen.under()
	})
}

func BenchmarkKey(b *testing.B) {
	s := New(Options{Command: "bash", Cols: 80, Rows: 24, UTF8: true})
	s.Output([]byte(prompt))
	s.Commit(s.Keys([]byte("git commit -m 'something of the usual length'")))
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Keys([]byte("x"))
	}
}

func BenchmarkOutput(b *testing.B) {
	s := New(Options{Command: "bash", Cols: 80, Rows: 24, UTF8: true})
	out := []byte(strings.Repeat("\x1b[32mdrwxr-xr-x\x1b[0m 2 user user 4096 notes.txt\r\n", 20))
	b.SetBytes(int64(len(out)))
	b.ReportAllocs()
	for b.Loop() {
		s.Output(out)
	}
}
