package static

import (
	"encoding/json"
	"path"
	"strings"
)

// The languages of build files: what they run, a build tool runs later.
const (
	packageJSON = "package.json"
	dockerfile  = "dockerfile"
	makefile    = "makefile"
	buildYAML   = "build-yaml"
	buildTOML   = "build-toml"
	buildJSON   = "build-json"
	buildINI    = "build-ini"
	sshConfig   = "ssh-config"
	procfile    = "procfile"
	justfile    = "justfile"
	cmake       = "cmake"
	groovy      = "groovy"
	vagrantfile = "vagrantfile"
)

// isPackage tells the description of a package from a program: what it runs when it
// is installed is in its scripts.
func isPackage(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && strings.Contains(text, `"scripts"`) && json.Valid([]byte(text))
}

// isBuild says whether a language is that of a build file.
func isBuild(lang string) bool {
	switch lang {
	case packageJSON, dockerfile, makefile, buildYAML, buildTOML, buildJSON, buildINI, sshConfig, procfile, justfile, cmake, groovy, vagrantfile:
		return true
	}

	return false
}

// byExtension maps file extensions to languages; absent: not code.
var byExtension = map[string]string{
	".sh": "bash", ".bash": "bash", ".zsh": "bash", ".ksh": "bash", ".command": "bash", ".bats": "bash",
	".py": "python", ".pyw": "python", ".pth": "python", ".ipynb": "notebook",
	".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
	".ts": "typescript", ".tsx": "typescript", ".mts": "typescript", ".cts": "typescript",
	".r": "r", ".R": "r", ".rprofile": "r", ".java": "java", ".pl": "perl", ".pm": "perl", ".rb": "ruby", ".php": "php", ".lua": "lua",
	".service": "unit", ".timer": "unit", ".cron": "cron", ".sql": "sql",
	".mk": makefile, ".mak": makefile, ".dockerfile": dockerfile,
	".cmake": cmake, ".gradle": groovy, ".kts": groovy, ".groovy": groovy, ".desktop": buildINI, ".just": justfile,
}

// byFileName maps whole names.
var byFileName = map[string]string{
	".bashrc": "bash", ".bash_profile": "bash", ".bash_login": "bash", ".profile": "bash", ".bash_logout": "bash", ".bash_aliases": "bash",
	".zshrc": "bash", ".zshenv": "bash", ".zprofile": "bash", ".zlogin": "bash", ".kshrc": "bash", "bash.bashrc": "bash", "profile": "bash",
	".envrc": "bash", "rc.local": "bash", ".xinitrc": "bash", ".xprofile": "bash", ".xsession": "bash", "crontab": "cron", "PKGBUILD": "bash",
	"gradlew": "bash", "configure": "bash", "sitecustomize.py": "python", "usercustomize.py": "python", ".pythonrc": "python", ".Rprofile": "r",
	"package.json": packageJSON, "composer.json": packageJSON, "deno.json": packageJSON, "Dockerfile": dockerfile, "Containerfile": dockerfile,
	"Makefile": makefile, "makefile": makefile, "GNUmakefile": makefile,
	"docker-compose.yml": buildYAML, "docker-compose.yaml": buildYAML, "compose.yml": buildYAML, "compose.yaml": buildYAML,
	".gitlab-ci.yml": buildYAML, ".travis.yml": buildYAML, ".pre-commit-config.yaml": buildYAML, "lefthook.yml": buildYAML, "Taskfile.yml": buildYAML, "Taskfile.yaml": buildYAML,
	"pyproject.toml": buildTOML, "Pipfile": buildTOML, "pixi.toml": buildTOML, "mise.toml": buildTOML, ".mise.toml": buildTOML, "tox.toml": buildTOML,
	"tasks.json": buildJSON, "devcontainer.json": buildJSON, ".devcontainer.json": buildJSON, ".lintstagedrc": buildJSON,
	"tox.ini": buildINI, "setup.cfg": buildINI, ".gitconfig": buildINI, "gitconfig": buildINI, ".gitmodules": buildINI, "ssh_config": sshConfig, "sshd_config": sshConfig,
	"Procfile": procfile, "justfile": justfile, "Justfile": justfile, ".justfile": justfile, "CMakeLists.txt": cmake, "Jenkinsfile": groovy, "Vagrantfile": vagrantfile,
}

