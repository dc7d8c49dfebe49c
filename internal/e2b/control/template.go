package control

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/archive"
	"github.com/e2bguard/e2bguard/internal/e2b/codeenv"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// templateFields are the fields of TemplateBuildRequestV2 and V3 in E2B's API,
// buildFields those of TemplateBuildStartV2, stepFields those of TemplateStep and
// what the SDKs keep of a COPY step for themselves.
var (
	templateFields = []field{{"name", text}, {"alias", text}, {"tags", texts}, {"teamID", text}, {"cpuCount", integer}, {"memoryMB", integer}}
	buildFields    = []field{
		{"fromImage", text}, {"fromTemplate", text}, {"fromImageRegistry", object}, {"force", boolean},
		{"steps", list}, {"startCmd", text}, {"readyCmd", text},
	}
	stepFields = []field{{"type", text}, {"args", texts}, {"filesHash", text}, {"force", boolean}, {"forceUpload", boolean}, {"resolveSymlinks", boolean}, {"gzip", boolean}}
)

// E2B's defaults for a template whose build names none.
const (
	defaultCPU      = 2
	defaultMemoryMB = 512
)

// enforceTemplate keeps the machine of a new template within policy.
func (m *message) enforceTemplate(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Builds.Open() {
		return nil, denied(policy.ErrBuildsClosed.Error())
	}
	if len(m.Names()) == 0 {
		return nil, invalid(errors.New("it names no template; set name"))
	}
	var changes []policy.Change
	for _, size := range []struct {
		name          string
		most, usually int64
	}{{"cpuCount", p.Builds.CPU, defaultCPU}, {"memoryMB", p.Builds.MemoryMB, defaultMemoryMB}} {
		asked, set := getInt(m.object, size.name)
		if set && asked < 1 {
			return nil, invalid(fmt.Errorf("the field %q is %d; send 1 or more", size.name, asked))
		}
		if size.most == 0 || set && asked <= size.most || !set && size.usually <= size.most {
			continue
		}
		change := policy.Change{Field: size.name, To: fmt.Sprint(size.most)}
		if set {
			change.From = fmt.Sprint(asked)
		}
		setInt(m.object, size.name, size.most)
		changes = append(changes, change)
	}
	return changes, nil
}

// enforceBuild checks what a template is built from. Its steps were judged.
func (m *message) enforceBuild(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Builds.Open() {
		return nil, denied(policy.ErrBuildsClosed.Error())
	}
	image, _ := getText(m.object, "fromImage")
	template, _ := getText(m.object, "fromTemplate")
	var err error
	switch {
	case (image == "") == (template == ""):
		return nil, invalid(errors.New("it must name what to build from, either fromImage or fromTemplate"))
	case image != "":
		err = p.Builds.CheckImage(image)
	default:
		err = p.Builds.CheckTemplate(template)
	}
	if err != nil {
		return nil, denied(err.Error())
	}
	return nil, nil
}

func (m *message) enforceTags(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if !p.Builds.Open() {
		return nil, denied(policy.ErrBuildsClosed.Error())
	}
	if len(m.Names()) == 0 {
		return nil, invalid(errors.New("it names no template"))
	}
	return nil, nil
}

// step is one instruction of a build, as E2B's builder takes it.
type step struct {
	kind   string
	args   []string
	hash   string // of a COPY step's files
	object *strictjson.Object
}

