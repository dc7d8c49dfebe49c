package codeenv

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
)

func TestVariablesThatAreCodeAreSubjects(t *testing.T) {
	bashVars := []string{
		"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS1", "PS4", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR",
		"SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER", "LESSOPEN", "MANPAGER", "BROWSER", "BASH_FUNC_ls%%",
	}
	pathVars := []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_GLOBAL",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "R_PROFILE", "R_PROFILE_USER", "R_TESTS", "IPYTHONDIR", "CURL_HOME", "WGETRC", "NODE_REPL_EXTERNAL_MODULE", "DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "PYTEST_PLUGINS", "XDG_DATA_HOME", "R_ENVIRON", "R_ENVIRON_USER",
		"SHELLOPTS", "BASHOPTS", "IFS", "GCONV_PATH", "HOME", "npm_config_script_shell", "NPM_CONFIG_REGISTRY", "pip_index_url",
	}
	for language, names := range map[string][]string{"bash": bashVars, "": pathVars} {
		for _, name := range names {
			assert.Equal(t, []guard.Subject{{Kind: guard.KindCode, Language: language, Text: "v", Target: name}}, Subjects(map[string]string{name: "v"}), name)
		}
	}
	for _, name := range []string{"OPENAI_API_KEY", "TERM", "LANG", "LC_ALL", "DEBUG", "path", "ld_preload", "MY_PATH", "PYTHONUNBUFFERED", "GIT_TERMINAL_PROMPT", "NODE_ENV", "PORT", "HTTP_PROXY", "GIT_AUTHOR_NAME"} {
		assert.Empty(t, Subjects(map[string]string{name: "v"}), name)
	}
	assert.Empty(t, Subjects(map[string]string{"BASH_ENV": ""}), "an empty value is no code")
	assert.Empty(t, Subjects(nil))
}

func TestSubjectsComeInTheOrderOfTheirNames(t *testing.T) {
	vars := map[string]string{"PS4": "c", "BASH_ENV": "a", "X": "no", "PATH": "b"}
	got := Subjects(vars)
	require.Len(t, got, 3)
	assert.Equal(t, "a b c", got[0].Text+" "+got[1].Text+" "+got[2].Text)
	assert.Equal(t, []string{"BASH_ENV", "PATH", "PS4", "X"}, Names(vars))
}

func TestInterpolatedRefusesWhatBreaksOut(t *testing.T) {
	tests := map[string]struct{ name, value, want string }{
		"python and bash":            {"A", "x'; __import__('os').system('id'); y='", `the value of "A" holds a single quote`},
		"R and Java":                 {"A", `"); system("id"); ("`, "a double quote"},
		"JSON":                       {"A", `{"a":1}`, "a double quote"},
		"escape of the quote":        {"A", `\`, "a backslash"},
		"Java Unicode escape":        {"A", `\u0022`, "a backslash"},
		"line break":                 {"A", "x\n!id", "a line break"},
		"carriage return":            {"A", "x\rid", "a line break"},
		"next line":                  {"A", "x\u0085!id", "a line break"},
		"line separator":             {"A", "x\u2028!id", "a line break"},
		"paragraph separator":        {"A", "x\u2029!id", "a line break"},
		"vertical tab":               {"A", "x\v!id", "a control character"},
		"form feed":                  {"A", "x\f!id", "a control character"},
		"file separator":             {"A", "x\x1c!id", "a control character"},
		"tab completes in bash":      {"A", "x\t", "a control character"},
		"escape is a key in bash":    {"A", "x\x1b", "a control character"},
		"interrupt is a key in bash": {"A", "x\x03id", "a control character"},
		"NUL":                        {"A", "\x00", "a control character"},
		"delete":                     {"A", "\x7f", "a control character"},
		"C1 control":                 {"A", "\u009b", "a control character"},
		"invalid UTF-8":              {"A", "\xff", "not valid UTF-8"},
		"name with a quote":          {"A'] = '1'; print(); os.environ['B", "v", "characters other than"},
		"name with a semicolon":      {"A;id;B", "v", "characters other than"},
		"name with a space":          {"A B", "v", "characters other than"},
		"name with an equals sign":   {"A=B", "v", "characters other than"},
		"name with parentheses":      {"A=1);system(1", "v", "characters other than"},
		"name with a line break":     {"A\nid", "v", "characters other than"},
		"name with $":                {"$A", "v", "characters other than"},
		"name with backticks":        {"`id`", "v", "characters other than"},
		"name with brackets":         {"A[$(id)]", "v", "characters other than"},
		"name that is an option":     {"-n", "v", "characters other than"},
		"exported function":          {"BASH_FUNC_ls%%", "v", "characters other than"},
		"name not ASCII":             {"Ａ", "v", "characters other than"},
		"empty name":                 {"", "v", "has no name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := Interpolated(tt.name, tt.value)
			require.ErrorContains(t, err, tt.want)
			if len(tt.value) > 3 {
				assert.NotContains(t, err.Error(), tt.value)
			}
		})
	}
}

func TestInterpolatedAllowsWhatStaysInside(t *testing.T) {
	for _, value := range inert {
		assert.NoError(t, Interpolated("MY_VAR", value), value)
	}
	for _, name := range []string{"A", "_x", "my.key", "a-b", "npm_config_registry", "1A"} {
		assert.NoError(t, Interpolated(name, "v"), name)
	}
}

// inert are values that look dangerous or are common.
var inert = []string{
	"", "plain", "two words", "sk-proj-abc_DEF.123", "https://user:pw@example.com:5432/db?sslmode=require&x=%20a#b", "a=%jars b",
	"$(id)", "${HOME}", "`id`", "!id", "%%bash", "; id #", "a|b&c>d<e", "{[(*?~)]}", "日本語 é ü 😀", "-----BEGIN", "x=1,y=2", "?", "a?",
}

// A real bash says what the template really does.
func TestInertValuesAreInertInARealShell(t *testing.T) {
	for _, value := range inert {
		out := runBash(t, "export MY_VAR='"+value+"'\nprintf '%s' \"$MY_VAR\"")
		assert.Equal(t, value, out)
	}
	out := runBash(t, "export A='x'; printf BROKEN; B=''\n")
	assert.Equal(t, "BROKEN", out, "the test must see a value that breaks out")
}

func runBash(t *testing.T, source string) string {
	t.Helper()
	cmd := exec.Command("bash")
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.Stdin = strings.NewReader(source)
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

func FuzzInterpolated(f *testing.F) {
	for _, v := range append(inert, "a'b", `a"b`, "a\\", "a\nb", "\u2028") {
		f.Add("NAME", v)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if Interpolated(name, value) != nil {
			return
		}
		// What is let through closes no string literal of any of the templates and
		// spans no lines.
		require.False(t, strings.ContainsAny(name+value, "'\"\\\n\r\v\f\t\x00\x1b\x1c\x1d\x1e\u0085\u2028\u2029"))
		require.False(t, strings.ContainsAny(name, " =;()[]{}$`%!#&|<>"))
	})
}
