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
			Seen: "it sets {}, so every program loads code that nobody judged.", Fine: "A library of the system, such as libjemalloc from /usr/lib, would be fine.",
		},
		match: matching(preloads, effect.SetEnv),
	},
	{
		Rule: Rule{
			ID: "startup-variable", Category: "persistence", Severity: High, CWE: "CWE-426",
			Seen: "it sets {}, so code that nobody judged runs first in every shell or interpreter.", Fine: "Running that file once, by name, would be fine.",
		},
		match: matching(startsByVariable, effect.SetEnv),
	},
	{Rule: ruleUnseenSelfRunning},
	{Rule: ruleUnseenFile},
}

// systemPlaces hold what the system, not the caller, installed.
var systemPlaces = []string{"/usr", "/etc", "/opt", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix", "/snap", "/var/lib", "/dev/null"}

// writable says whether the caller can put files there: anywhere but in the
// system's own places. What is not known is not said to be.
func writable(p string) bool {
	p = strings.Trim(p, " '\"")
	if p == "" || strings.HasPrefix(p, effect.HoleText) {
		return false
	}

	p = place.Resolve(p, "")

	return !place.Under(p, systemPlaces) || place.IsTemp(p)
}

func preloads(f *facts, e *fact) (string, bool) {
	switch e.Target.Text {
	case "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES":
		for part := range strings.FieldsFuncSeq(e.Data.Text, func(r rune) bool { return r == ':' || r == ' ' }) {
			// A bare name is looked up in the system's own directories.
			if strings.Contains(part, "/") && writable(part) {
				return show(e.Target.Text + "=" + part), true
			}
		}
	case "LD_LIBRARY_PATH":
		for part := range strings.SplitSeq(e.Data.Text, ":") {
			if place.IsTemp(part) {
				return show(e.Target.Text + "=" + part), true
			}
		}
	}

	return "", false
}

// startupFiles name a file that is run, or a library that is loaded, before
// anything else.
var startupFiles = setOf("BASH_ENV", "ENV", "PYTHONSTARTUP", "R_PROFILE", "R_PROFILE_USER", "R_TESTS", "DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH",
	"CORECLR_PROFILER_PATH_64", "COR_PROFILER_PATH", "NODE_REPL_EXTERNAL_MODULE", "GTK_MODULES", "GTK3_MODULES", "GCONV_PATH")

// startupDirectories name a place, or a settings file, that code is taken from.
// A home is where they are by default, so only places that anybody can write
// are out of the ordinary.
var startupDirectories = setOf("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_CONFIG_PATH", "CURL_HOME", "WGETRC", "ZDOTDIR", "INPUTRC", "EMACSLOADPATH", "VIMRUNTIME", "PHPRC",
	"PHP_INI_SCAN_DIR", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "GIO_EXTRA_MODULES", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "JULIA_LOAD_PATH", "YARN_YARN_PATH",
	"YARN_PLUGINS", "R_ENVIRON", "R_ENVIRON_USER")

var javaAgents = []string{"-javaagent:", "-agentpath:", "-Xbootclasspath/a:", "-Xbootclasspath/p:"}

// startupOptions are, by variable, the options after which a file to load
// follows.
var startupOptions = map[string][]string{
	"NODE_OPTIONS": {"--require", "-r", "--import", "--loader", "--experimental-loader"},
	"PERL5OPT":     {"-I"}, "RUBYOPT": {"-r", "-I"}, "ERL_FLAGS": {"-pa", "-pz"}, "ERL_AFLAGS": {"-pa", "-pz"}, "ERL_ZFLAGS": {"-pa", "-pz"},
	"JAVA_TOOL_OPTIONS": javaAgents, "_JAVA_OPTIONS": javaAgents, "JDK_JAVA_OPTIONS": javaAgents, "MAVEN_OPTS": javaAgents, "GRADLE_OPTS": javaAgents, "SBT_OPTS": javaAgents,
}

// startupCode are, by variable, what a value has that is code itself.
var startupCode = map[string][]string{
	"PERL5OPT": {"-e"}, "RUBYOPT": {"-e"}, "PYTHONWARNINGS": {"antigravity"}, "NODE_OPTIONS": {"data:", "/proc/"},
	"ERL_FLAGS": {"-eval"}, "ERL_AFLAGS": {"-eval"}, "ERL_ZFLAGS": {"-eval"}, "VIMINIT": {"!", "system("}, "EXINIT": {"!"}, "LUA_INIT": {"os.execute", "io.popen", "@/tmp", "@./"},
	"JAVA_TOOL_OPTIONS": {"-XX:OnError=", "-XX:OnOutOfMemoryError="}, "_JAVA_OPTIONS": {"-XX:OnError=", "-XX:OnOutOfMemoryError="}, "JDK_JAVA_OPTIONS": {"-XX:OnError=", "-XX:OnOutOfMemoryError="},
}

func startsByVariable(f *facts, e *fact) (string, bool) {
	name, value := e.Target.Text, e.Data.Text
	detail := show(name + "=" + value)

	switch {
	case startupFiles[name]:
		// ENV=production is a habit, not a path; a bare module name is looked up
		// in the system's own directories.
		if name != "BASH_ENV" && !strings.Contains(value, "/") || name == "ENV" && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, ".") && !strings.HasPrefix(value, "~") {
			return "", false
		}

		for part := range strings.SplitSeq(value, ":") {
			// What runs by itself anyway is judged when it is written.
			if writable(part) && !place.Classify(place.Resolve(part, "")).Has(place.SelfRunning) {
				return detail, true
			}
		}

		return "", false
	case startupDirectories[name]:
		for part := range strings.SplitSeq(value, ":") {
			if place.IsTemp(place.Resolve(part, "")) {
				return detail, true
			}
		}

		return "", false
	}

	for _, mark := range startupCode[name] {
		if strings.Contains(value, mark) {
			return detail, true
		}
	}

	if name == "PERL5OPT" && strings.Contains(value, "-M") && strings.ContainsAny(value, ";{(") || name == "PERL5DB" && strings.ContainsAny(value, ";{(") {
		return detail, true
	}

	return detail, loadsByOption(value, startupOptions[name], e.Via == "environment")
}

// loadsByOption says whether one of the options is followed by a file that the
// caller can write. A script that names a file of its own project is ordinary;
// a variable for whatever runs later is not.
func loadsByOption(value string, options []string, relative bool) bool {
	words := strings.Fields(value)

	for i, w := range words {
		for _, o := range options {
			p, ok := strings.CutPrefix(w, o)
			if !ok {
				continue
			}

			if p == "" && i+1 < len(words) {
				p = words[i+1]
			}

			p = strings.Trim(strings.TrimPrefix(p, "="), `'"`)
			local := strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../")

			if (strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || relative && local) && writable(p) && !installed(p) {
				return true
			}
		}
	}

	return false
}

// installed says whether a package manager put a file where it is.
func installed(p string) bool {
	for _, part := range []string{"/node_modules/", "/.m2/", "/.gradle/", "/.rbenv/", "/.rvm/", "/gems/", "/site-packages/", "/.pnp."} {
		if strings.Contains(p, part) {
			return true
		}
	}

	return false
}
