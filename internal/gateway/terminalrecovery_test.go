package gateway

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAfterARefusedLineTheNextIsJudgedByItself: whatever key gives a refused line
// up, and however fast the next line follows it, a benign one runs.
func TestAfterARefusedLineTheNextIsJudgedByItself(t *testing.T) {
	type program struct {
		start, prompt string
		// next is a benign line of the program, and what it shows once it has run.
		next, shown string
		// keys give a line up.
		keys map[string]string
	}
	shellKeys := map[string]string{"Ctrl-C": "\x03", "Ctrl-U": "\x15", "Ctrl-C twice": "\x03\x03", "Ctrl-A Ctrl-K": "\x01\x0b"}
	for name, p := range map[string]program{
		"bash":   {"", "\x1b[?2004h", "echo $((6*7))-fine\r", "42-fine\r\n", shellKeys},
		"sh":     {"exec env PS1='s''h$ ' sh\r", "sh$ ", "echo $((6*7))-fine\r", "42-fine\r\n", map[string]string{"Ctrl-C": "\x03", "Ctrl-U": "\x15"}},
		"python": {"python3 -q\r", ">>> ", "str(6*7) + '-fine'\r", "'42-fine'\r\n", map[string]string{"Ctrl-C": "\x03", "Ctrl-U": "\x15"}},
		"cat":    {"cat\r", "", "fi\x7f\x7f" + "wine\x15" + "fine\r", "fine\r\nfine\r\n", map[string]string{"Ctrl-U": "\x15"}},
	} {
		for key, keys := range p.keys {
			for speed, together := range map[string]bool{"in one message": true, "in two": false} {
				t.Run(name+"/"+key+"/"+speed, func(t *testing.T) {
					t.Parallel()
					l := openTerminal(t, newEstate(t))
					if p.start != "" {
						require.NoError(t, l.types(p.start))
						l.shows(t, cmp.Or(p.prompt, "\n"))
					}
					for range 3 { // a refusal must not make the next one likelier
						require.NoError(t, l.types("evil"))
						l.shows(t, "evil")
						require.ErrorContains(t, l.types("\r"), "Blocked by policy")
						if together {
							require.NoError(t, l.types(keys+p.next))
						} else {
							require.NoError(t, l.types(keys))
							require.NoError(t, l.types(p.next))
						}
						l.shows(t, p.shown+p.prompt)
					}
				})
			}
		}
	}
}