// normalLanguage is the language a surface or an embedding named, in the
// guard's own words; empty if it is none of them.
func normalLanguage(l string) string {
	switch strings.ToLower(l) {
	case "bash", "sh", "shell", "zsh", "dash", "ksh", "ash", "console", "shellscript":
		return "bash"
	case "python", "python3", "py", "ipython":
		return "python"
	case "javascript", "js", "node", "nodejs", "jsx", "mjs":
		return "javascript"
	case "typescript", "ts", "tsx", "deno":
		return "typescript"
	case "r", "java", "sql", "perl", "ruby", "php", "lua", "tcl", "cron", "unit", "notebook":
		return strings.ToLower(l)
	case "kotlin":
		return groovy
	}

	if l = strings.ToLower(l); isBuild(l) {
		return l
	}

	return ""
}

// byShebang is the language of a "#!" line.
func byShebang(text string) string {
	line, ok := strings.CutPrefix(text, "#!")
	if !ok {
		return ""
	}

	line, _, _ = strings.Cut(line, "\n")

	for field := range strings.FieldsSeq(line) {
		name := strings.TrimRight(path.Base(field), "0123456789.")

		switch name {
		case "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "busybox":
			return "bash"
		case "python", "pypy":
			return "python"
		case "node", "nodejs", "bun":
			return "javascript"
		case "deno", "ts-node", "tsx":
			return "typescript"
		case "perl", "ruby", "php", "lua":
			return name
		case "Rscript":
			return "r"
		}
	}

	return "unknown"
}

// byPath is the language of a file by where it is and what it is called.
func byPath(p string) string {
	base := path.Base(p)
	if l, ok := byFileName[base]; ok {
		return l
	}

	switch {
	case strings.Contains(p, ".git/hooks/"), strings.Contains(p, "/etc/profile.d/"), strings.Contains(p, "/etc/init.d/"),
		strings.Contains(p, "/etc/cron.daily/"), strings.Contains(p, "/etc/cron.hourly/"), strings.Contains(p, "/etc/cron.weekly/"),
		strings.Contains(p, "/etc/cron.monthly/"), strings.Contains(p, "/etc/update-motd.d/"), strings.Contains(p, ".husky/"):
		return "bash"
	case strings.Contains(p, "/etc/cron.d/"), strings.Contains(p, "/var/spool/cron"):
		return "cron"
	case strings.HasPrefix(base, "Dockerfile."), strings.HasPrefix(base, "Containerfile."):
		return dockerfile
	case strings.Contains(p, ".github/") && (strings.HasSuffix(base, ".yml") || strings.HasSuffix(base, ".yaml")):
		return buildYAML
	case strings.HasSuffix(p, ".git/config"), strings.HasSuffix(p, ".config/git/config"):
		return buildINI
	case strings.HasSuffix(p, ".ssh/config"), strings.Contains(p, "/etc/ssh/ssh_config.d/"), strings.Contains(p, "/etc/ssh/sshd_config.d/"):
		return sshConfig
	case strings.HasSuffix(p, ".cargo/config.toml"), strings.HasSuffix(p, ".cargo/config"):
		return buildTOML
	case strings.HasPrefix(base, "Jenkinsfile."), strings.HasPrefix(base, "Procfile."):
		return byFileName[strings.TrimSuffix(base, path.Ext(base))]
	}

	return byExtension[path.Ext(base)]
}

// guess is what a text without a language may be. Words of one language are easily
// put into the comments of another, so only a first line that names the interpreter
// decides.
func guess(text string) []string {
	if l := byShebang(text); l != "" && l != "unknown" {
		return []string{l}
	}

	return guesses
}

var guesses = []string{"python", "javascript", "bash"}
