package scripting

import (
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// setting is one entry of a file of sections, keys and values: the lines that are
// indented deeper and that a backslash joins belong to the value.
type setting struct {
	section, key, value string
	span                effect.Span
}

// braces are what tox, and percent signs what a desktop entry, puts in before the
// command runs.
var (
	toxBraces     = regexp.MustCompile(`\{[^{}\n]*\}`)
	desktopFields = regexp.MustCompile(`%[a-zA-Z]`)
)

// settings reads the entries of a text. Keys end at the first byte of ends.
func settings(text, ends string, b *effect.Budget, r *effect.Result, each func(setting)) {
	var (
		last setting
		at   int
	)

	flush := func() {
		if last.key != "" {
			each(last)
		}

		last = setting{section: last.section}
	}

	for line, next := "", 0; at < len(text); at = next {
		if !b.Spend(1) {
			r.Note(effect.NoteBudget, at, "out of steps")

			return
		}

		line, next = logicalLine(text, at)
		trimmed := strings.TrimSpace(line)

		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case trimmed[0] == '[':
			flush()

			head, rest, _ := strings.Cut(trimmed[1:], "]")
			last.section = strings.ToLower(strings.TrimSpace(head))

			if trimmed = strings.TrimSpace(rest); trimmed == "" {
				continue
			}
		}

		i := strings.IndexAny(trimmed, ends)
		// A value that goes on is indented; where keys are, too, it has no key.
		if line[0] == ' ' || line[0] == '\t' {
			if i <= 0 || strings.ContainsAny(strings.TrimSpace(trimmed[:i]), " \t{}/-") && !strings.ContainsRune(ends, ' ') {
				last.value += "\n" + trimmed
				last.span.End = next

				continue
			}
		}

		flush()

		last.key, last.span = strings.ToLower(trimmed), effect.Span{Start: at, End: next}
		if i > 0 {
			last.key, last.value = strings.ToLower(strings.TrimSpace(trimmed[:i])), strings.TrimLeft(trimmed[i:], ends+" \t")
		}
	}

	flush()
}

// gitCommands are the settings of git that are shell text, by section and key.
var gitCommands = map[string]bool{
	"core.pager": true, "core.editor": true, "core.sshcommand": true, "core.fsmonitor": true, "core.askpass": true, "core.gitproxy": true, "core.alternaterefscommand": true,
	"sequence.editor": true, "diff.external": true, "diff.textconv": true, "diff.command": true, "filter.clean": true, "filter.smudge": true, "filter.process": true,
	"merge.driver": true, "difftool.cmd": true, "mergetool.cmd": true, "gpg.program": true, "uploadpack.packobjectshook": true, "interactive.difffilter": true,
	"trailer.command": true, "trailer.cmd": true, "man.cmd": true, "browser.cmd": true, "web.browser": true, "remote.uploadpack": true, "remote.receivepack": true, "pager.log": true,
}

// ParseINI reads what files of sections run: tox.ini and setup.cfg, git's
// configuration, desktop entries.
func ParseINI(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	settings(text, "=", b, &r, func(s setting) {
		section, _, _ := strings.Cut(s.section, " ")
		value := s.value

		switch {
		case s.key == "commands" || s.key == "commands_pre" || s.key == "commands_post":
			for line := range strings.SplitSeq(value, "\n") {
				embedBuild(&r, strings.TrimLeft(toxBraces.ReplaceAllString(line, effect.HoleText), "-! "), s.span, -1, s.key)
			}
		case section == "desktop" && (s.key == "exec" || s.key == "tryexec"):
			embedBuild(&r, desktopFields.ReplaceAllString(value, effect.HoleText), s.span, -1, s.key)
		case section == "alias" || section == "credential" || section == "submodule":
			if script, ok := strings.CutPrefix(gitValue(value), "!"); ok {
				embedBuild(&r, script, s.span, -1, s.key)
			} else if section == "credential" && strings.HasPrefix(gitValue(value), "/") {
				embedBuild(&r, gitValue(value), s.span, -1, s.key)
			}
		case gitCommands[section+"."+s.key] || section == "pager":
			embedBuild(&r, gitValue(value), s.span, -1, section+"."+s.key)
		}
	})

	return r
}

// gitValue is a value without the quotes that may stand around it or in it.
func gitValue(value string) string {
	if !strings.ContainsAny(value, `"\`) {
		return value
	}

	var out strings.Builder

	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '"':
		case value[i] == '\\' && i+1 < len(value):
			i++
			if value[i] == 'n' {
				out.WriteByte('\n')
			} else if value[i] != '\n' {
				out.WriteByte(value[i])
			}
		default:
			out.WriteByte(value[i])
		}
	}

	return out.String()
}

// ParseSSHConfig reads what a client's or a server's configuration of SSH runs.
func ParseSSHConfig(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	settings(text, " \t=", b, &r, func(s setting) {
		switch s.key {
		case "proxycommand", "localcommand", "knownhostscommand", "authorizedkeyscommand", "forcecommand":
			if s.value != "none" && s.value != "internal-sftp" {
				embedBuild(&r, desktopFields.ReplaceAllString(unquoted(s.value), effect.HoleText), s.span, -1, s.key)
			}
		case "match":
			if _, script, ok := strings.Cut(s.value, "exec "); ok {
				embedBuild(&r, desktopFields.ReplaceAllString(unquoted(script), effect.HoleText), s.span, -1, s.key)
			}
		}
	})

	return r
}

// unquoted is a value without the quotes around it.
func unquoted(value string) string {
	if n := len(value); n > 1 && value[0] == '"' && strings.LastIndexByte(value, '"') == n-1 {
		return value[1 : n-1]
	}

	return value
}

// ParseProcfile reads the processes of a Procfile.
func ParseProcfile(text string, b *effect.Budget) effect.Result {
	var r effect.Result

	settings(text, ":", b, &r, func(s setting) { embedBuild(&r, s.value, s.span, -1, "process") })

	return r
}
