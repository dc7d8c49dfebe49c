package static

import (
	"maps"
	"slices"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/java"
	"github.com/e2bguard/e2bguard/guard/static/javascript"
	"github.com/e2bguard/e2bguard/guard/static/python"
	"github.com/e2bguard/e2bguard/guard/static/rscript"
	"github.com/e2bguard/e2bguard/guard/static/scripting"
	"github.com/e2bguard/e2bguard/guard/static/shell"
)

// frontEnds is the one table of languages that can be read.
var frontEnds = map[string]effect.Parser{
	"bash":       shell.Parse,
	"python":     python.Parse,
	"javascript": javascript.Parse,
	"typescript": javascript.Parse,
	"r":          rscript.Parse,
	"java":       java.Parse,
	"perl":       scripting.ParsePerl,
	"ruby":       scripting.ParseRuby,
	"php":        scripting.ParsePHP,
	"lua":        scripting.ParseLua,
	"tcl":        scripting.ParseTcl,
	"cron":       scripting.ParseCron,
	"unit":       scripting.ParseUnit,
	"sql":        scripting.ParseSQL,
	packageJSON:  scripting.ParsePackage,
	dockerfile:   scripting.ParseDockerfile,
	makefile:     scripting.ParseMake,
	buildYAML:    scripting.ParseBuildYAML,
	buildTOML:    scripting.ParseBuildTOML,
	buildJSON:    scripting.ParseBuildJSON,
	buildINI:     scripting.ParseINI,
	sshConfig:    scripting.ParseSSHConfig,
	procfile:     scripting.ParseProcfile,
	justfile:     scripting.ParseJust,
	cmake:        scripting.ParseCMake,
	groovy:       scripting.ParseGroovy,
	vagrantfile:  scripting.ParseVagrant,
}

// Languages lists the languages that the guard reads, sorted.
func Languages() []string { return slices.Sorted(maps.Keys(frontEnds)) }

// KnownLanguage says whether the guard reads a language, by its name or another
// one that is common for it, such as "sh" or "py".
func KnownLanguage(name string) bool { return frontEnds[normalLanguage(name)] != nil }
