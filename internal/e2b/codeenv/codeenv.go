// Package codeenv knows which environment variables are code, and which names
// and values break out of the source text that E2B's code interpreter pastes
// them into.
package codeenv

import (
	"maps"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
)

// Subjects returns a guard.KindCode subject for every variable whose value is
// code or decides what code is loaded, in the order of their names. Target is
// the variable; Language is "bash" where a shell evaluates the value, "" where
// it names files, options or search paths.
func Subjects(vars map[string]string) []guard.Subject {
	var subjects []guard.Subject
	for _, name := range Names(vars) {
		language, isCode := classify(name)
		if !isCode || vars[name] == "" {
			continue
		}
		subjects = append(subjects, guard.Subject{Kind: guard.KindCode, Language: language, Text: vars[name], Target: name})
	}
	return subjects
}

// Names returns the names of vars, sorted, for guard.LabelEnvNames.
func Names(vars map[string]string) []string { return slices.Sorted(maps.Keys(vars)) }

// classify says whether a variable's value is code, and for which interpreter.
// The loader and the shells compare names exactly; npm, pip and the Windows-born
// readers of proxies do not, so their prefixes are matched in any case.
func classify(name string) (language string, isCode bool) {
	if language, ok := exact[name]; ok {
		return language, true
	}
	for _, p := range prefixed {
		if strings.HasPrefix(name, p.prefix) || p.anyCase && len(name) >= len(p.prefix) && strings.EqualFold(name[:len(p.prefix)], p.prefix) {
			return p.language, true
		}
	}
	return "", false
}

// bash and paths are the two ways to be code.
const (
	bash  = "bash" // a shell runs or expands the value
	paths = ""     // the value names files, options or search paths that load code
)

