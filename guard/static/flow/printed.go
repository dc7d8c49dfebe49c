package flow

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// Printed is what a command prints, as far as its program's name tells: what it
// was given, and what a downloader, a lister of the environment or a reader of
// files adds to that. The command is a line of shell text, or a list of words.
func Printed(command Value) Value {
	t, origin := command.Sources()
	out := Tainted(t&^effect.TaintDecoded|effect.TaintOutput, origin)

	var words []string

	if l := command.List(); l != nil {
		for i := range l.Items {
			words = append(words, l.Items[i].Text)
		}
	} else {
		words = strings.Fields(command.Text)
	}

	if len(words) == 0 {
		return out
	}

	switch path.Base(words[0]) {
	case "curl", "wget", "http", "https", "aria2c", "lynx":
		return out.From(Tainted(effect.TaintDownload, operand(words, "://")))
	case "ps":
		if !strings.Contains(command.Text, "|") {
			return out.From(Tainted(effect.TaintInfo, effect.Processes))
		}
	case "env", "printenv", "export", "set":
		if len(words) == 1 || words[0] == "env" && strings.HasPrefix(words[1], "-0") {
			return out.From(Tainted(effect.TaintEnvAll, "environment"))
		}
	case "cat", "head", "tail", "base64", "xxd", "tac", "nl", "strings":
		if p := operand(words, ""); p != "" {
			return out.From(Tainted(effect.TaintFile, p))
		}
	}

	return out
}

// operand is the last word that is no option and has something in it.
func operand(words []string, has string) string {
	for i := len(words) - 1; i > 0; i-- {
		if !strings.HasPrefix(words[i], "-") && strings.Contains(words[i], has) {
			return words[i]
		}
	}

	return ""
}
