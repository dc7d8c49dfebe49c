package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

// gitModel knows what git fetches, and the commands hidden in its options.
func gitModel(m *Machine, c *Call) effect.Value {
	i := 0
	for i < len(c.Args) && strings.HasPrefix(c.Args[i].Text, "-") {
		if a := c.Args[i].Text; (a == "-c" || a == "--config-env") && i+1 < len(c.Args) {
			m.gitConfig(c, c.Args[i+1])
			i++
		} else if a == "-C" || a == "--git-dir" || a == "--work-tree" {
			if a == "-C" && i+1 < len(c.Args) {
				defer func(dir string) { m.Dir = dir }(m.enter(c.Args[i+1], true))
			}

			i++
		}

		i++
	}

	if i >= len(c.Args) {
		return effect.Unknown(effect.TaintOutput)
	}

	rest := c.Args[i+1:]

	for hook := range strings.FieldsSeq(gitHooks[c.Args[i].Text]) {
		m.load(c, effect.FlagOptional, "", effect.Const(".git/hooks/"+hook), effect.Const(".husky/"+hook), effect.Const(".githooks/"+hook))
	}

	switch c.Args[i].Text {
	case "clone":
		o := getopt(rest, "bocju", " branch origin config depth jobs upload-pack reference filter template separate-git-dir ")
		if len(o.pos) > 0 {
			m.add(c, effect.Effect{Kind: effect.Install, Target: o.pos[0], Lang: "git"})
		}

		for _, v := range o.vals("c", "config") {
			m.gitConfig(c, v)
		}

		if v, ok := o.val("u", "upload-pack"); ok {
			m.runText(c, v, "bash", "git clone -u")
		}

		if len(o.pos) > 0 {
			if cmd, ok := strings.CutPrefix(o.pos[0].Text, "ext::"); ok {
				m.runText(c, withText(o.pos[0], cmd), "bash", "git ext::")
			}
		}
	case "config":
		o := getopt(rest, "f", " file ")
		if len(o.pos) == 2 {
			m.gitConfig(c, effect.Concat(o.pos[0], effect.Const("="), o.pos[1]))
		}
	case "filter-branch":
		for j, a := range rest {
			if strings.HasSuffix(a.Text, "-filter") && j+1 < len(rest) {
				m.runText(c, rest[j+1], "bash", "git filter-branch")
			}
		}
	case "bisect":
		if len(rest) > 1 && rest[0].Text == "run" {
			m.start(Call{Name: rest[1], Args: rest[2:], Stdin: effect.Unknown(0), Span: c.Span, Flags: c.Flags})
		}
	case "rebase":
		o := getopt(rest, "xs", " exec onto strategy ")
		for _, v := range o.vals("x", "exec") {
			m.runText(c, v, "bash", "git rebase --exec")
		}
	case "submodule":
		if len(rest) > 1 && rest[0].Text == "foreach" {
			for _, a := range rest[1:] {
				if !strings.HasPrefix(a.Text, "-") {
					m.runText(c, a, "bash", "git submodule foreach")

					break
				}
			}
		}
	}

	return effect.Unknown(effect.TaintOutput)
}

// gitHooks are the hooks that a subcommand runs.
var gitHooks = map[string]string{
	"commit": "pre-commit prepare-commit-msg commit-msg post-commit", "push": "pre-push", "merge": "pre-merge-commit post-merge", "pull": "post-merge",
	"checkout": "post-checkout", "switch": "post-checkout", "rebase": "pre-rebase post-rewrite", "am": "applypatch-msg pre-applypatch post-applypatch",
	"cherry-pick": "pre-commit post-commit", "revert": "pre-commit post-commit",
}

// gitConfig runs the values of those keys that git runs.
func (m *Machine) gitConfig(c *Call, kv effect.Value) {
	key, val, ok := strings.Cut(kv.Text, "=")
	if !ok {
		return
	}

	key = strings.ToLower(key)

	switch {
	case key == "core.hookspath" || key == "init.templatedir":
		if place.IsTemp(val) {
			m.add(c, effect.Effect{Kind: effect.Schedule, Target: effect.Const("rc"), Data: withText(kv, val), Via: "git config " + key})
		}

		return
	case strings.HasPrefix(key, "alias."):
		val, ok = strings.CutPrefix(val, "!")
	case key == "core.sshcommand", key == "core.fsmonitor", key == "core.editor", key == "core.pager", key == "sequence.editor",
		strings.HasSuffix(key, ".textconv"), key == "diff.external", strings.HasSuffix(key, ".helper"), strings.HasSuffix(key, ".clean"),
		strings.HasSuffix(key, ".smudge"), strings.HasSuffix(key, ".process"), key == "gpg.program", strings.HasPrefix(key, "pager."), strings.HasSuffix(key, ".cmd"):
		val, _ = strings.CutPrefix(val, "!")
	default:
		return
	}

	if ok && val != "" && val != "true" && val != "false" {
		m.runText(c, withText(kv, val), "bash", "git config "+key)
	}
}
