package control

import (
	"errors"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/codeenv"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// createFields are the fields of NewSandbox and NewSandboxV2 in E2B's API.
var createFields = []field{
	{"templateID", text},
	{"timeout", integer},
	{"autoPause", boolean},
	{"autoPauseMemory", boolean},
	{"autoResume", object},
	{"secure", boolean},
	{"allow_internet_access", boolean},
	{"network", object},
	{"metadata", textMap},
	{"envVars", textMap},
	{"mcp", object},
	{"iam", object},
	{"volumeMounts", list},
}

// closedFields says why a field is refused in this release.
var closedFields = []struct{ name, why string }{
	{"iam", "it gives the sandbox credentials of the account"},
}

// plainTemplate is E2B's own template without a code interpreter, in which no
// variable is pasted into source code.
const plainTemplate = "base"

func (m *message) createSubjects() []guard.Subject {
	vars := m.envVars()
	subjects := codeenv.Subjects(vars)
	for i := range subjects {
		subjects[i].Labels = map[string]string{guard.LabelEnvNames: strings.Join(codeenv.Names(vars), ",")}
	}
	value, _ := m.object.Get("mcp")
	if config, ok := value.(*strictjson.Object); ok && config.Len() > 0 {
		subjects = append(subjects, serverSubjects(config)...)
	}
	return subjects
}

// envVars are the default variables of every process of the new sandbox.
func (m *message) envVars() map[string]string {
	value, _ := m.object.Get("envVars")
	o, ok := value.(*strictjson.Object)
	if !ok {
		return nil
	}
	vars := make(map[string]string, o.Len())
	for _, name := range o.Keys() {
		vars[name], _ = getText(o, name)
	}
	return vars
}

func (m *message) enforceCreate(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	template, _ := getText(m.object, "templateID")
	if template == "" {
		return nil, invalid(errors.New("it names no template; set templateID, such as base"))
	}
	if err := p.Templates.Check(template); err != nil {
		return nil, denied(err.Error())
	}
	for _, f := range closedFields {
		if value, _ := m.object.Get(f.name); !isEmpty(value) {
			return nil, denied("the field " + f.name + " is closed: " + f.why + "; leave it out")
		}
	}
	if ref := m.checkEnvVars(template); ref != nil {
		return nil, ref
	}
	if ref := m.checkMounts(p.Volumes); ref != nil {
		return nil, ref
	}
	if ref := m.checkPersistence(p.Persistence); ref != nil {
		return nil, ref
	}
	changes, ref := m.settleLifetime("timeout", p.Limits)
	if ref != nil {
		return nil, ref
	}
	more, ref := m.settleNetwork(p.Network)
	if ref != nil {
		return nil, ref
	}
	changes = append(changes, more...)
	secure, ref := m.settleSecure()
	return append(changes, secure...), ref
}

// checkEnvVars refuses variables that become code without anybody running them:
// the code interpreter pastes them, unescaped, into the first cell it runs.
func (m *message) checkEnvVars(template string) *refusal.Refusal {
	vars := m.envVars()
	for _, name := range codeenv.Names(vars) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(vars[name], "\x00") {
			return denied("the envVars name " + strconv.QuoteToASCII(shorten(name)) + ", or its value, holds characters that make another variable of it; leave it out")
		}
		if strings.EqualFold(template, plainTemplate) {
			continue
		}
		if err := codeenv.Interpolated(name, vars[name]); err != nil {
			return denied("E2B's code interpreter pastes envVars into source code, and " + err.Error() +
				"; encode the value (base64, for example), or pass the variable to the commands that need it")
		}
	}
	return nil
}

// checkPersistence refuses what would outlive the run: an edit would lose the
// data that the client counts on.
func (m *message) checkPersistence(p policy.Persistence) *refusal.Refusal {
	if p.Pause {
		return nil
	}
	const hint = ", and pausing is closed here; leave it out and keep results elsewhere, or ask the operator to write persistence allow pause"
	if on, _ := getBool(m.object, "autoPause"); on {
		return denied("autoPause keeps the sandbox after its lifetime" + hint)
	}
	value, _ := m.object.Get("autoResume")
	if o, ok := value.(*strictjson.Object); ok {
		if on, _ := getBool(o, "enabled"); on {
			return denied("autoResume wakes a paused sandbox" + hint)
		}
	}
	return nil
}

// settleSecure makes envd ask for its token. The second generation of the API
// always does, and has no field for it.
func (m *message) settleSecure() ([]policy.Change, *refusal.Refusal) {
	secure, set := getBool(m.object, "secure")
	switch {
	case set && secure:
		return nil, nil
	case m.v2 && !set:
		return nil, nil
	case m.v2:
		return nil, denied("secure:false asks for a sandbox without a token; leave it out")
	}
	m.object.Set("secure", true)
	change := policy.Change{Field: "secure", To: "true"}
	if set {
		change.From = "false"
	}
	return []policy.Change{change}, nil
}
