package pty

import (
	"bufio"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// realLine is bash's line editor on a terminal of its own: what it makes of keys
// comes back without being run.
type realLine struct {
	tty     *os.File
	lines   *bufio.Reader
	prompts chan struct{}
}

// readLoop reads lines as a prompt does and hands each out, encoded.
const readLoop = `while IFS= read -r -e -p "$ " line; do printf '%s' "$line" | base64 -w0 >&3; echo >&3; done`

func startReadline(t testing.TB) *realLine {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("bash", "--norc", "--noprofile", "-c", readLoop)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "LC_ALL=C.UTF-8", "INPUTRC=/dev/null", "HOME=" + t.TempDir()}
	cmd.ExtraFiles = []*os.File{w}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	require.NoError(t, err, "this test compares with a real bash")
	require.NoError(t, w.Close())
	done := make(chan struct{})
	prompts := make(chan struct{}, 1)
	go func() {
		defer close(done)
		out := bufio.NewReader(tty)
		for tail := ""; ; {
			c, err := out.ReadByte()
			if err != nil {
				return
			}
			if tail += string(c); strings.HasSuffix(tail, "\x1b[?2004h") {
				tail = ""
				prompts <- struct{}{}
			}
			tail = tail[max(0, len(tail)-16):]
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		go func() { // the last prompt, if nobody waits for it
			for range prompts { //nolint:revive // only to empty it
			}
		}()
		_ = tty.Close()
		_ = r.Close()
		<-done
		close(prompts)
	})
	return &realLine{tty, bufio.NewReader(r), prompts}
}

// run is the line that the keys and an Enter make.
func (l *realLine) run(t testing.TB, keys string) string {
	t.Helper()
	<-l.prompts // before it, the kernel would edit the line in its own way
	_, err := l.tty.WriteString(keys + "\r")
	require.NoError(t, err)
	encoded, err := l.lines.ReadString('\n')
	require.NoError(t, err)
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	require.NoError(t, err)
	return string(text)
}

// modelled is the line by the model, if it knows it.
func modelled(e *editor, keys string) (string, bool) {
	var d decoder
	for i := range len(keys) {
		for _, k := range d.next(keys[i]) {
			if a := e.press(k); a != edits {
				return "", false
			}
		}
	}
	if len(d.pending) > 0 || e.inPaste || e.wait != 0 || e.prefix != "" || e.hasArg {
		return "", false
	}
	return e.text(), !e.unknown
}

// TestTheLineIsWhatReadlineMakesOfTheKeys compares every editing key with the real
// one, from known lines and at random.
func TestTheLineIsWhatReadlineMakesOfTheKeys(t *testing.T) {
	real := startReadline(t)
	e := &editor{wide: true}
	compare := func(keys string) bool {
		before := e.clone()
		got, known := modelled(e, keys)
		e.reset()
		if !known {
			*e = before // the real one does not see these keys
			return false
		}
		require.Equal(t, real.run(t, keys), got, "%q", keys)
		return true
	}
	edits := []string{
		"\x01", "\x05", "\x02", "\x06", "\x7f", "\b", "\x0b", "\x15", "\x17", "\x19", "\x14", "\x1bb", "\x1bf", "\x1bd", "\x1b\x7f", "\x1b[D", "\x1b[C",
		"\x1bOD", "\x1bOC", "\x1b[H", "\x1b[F", "\x1b[1~", "\x1b[4~", "\x1b[3~", "\x04", "\x1b3x", "\x1b2\x02", "\x1b2\x7f", "\x1b2\x1bb", "\x1b2\x1bd", "\x1b12x", "\x1b2\x17",
		"\x16x", "\x16\x15", "\x1da", "\x1b\x1db", "\x1b[200~p q\x1b[201~", "\x0c", "\x1b2\x04", "\x1b2\x1b\x7f", "\x1b2\x06", "\x1b2\x1bf",
	}
	for _, line := range []string{"", "a", "echo foo-bar /tmp/a.b  x_y ", "  rm -rf /home/user", "grüße 日本 ok"} {
		for _, one := range edits {
			compare(line + one)
			compare(line + one + "z")
			compare(line + "\x01\x06\x06\x06" + one + "z")
			compare(line + "\x1bb" + one + one + "z\x19")
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := append([]string{"a", "b", " ", "-", "/", ".", "_", "é", "日", "ab cd", "  "}, edits...)
	known := 0
	for range 1000 {
		var b strings.Builder
		for range 1 + rng.IntN(14) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		if compare(b.String()) {
			known++
		}
	}
	require.Greater(t, known, 600, "most edits are followed, not given up")
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{"ls -la", "echo a\x17b", "a b c\x1bb\x0b\x19\x19", "\x1b[200~a\nb\x1b[201~c", "日本\x7f\x02x", "\x1b3a\x14"} {
		f.Add(seed)
	}
	real := startReadline(f)
	e := &editor{wide: true}
	f.Fuzz(func(t *testing.T, keys string) {
		got, known := modelled(e, keys)
		e.reset()
		if !known || len(keys) > 1000 || strings.ContainsAny(got, "\x00\n") { // read's lines hold neither
			real.run(t, "x\x15") // both have cut the same again
			*e = editor{wide: true, kill: []rune("x")}
			return
		}
		require.Equal(t, real.run(t, keys), got, "%q", keys)
	})
}