// readSteps reads the steps of a build and refuses what the builder would paste
// into a script of its own: it quotes neither users nor folders nor values.
// Source: the builder's commands in e2b-dev/infra.
func (m *message) readSteps() *refusal.Refusal {
	value, _ := m.object.Get("steps")
	entries, _ := value.([]any)
	for i, e := range entries {
		o, ok := e.(*strictjson.Object)
		if !ok {
			return invalid(fmt.Errorf("step %d is %s, not an object", i+1, strictjson.TypeName(e)))
		}
		if err := check(o, stepFields, fmt.Sprintf("steps[%d].", i)); err != nil {
			return invalid(err)
		}
		if err := checkKnown(o, stepFields, fmt.Sprintf("steps[%d].", i)); err != nil {
			return invalid(err)
		}
		kind, _ := getText(o, "type")
		s := step{kind: strings.ToUpper(kind), args: getTexts(o, "args"), object: o}
		s.hash, _ = getText(o, "filesHash")
		if err := s.check(); err != nil {
			return denied(fmt.Sprintf("step %d (%s): %s", i+1, shorten(s.kind), err))
		}
		m.steps = append(m.steps, s)
	}
	return nil
}

var (
	accountName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// plainDollar is a "$" that names a variable and does nothing else.
	plainDollar = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)
)

func (s step) check() error {
	if s.hash != "" && s.kind != "COPY" && s.kind != "ADD" {
		return errors.New("it has files, which only COPY takes")
	}
	switch s.kind {
	case "RUN":
		if len(s.args) < 1 || len(s.args) > 2 {
			return errors.New("it takes a command and, if wanted, a user")
		}
		return checkAccount(s.args[1:])
	case "USER":
		if len(s.args) < 1 || len(s.args) > 2 || len(s.args) == 2 && s.args[1] != "" && s.args[1] != "true" && s.args[1] != "false" {
			return errors.New("it takes a user and, if wanted, true for one that may use sudo")
		}
		return checkAccount(s.args[:1])
	case "WORKDIR":
		if len(s.args) != 1 || s.args[0] == "" || strings.HasPrefix(s.args[0], "-") {
			return errors.New("it takes one folder")
		}
		if strings.ContainsAny(s.args[0], "\"`\\\n\r\x00") || strings.Contains(plainDollar.ReplaceAllString(s.args[0], ""), "$") {
			return errors.New("E2B pastes the folder into a script, where its quotes, backslashes, line breaks or \"$\" would be code; leave them out")
		}
	case "ENV", "ARG":
		if len(s.args) == 0 || len(s.args)%2 != 0 {
			return errors.New("it takes names and values in turn")
		}
		for i := 0; i < len(s.args); i += 2 {
			if !variable.MatchString(s.args[i]) {
				return fmt.Errorf("%q is no name of a variable", shorten(s.args[i]))
			}
			value := plainDollar.ReplaceAllString(s.args[i+1], "")
			if strings.ContainsRune(value, 0) || strings.Contains(value, "$(") || strings.Contains(value, "$[") || strings.Contains(value, "${") || strings.Contains(value, "`") {
				return fmt.Errorf("E2B expands the value of %s in a shell, where its \"$\" or backquote would be more than the name of a variable; write $NAME or ${NAME}, or set the variable in a RUN step", s.args[i])
			}
		}
	case "COPY", "ADD":
		return s.checkCopy()
	default:
		return errors.New("it is no step that E2B's builder knows; use RUN, COPY, ENV, WORKDIR or USER")
	}
	return nil
}

func checkAccount(names []string) error {
	for _, name := range names {
		if name != "" && !accountName.MatchString(name) {
			return errors.New("E2B pastes the user into a script, so only letters, digits, dots, dashes and underscores can be in it")
		}
	}
	return nil
}

