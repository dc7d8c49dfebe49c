package files

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Class says how a file is to be judged.
type Class struct {
	// Code says that the text must be judged whole before it is written.
	Code bool
	// Language of the text, "" if unknown.
	Language string
	// SelfRunning says that the path runs, or changes what runs, by itself.
	SelfRunning bool
	// Why is a short reason: "shebang", "extension .py", "shell start-up file".
	Why string
}

// notebook is the language of a Jupyter notebook until its cells are read.
const notebook = "ipynb"

// Classify tells code from data by the path and the first bytes (HeadBytes of a
// larger file). A compiled program cannot be read and counts as data, except
// where its path makes it run by itself.
func Classify(name string, head []byte) Class {
	c := Class{Language: language(name, head)}
	if why, ok := SelfRunning(name); ok {
		c.Code, c.SelfRunning, c.Why = true, true, why
		return c
	}
	base := path.Base(clean(name))
	ext := strings.ToLower(path.Ext(base))
	switch {
	case shebang(head) != "":
		c.Code, c.Why = true, "shebang"
	case extensions[ext] != "":
		c.Code, c.Why = true, "extension "+ext
	case buildFile(clean(name)):
		c.Code, c.Why = true, "build file"
	case ext == "" && len(head) < HeadBytes && isText(head):
		// "sh notes" runs it as well as it would run notes.sh.
		c.Code, c.Why = true, "short text without extension"
	}
	return c
}

// language is the language of a file: its first line's word goes before its
// name.
func language(name string, head []byte) string {
	if l := interpreterLanguage(shebang(head)); l != "" {
		return l
	}
	base := path.Base(clean(name))
	if l := extensions[strings.ToLower(path.Ext(base))]; l != "" {
		return l
	}
	if shellFiles[base] || strings.HasPrefix(base, "PKGBUILD") {
		return "bash"
	}
	return ""
}

// extensions are the files that interpreters and build tools run, by language.
var extensions = map[string]string{
	".sh": "bash", ".bash": "bash", ".zsh": "bash", ".ksh": "bash", ".command": "bash", ".bats": "bash", ".fish": "fish",
	".py": "python", ".pyw": "python", ".pyi": "python", ".pyx": "python", ".pth": "python", ".ipynb": notebook, ".xsh": "python",
	".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
	".ts": "typescript", ".tsx": "typescript", ".mts": "typescript", ".cts": "typescript",
	".r": "r", ".rmd": "r", ".java": "java", ".jsh": "java",
	".kt": "kotlin", ".kts": "kotlin", ".groovy": "groovy", ".gradle": "groovy", ".scala": "scala", ".clj": "clojure",
	".rb": "ruby", ".rake": "ruby", ".gemspec": "ruby", ".pl": "perl", ".pm": "perl", ".t": "perl",
	".php": "php", ".phtml": "php", ".phar": "php", ".lua": "lua", ".tcl": "tcl", ".exp": "tcl", ".awk": "awk", ".jl": "julia",
	".ps1": "powershell", ".psm1": "powershell", ".go": "go", ".rs": "rust",
	".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".cs": "csharp", ".swift": "swift",
	".ex": "elixir", ".exs": "elixir", ".erl": "erlang", ".hs": "haskell", ".ml": "ocaml", ".nim": "nim", ".zig": "zig", ".d": "d",
	".el": "elisp", ".vim": "vim", ".mk": "make", ".cmake": "cmake", ".nix": "nix", ".m4": "m4", ".s": "asm",
	".service": "systemd", ".timer": "systemd", ".desktop": "desktop",
}

// buildFiles run parts of themselves when the usual tool of their project does.
var buildFiles = set(
	"Makefile", "makefile", "GNUmakefile", "Dockerfile", "Containerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml",
	"package.json", "CMakeLists.txt", "meson.build", "BUILD", "BUILD.bazel", "WORKSPACE", "SConstruct", "wscript",
	"pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "Rakefile", "Gemfile", "Vagrantfile", "Procfile", "Justfile", "justfile",
	"Taskfile.yml", "Jenkinsfile", "Brewfile", "Caddyfile", "pom.xml", "build.xml", ".gitlab-ci.yml", ".travis.yml", ".pre-commit-config.yaml",
	".mcp.json", "binding.gyp", "lefthook.yml", ".lintstagedrc", "turbo.json", "deno.json", "composer.json",
	"Taskfile.yaml", "pixi.toml", "mise.toml", ".mise.toml", "tox.toml", "tasks.json", "devcontainer.json", ".devcontainer.json", ".justfile", "gitconfig", "ssh_config",
)

// buildFile says whether a file is one that a build tool or a forge runs parts
// of.
func buildFile(name string) bool {
	base := path.Base(name)
	ext := strings.ToLower(path.Ext(base))
	switch {
	case buildFiles[base], strings.HasPrefix(base, "Dockerfile."), strings.HasPrefix(base, "Containerfile."), ext == ".dockerfile", ext == ".mak", ext == ".just",
		strings.HasPrefix(base, "Jenkinsfile."), strings.HasPrefix(base, "Procfile."):
		return true
	case ext == ".yml" || ext == ".yaml":
		return strings.Contains("/"+name, "/.github/")
	}
	return false
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// shebang is the program of a file's first line, "" if it names none.
func shebang(head []byte) string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	for i, w := range words {
		base := path.Base(w)
		switch {
		case i == 0 && base != "env":
			return base
		case i == 0 || strings.HasPrefix(w, "-") || strings.Contains(w, "="):
		default:
			return base
		}
	}
	return "env" // A broken line is still one that the kernel tries to run.
}

// interpreterLanguage is the language a program runs, by its name without a
// version.
func interpreterLanguage(program string) string {
	switch strings.TrimRight(program, "0123456789.") {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "bats", "busybox":
		return "bash"
	case "python", "pypy", "ipython", "uv":
		return "python"
	case "node", "nodejs", "bun", "deno":
		return "javascript"
	case "ts-node", "tsx":
		return "typescript"
	case "Rscript", "R":
		return "r"
	case "java":
		return "java"
	case "ruby", "perl", "php", "lua", "awk", "fish", "make":
		return strings.TrimRight(program, "0123456789.")
	default:
		return ""
	}
}

// isText reports whether the bytes could be a script: UTF-8 without NUL. The
// last character may be cut off.
func isText(head []byte) bool {
	if len(head) == 0 || bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for i := 0; i < utf8.UTFMax && len(head) > 0; i++ {
		if utf8.Valid(head) {
			return true
		}
		head = head[:len(head)-1]
	}
	return false
}
