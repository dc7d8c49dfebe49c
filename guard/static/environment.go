package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

// environment judges a variable whose value is code, or decides which code
// runs: Target is its name, Text its value.
func (a *analysis) environment() {
	name := a.subject.Target
	text := a.subject.Text
	span := effect.Span{End: len(text)}

	a.effects = append(a.effects, effect.Effect{Kind: effect.SetEnv, Span: span, Target: effect.Const(name), Data: effect.Const(text), Via: "environment"})

	switch name {
	case "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "PS0", "PS1", "PS2", "PS4", "EDITOR", "VISUAL", "PAGER", "MANPAGER",
		"LESSOPEN", "LESSCLOSE", "BROWSER", "GIT_SSH", "GIT_SEQUENCE_EDITOR", "SUDO_ASKPASS", "GIT_PROXY_COMMAND":
		a.code("bash", text)
	case "BASH_ENV", "ENV":
		// A path, or a substitution that is run to find it.
		if strings.ContainsAny(text, "$`") {
			a.code("bash", text)
		}
	case "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "PYTHONWARNINGS", "PERL5DB":
	default:
		if strings.HasPrefix(name, "BASH_FUNC_") {
			a.code("bash", strings.TrimSuffix(strings.TrimSuffix(name[len("BASH_FUNC_"):], "%%"), "()")+" "+text)
		}
	}
}

var environmentRules = []row{
	{
		Rule: Rule{
			ID: "preload-library", Category: "persistence", Severity: High, CWE: "CWE-426",
			Seen: "it makes every program load {}.", Fine: "A library of the system, such as libjemalloc from /usr/lib, would be fine.",
		},
		match: matching(preloads, effect.SetEnv),
	},
	{
		Rule: Rule{
			ID: "startup-variable", Category: "persistence", Severity: High, CWE: "CWE-426",
			Seen: "it makes every shell or interpreter run {} first.", Fine: "Running that file once, by name, would be fine.",
		},
		match: matching(startsByVariable, effect.SetEnv),
	},
	{Rule: ruleUnseenSelfRunning},
}

// writable says whether anybody in the sandbox can put files there.
func writable(p string) bool {
	p = strings.TrimSpace(p)

	return p != "" && (!strings.HasPrefix(p, "/") || place.IsTemp(p)) && !strings.HasPrefix(p, effect.HoleText)
}

func preloads(f *facts, e *fact) (string, bool) {
	switch e.Target.Text {
	case "LD_PRELOAD", "LD_AUDIT":
		for part := range strings.FieldsFuncSeq(e.Data.Text, func(r rune) bool { return r == ':' || r == ' ' }) {
			// A bare name is looked up in the system's own directories.
			if strings.Contains(part, "/") && (writable(part) || strings.HasPrefix(part, "/home/") || strings.HasPrefix(part, "/root")) {
				return show(part), true
			}
		}
	case "LD_LIBRARY_PATH":
		for part := range strings.SplitSeq(e.Data.Text, ":") {
			if place.IsTemp(part) {
				return show(part), true
			}
		}
	}

	return "", false
}

func startsByVariable(f *facts, e *fact) (string, bool) {
	switch e.Target.Text {
	case "BASH_ENV", "ENV", "PYTHONSTARTUP":
		if e.Target.Text == "ENV" && !strings.Contains(e.Data.Text, "/") {
			// ENV=production is a habit, not a path.
			return "", false
		}

		return show(e.Data.Text), writable(e.Data.Text) && strings.Contains(e.Data.Text, "/")
	case "PERL5OPT", "RUBYOPT", "PERL5DB":
		return show(e.Data.Text), strings.Contains(e.Data.Text, "-e") || strings.Contains(e.Data.Text, "-r/tmp") || strings.Contains(e.Data.Text, "-M") && strings.ContainsAny(e.Data.Text, ";{(")
	case "NODE_OPTIONS":
		return show(e.Data.Text), (strings.Contains(e.Data.Text, "--require") || strings.Contains(e.Data.Text, "--import") || strings.Contains(e.Data.Text, "-r ")) &&
			(strings.Contains(e.Data.Text, "/tmp/") || strings.Contains(e.Data.Text, "data:") || strings.Contains(e.Data.Text, "/proc/"))
	case "JAVA_TOOL_OPTIONS":
		return show(e.Data.Text), strings.Contains(e.Data.Text, "-javaagent:/tmp") || strings.Contains(e.Data.Text, "-agentpath:/tmp")
	case "PYTHONWARNINGS":
		return show(e.Data.Text), strings.Contains(e.Data.Text, "antigravity")
	}

	return "", false
}