// exact is one table of variables, by what reads them.
var exact = map[string]string{
	// Shells: sourced at start, run at prompts, or changing what words mean.
	"BASH_ENV": bash, "ENV": bash, "PROMPT_COMMAND": bash,
	"PS0": bash, "PS1": bash, "PS2": bash, "PS3": bash, "PS4": bash,
	"SHELLOPTS": paths, "BASHOPTS": paths, "IFS": paths, "PATH": paths, "CDPATH": paths, "SHELL": paths,
	"BASH_LOADABLES_PATH": paths, "INPUTRC": paths, "ZDOTDIR": paths, "FPATH": paths, "FCEDIT": bash,
	// Homes: where every start-up file and most configurations are looked for.
	"HOME": paths, "XDG_CONFIG_HOME": paths, "XDG_CONFIG_DIRS": paths, "XDG_DATA_HOME": paths, "XDG_DATA_DIRS": paths,
	// libc: modules it loads beyond the LD_ variables.
	"GCONV_PATH": paths, "LOCPATH": paths, "NLSPATH": paths, "HOSTALIASES": paths, "RESOLV_HOST_CONF": paths,
	"OPENSSL_CONF": paths, "OPENSSL_MODULES": paths, "OPENSSL_ENGINES": paths,
	// git and ssh.
	"GIT_SSH_COMMAND": bash, "GIT_SSH": bash, "GIT_PROXY_COMMAND": bash, "GIT_EXTERNAL_DIFF": bash,
	"GIT_PAGER": bash, "GIT_EDITOR": bash, "GIT_SEQUENCE_EDITOR": bash, "GIT_ASKPASS": bash, "SSH_ASKPASS": bash, "SUDO_ASKPASS": bash,
	"GIT_ATTR_SOURCE": paths, "GIT_WORK_TREE": paths, "GIT_INDEX_FILE": paths, "GIT_OBJECT_DIRECTORY": paths,
	"GIT_EXEC_PATH": paths, "GIT_TEMPLATE_DIR": paths, "GIT_DIR": paths, "GIT_COMMON_DIR": paths, "GIT_ALLOW_PROTOCOL": paths,
	// Programs that other programs start.
	"EDITOR": bash, "VISUAL": bash, "PAGER": bash, "MANPAGER": bash, "BROWSER": bash, "LESSOPEN": bash, "LESSCLOSE": bash, "LESSEDIT": bash,
	"MANOPT": paths, "LESS": paths, "LESSKEY": paths, "LESSKEYIN": paths, "SYSTEMD_PAGER": bash, "RSYNC_RSH": bash, "CVS_RSH": bash, "TAR_OPTIONS": paths,
	"CURL_HOME": paths, "WGETRC": paths, "SYSTEM_WGETRC": paths, "PSQLRC": paths, "PSQL_PAGER": bash, "PSQL_EDITOR": bash, "GNUPGHOME": paths,
	"VIM": paths, "VIMRUNTIME": paths, "EMACSLOADPATH": paths, "GCC_EXEC_PREFIX": paths, "COMPILER_PATH": paths,
	"GTK_MODULES": paths, "GTK_PATH": paths, "GIO_EXTRA_MODULES": paths, "QT_PLUGIN_PATH": paths,
	"VIMINIT": bash, "EXINIT": bash, "MAKEFLAGS": paths, "GNUMAKEFLAGS": paths, "MAKEFILES": paths, "AWKPATH": paths, "AWKLIBPATH": paths,
	"CC": bash, "CXX": bash, "RUSTC": bash, "RUSTC_WRAPPER": bash, "RUSTC_WORKSPACE_WRAPPER": bash, "GOFLAGS": paths, "GOROOT": paths, "GOENV": paths,
	// Python.
	"PYTHONSTARTUP": paths, "PYTHONPATH": paths, "PYTHONHOME": paths, "PYTHONINSPECT": paths, "PYTHONUSERBASE": paths,
	"PYTHONBREAKPOINT": paths, "PYTHONWARNINGS": paths, "PYTHONEXECUTABLE": paths, "PYTHONPLATLIBDIR": paths, "PYTHONPYCACHEPREFIX": paths,
	"IPYTHONDIR": paths, "JUPYTER_CONFIG_DIR": paths, "JUPYTER_CONFIG_PATH": paths, "JUPYTER_PATH": paths, "MPLCONFIGDIR": paths,
	"PYTEST_ADDOPTS": paths, "PYTEST_PLUGINS": paths, "COVERAGE_PROCESS_START": paths,
	// Perl, Ruby, Lua, PHP.
	"PERL5OPT": paths, "PERL5LIB": paths, "PERLLIB": paths, "PERL5DB": paths, "PERL5SHELL": bash,
	"RUBYOPT": paths, "RUBYLIB": paths, "GEM_HOME": paths, "GEM_PATH": paths, "BUNDLE_GEMFILE": paths, "IRBRC": paths, "PRYRC": paths,
	"LUA_INIT": paths, "LUA_PATH": paths, "LUA_CPATH": paths, "PHPRC": paths, "PHP_INI_SCAN_DIR": paths,
	// JavaScript.
	"NODE_OPTIONS": paths, "NODE_PATH": paths, "BUN_INSPECT_PRELOAD": paths, "DENO_DIR": paths, "NODE_REPL_EXTERNAL_MODULE": paths,
	"YARN_RC_FILENAME": paths, "YARN_PLUGINS": paths, "YARN_YARN_PATH": paths,
	// Java.
	"JAVA_TOOL_OPTIONS": paths, "_JAVA_OPTIONS": paths, "JDK_JAVA_OPTIONS": paths, "JAVA_OPTS": paths, "CLASSPATH": paths,
	"JAVA_HOME": paths, "MAVEN_OPTS": paths, "GRADLE_OPTS": paths,
	// Other machines that load code by variable.
	"DOTNET_STARTUP_HOOKS": paths, "DOTNET_ADDITIONAL_DEPS": paths, "JULIA_LOAD_PATH": paths, "JULIA_DEPOT_PATH": paths,
	"ERL_FLAGS": paths, "ERL_AFLAGS": paths, "ERL_ZFLAGS": paths, "ELIXIR_ERL_OPTIONS": paths, "TCLLIBPATH": paths, "GUILE_LOAD_PATH": paths,
	// R; it runs the file that R_TESTS names when it starts.
	"R_TESTS":   paths,
	"R_PROFILE": paths, "R_PROFILE_USER": paths, "R_ENVIRON": paths, "R_ENVIRON_USER": paths, "R_HOME": paths,
	"R_LIBS": paths, "R_LIBS_USER": paths, "R_LIBS_SITE": paths, "R_DEFAULT_PACKAGES": paths,
	// Clients whose configuration names a program to run for credentials.
	"KUBECONFIG": paths, "AWS_CONFIG_FILE": paths, "DOCKER_CONFIG": paths,
}

// prefixed are families of variables.
var prefixed = []struct {
	prefix, language string
	anyCase          bool
}{
	{"BASH_FUNC_", bash, false},   // exported functions: their bodies are code
	{"LD_", paths, false},         // the dynamic loader
	{"DYLD_", paths, false},       // the same on macOS
	{"GIT_CONFIG", paths, false},  // _COUNT, _KEY_n, _VALUE_n, _GLOBAL, _PARAMETERS: core.sshCommand and kin
	{"GIT_TRACE2_", paths, false}, // writes to files and sockets
	{"NPM_CONFIG_", paths, true},  // script-shell, node-options, registry
	{"PIP_", paths, true},         // index and configuration to install from
	{"UV_", paths, false},
	{"CARGO_", paths, false},
	{"CORECLR_PROFILER", paths, false}, // loads a library into every .NET program
	{"COR_PROFILER", paths, false},
	{"ANSIBLE_", paths, false}, // where its plug-ins are loaded from
	{"LUA_INIT_", paths, false},
	{"PYENV_", paths, false},
}
