package pty

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinesThatChangeWhatKeysDoAreRefused, however they are written.
func TestLinesThatChangeWhatKeysDoAreRefused(t *testing.T) {
	for _, line := range []string{
		`bind '"a":"b"'`, `bind -x '"a":b'`, `b''ind a:b`, `\bind a:b`, `builtin bind a:b`, `command bind a:b`, `if bind a:b; then :; fi`, `f() { bind "$@"; }`,
		`eval "bind a:b"`, `eval bind a:b`, `trap 'bind a:b' EXIT`, `alias x='bind a:b'`, `b=bind; $b x`, `: $(bind a:b)`, `(bind a:b)`, `true && bind a:b | cat`,
		`PROMPT_COMMAND='stty kill Z'`, `export PROMPT_COMMAND="bind a:b"`, `stty eol x`, `sudo -n stty -echo`, `/bin/stty raw`, `bash -c 'stty kill Z'`, `echo kill Z | xargs stty`, `env -i /bin/stty kill Z`, `find . -exec stty kill Z \;`,
		`echo stty kill Z | sh`, `timeout 5 stty kill Z`, `stty < /dev/tty kill Z`,
		`fc`, `fc -s x`, `history -s x`, `history "$x"`, `HISTFILE=x bash`, `INPUTRC=x bash`, `shopt -u interactive_comments`, `histchars='@^#'`, `enable -f x.so y`,
		`read -n 5 x`, `read -rN5 x`, `read -d x y`, `while read -rd x y; do :; done`, `n=-N; read $n 5 x`, `r=read; $r -N 5 x`, `eval 'read -N 5 x'`, `mapfile -d x y`,
		`echo x > ~/.inputrc`, `cp x /etc/inputrc`, `vim .inputrc`, `tee -a .inputrc`,
		`python3 -c 'import termios; termios.tcsetattr(0, 0, x)'`, `perl -e 'ioctl(0, TIOCSTI, $_)'`, `tmux`, `screen -S x`, "bash <<X\nstty kill Z\nX",
	} {
		require.NotEmpty(t, refuseLine(line, ""), line)
	}
}

// TestOrdinaryLinesAreNot, although they have such words in them.
func TestOrdinaryLinesAreNot(t *testing.T) {
	for _, line := range []string{
		`bind -P | grep end`, `bind -l`, `stty size`, `stty -a`, `stty rows 24 cols 80`, `fc -l`, `fc -ln -5`, `history | tail -3`, `history 20`,
		`read x`, `read -r -p "$prompt" answer`, `read -s -p 'Password: ' x`, `while IFS= read -r line; do echo "$line"; done < "$file"`, `read -ra parts <<< "$x"`, `read -t 5 x`,
		`mapfile -t lines < x`, `readarray -t lines < <(ls)`, `man stty`, `which bind`, `help read`, `type fc`, `git commit -m "bind the port, read -n"`, `grep -rn tcsetattr src`,
		`echo "bind mounts are nice"`, `python3 -c 'print(1)'`, `python manage.py read -n 5`, `npm run read`, `docker run --mount type=bind,source=/a,target=/b x`, `uvicorn app --bind 0.0.0.0`,
		`cat ~/.inputrc`, `f() { read -r x; echo "$x"; }`, `apt install libreadline-dev`, `x=5; $x`, `for i in 1 2; do`, `echo '`, `tmux ls`, `./read -n 5`, `make bind`, "cat > notes.md <<EOF\nbind mounts, stty and read -n 5\nstty raw\nEOF", "cat <<'X'\nbind a:b\nX", `x=bind`, `mode=read; ./run $mode`, `msg="read the docs"`,
	} {
		require.Empty(t, refuseLine(line, ""), line)
	}
}