// buildSubjects is what runs in a build: each command by itself, and all of them
// as one script, in which a command that is split over several steps is whole.
// Each stands there as an argument of its own shell, as E2B runs it, so that a
// heredoc or quote left open swallows nothing of the next.
func (m *message) buildSubjects() []guard.Subject {
	steps := slices.Clone(m.steps)
	for _, name := range []string{"startCmd", "readyCmd"} {
		if cmd, _ := getText(m.object, name); cmd != "" {
			steps = append(steps, step{kind: "RUN", args: []string{cmd}})
		}
	}
	var subjects []guard.Subject
	var script strings.Builder
	vars, cwd, user, commands, copies := map[string]string{}, "", "", 0, 0
	at := m.startPlace()
	for _, s := range steps {
		at = at.after(s)
		switch s.kind {
		case "ENV", "ARG":
			for i := 0; i < len(s.args); i += 2 {
				vars[s.args[i]] = s.args[i+1]
				fmt.Fprintf(&script, "export %s=\"%s\"\n", s.args[i], quoteDouble(s.args[i+1]))
			}
		case "WORKDIR":
			if cwd = s.args[0]; !at.lost {
				cwd = at.cwd
			}
			fmt.Fprintf(&script, "mkdir -p \"%s\" && cd \"%s\"\n", s.args[0], s.args[0])
		case "USER":
			user = s.args[0]
		case "COPY", "ADD":
			fmt.Fprintf(&script, "cp -r -- \"%s\" \"%s\"\n", archive.Source(s.args[0]), s.args[1])
			copies++
		default:
			as := user
			if len(s.args) > 1 && s.args[1] != "" {
				as = s.args[1]
			}
			labels := map[string]string{}
			for name, v := range map[string]string{guard.LabelCwd: cwd, guard.LabelUser: as, guard.LabelEnvNames: strings.Join(codeenv.Names(vars), ",")} {
				if v != "" {
					labels[name] = v
				}
			}
			subjects = append(subjects, guard.Subject{Kind: guard.KindBuild, Language: "bash", Text: s.args[0], Labels: labels})
			fmt.Fprintf(&script, "bash -l -c '%s'\n", strings.ReplaceAll(s.args[0], "'", `'\''`))
			commands++
		}
	}
	subjects = append(subjects, codeenv.Subjects(vars)...)
	if commands > 1 || commands == 1 && len(vars)+copies > 0 {
		subjects = append(subjects, guard.Subject{Kind: guard.KindBuild, Language: "bash", Text: script.String(), Target: "all steps"})
	}
	return subjects
}

// quoteDouble writes a value as E2B does between double quotes, where variables
// are still expanded.
func quoteDouble(value string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`").Replace(value)
}

// Names are the templates or snapshots that the message would make, or give
// another name; empty if it makes none or leaves the name to E2B.
func (m *message) Names() []string {
	var names []string
	for _, field := range m.spec.names {
		if name, _ := getText(m.object, field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// NeedsName is true of a snapshot: E2B takes one without a name.
func (m *message) NeedsName() bool { return m.spec.optional && len(m.spec.names) > 0 }

// SetName names a snapshot whose client left that to E2B.
func (m *message) SetName(name string) { m.object.Set("name", name) }

// Source is the template that the message starts or builds from; "" for none.
func (m *message) Source() string {
	if m.spec.source == "" {
		return ""
	}
	name, _ := getText(m.object, m.spec.source)
	return name
}

// KeepTemplates leaves only those templates of a list for which it is told to, by
// their names. What E2B calls aliases are names too.
func KeepTemplates(body []byte, keep func(names []string) bool) ([]byte, error) {
	value, err := strictjson.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("reading E2B's answer: %w", err)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("reading E2B's answer: %s, not an array", strictjson.TypeName(value))
	}
	kept := []any{}
	for i, e := range list {
		o, ok := e.(*strictjson.Object)
		if !ok {
			return nil, fmt.Errorf("reading E2B's answer: entry %d is %s, not an object", i, strictjson.TypeName(e))
		}
		if keep(templateNames(o)) {
			kept = append(kept, o)
		}
	}
	return strictjson.Encode(kept), nil
}

// TemplateNames are the names in an answer about one template.
func TemplateNames(body []byte) ([]string, error) {
	o, err := strictjson.DecodeObject(body)
	if err != nil {
		return nil, fmt.Errorf("reading E2B's answer: %w", err)
	}
	return templateNames(o), nil
}

func templateNames(o *strictjson.Object) []string {
	var names []string
	for _, field := range []string{"names", "aliases"} {
		value, _ := o.Get(field)
		list, _ := value.([]any)
		for _, e := range list {
			if name, ok := e.(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}
