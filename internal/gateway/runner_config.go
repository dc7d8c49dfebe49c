package gateway

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Run configures POST /run, which runs a program in a sandbox of its own.
type Run struct {
	// Templates are the templates of the sandboxes, by language; of a language that
	// is not named, RunLanguages says which.
	Templates map[string]string
	// Timeout is how long a program may run: as long as its client asks for, at most
	// this.
	Timeout time.Duration
	// CPUSeconds is the program's CPU time, MemoryBytes the data of each of its
	// processes; 0 for no limit.
	CPUSeconds  int
	MemoryBytes int64
	// OutputBytes is how much of stdout, and of stderr, an answer holds.
	OutputBytes int64
	// Pool is how many sandboxes are kept warm for each client and template that
	// programs are run with.
	Pool int
}

// RunLanguage is a language of POST /run.
type RunLanguage struct {
	// Name is what clients call it, as they may call it Aliases.
	Name    string
	Aliases []string
	// Template is the template of its sandboxes, unless the configuration names one.
	Template string

	// guard is what guards call it.
	guard string
	// file is the name of the program's file, and line what a shell in its folder
	// runs.
	file, line string
}

// RunLanguages are the languages of POST /run. What runs a program is found in the
// sandbox's PATH. Python does not buffer its output: what a program had printed
// when a limit ended it must not be lost.
func RunLanguages() []RunLanguage {
	return []RunLanguage{
		{Name: "python", Aliases: []string{"py", "python3"}, Template: "base", guard: "python", file: "main.py", line: "exec python3 -u main.py"},
		{Name: "node", Aliases: []string{"javascript", "js"}, Template: "base", guard: "javascript", file: "main.js", line: "exec node main.js"},
		{Name: "bash", Aliases: []string{"sh", "shell"}, Template: "base", guard: "bash", file: "main.sh", line: "exec bash main.sh"},
		{Name: "r", Template: "code-interpreter-v1", guard: "r", file: "main.R", line: "exec Rscript main.R"},
		{Name: "java", Template: "code-interpreter-v1", guard: "java", file: "Main.java", line: "exec java Main.java"},
	}
}

// runLanguage finds a language by what a client calls it.
func runLanguage(name string) (RunLanguage, bool) {
	for _, l := range RunLanguages() {
		if name = strings.ToLower(name); l.Name == name || slices.Contains(l.Aliases, name) {
			return l, true
		}
	}
	return RunLanguage{}, false
}

func runLanguageNames() string {
	var names []string
	for _, l := range RunLanguages() {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// template is the template of a language's sandboxes.
func (r *Run) template(l RunLanguage) string {
	if own := r.Templates[l.Name]; own != "" {
		return own
	}
	return l.Template
}

// maxPool bounds the warm sandboxes of one client and template.
const maxPool = 100

// runLifetime is how much longer than its program a sandbox may live: it is made,
// the program is brought to it, and it is ended.
const runLifetime = time.Minute

// Validate reports every problem of the configuration by itself.
func (r *Run) Validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if r.Timeout < time.Second {
		bad("timeout %s is too short for any program; write at least 1s", r.Timeout)
	}
	if r.CPUSeconds < 0 || r.MemoryBytes < 0 || r.OutputBytes <= 0 {
		bad("cpu_seconds, memory and output must not be negative, and output not zero")
	}
	if r.Pool < 0 || r.Pool > maxPool {
		bad("pool %d: write a number of sandboxes up to %d", r.Pool, maxPool)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Templates)) {
		if l, known := runLanguage(name); !known || l.Name != name {
			bad("template %s: no such language; the languages are %s", name, runLanguageNames())
		} else if r.Templates[name] == "" {
			bad("template %s names no template", name)
		}
	}
	return errors.Join(problems...)
}

// fit reports what of the configuration does not go with the rest.
func (r *Run) fit(cfg Config) error {
	if r == nil {
		return nil
	}
	problems := []error{r.Validate()}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(cfg.Clients) == 0 {
		bad("it needs client keys, for whoever runs programs must be known; give one out with the option client")
	}
	if most := cfg.Policy.Limits.LifetimeMax; most > 0 && r.Timeout > most {
		bad("timeout %s is longer than a sandbox may live (%s); raise the maximum of limits sandbox_lifetime", r.Timeout, most)
	}
	if r.Pool > 0 && r.warmTime(cfg.Policy.Limits.LifetimeMax) < warmLeast {
		bad("pool: a sandbox lives %s at most, of which a program needs %s, so none could wait for one; raise the maximum of limits sandbox_lifetime", cfg.Policy.Limits.LifetimeMax, r.Timeout+runLifetime)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Templates)) {
		if err := cfg.Policy.Templates.Check(r.Templates[name]); err != nil {
			bad("template %s: %w", name, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
