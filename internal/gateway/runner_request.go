package gateway

import (
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// program is what a client asks POST /run to run.
type program struct {
	language RunLanguage
	code     string
	// timeout is how long the program may run, clamped that it is less than asked
	// for.
	timeout time.Duration
	clamped bool
	// files come with the program, by path below its folder.
	files []files.File
}

const (
	// runFolder is where the program and its files are, below the home of the
	// sandbox's user.
	runFolder = "run"
	// runHome is the home to judge them by: that of E2B's default user.
	runHome = defaultFolder + "/" + runFolder
	// maxRunFiles bounds the files that come with a program.
	maxRunFiles = 100
)

// runFields are the members of a request.
var runFields = []string{"language", "code", "timeout", "files"}

// decodeRun reads a request. What it does not understand, it refuses.
func decodeProgram(body []byte, cfg *Run) (*program, *refusal.Refusal) {
	o, err := strictjson.DecodeObject(body)
	if err != nil {
		return nil, refuseRun("%s", err)
	}
	for _, name := range o.Keys() {
		if !slices.Contains(runFields, name) {
			return nil, refuseRun("it has %q, which e2bguard does not know; the members are %s", name, strings.Join(runFields, ", "))
		}
	}
	p := &program{timeout: cfg.Timeout}
	name, _ := o.Get("language")
	language, ok := name.(string)
	if p.language, ok = runLanguage(language); !ok {
		return nil, refuseRun("language must be one of %s", runLanguageNames())
	}
	code, _ := o.Get("code")
	if p.code, ok = code.(string); !ok || strings.TrimSpace(p.code) == "" {
		return nil, refuseRun("code must be the program's text")
	}
	if strings.ContainsRune(p.code, 0) {
		return nil, refuseRun("code holds a NUL character, which no program's text has")
	}
	if ref := p.setTimeout(o); ref != nil {
		return nil, ref
	}
	return p, p.setFiles(o)
}

func refuseRun(format string, args ...any) *refusal.Refusal {
	return refusal.New(refusal.CodeInvalid, "e2bguard could not read this request, so nothing was run: "+fmt.Sprintf(format, args...)+".")
}

// setTimeout reads the timeout, in seconds.
func (p *program) setTimeout(o *strictjson.Object) *refusal.Refusal {
	value, _ := o.Get("timeout")
	if value == nil {
		return nil
	}
	number, _ := value.(strictjson.Number)
	seconds, err := number.Float64()
	if err != nil || seconds <= 0 {
		return refuseRun("timeout must be a number of seconds above 0")
	}
	if seconds > p.timeout.Seconds() {
		p.clamped = true
		return nil
	}
	p.timeout = max(time.Duration(seconds*float64(time.Second)), time.Millisecond)
	return nil
}

// setFiles reads the files: each a text, or an object with its bytes in base64.
func (p *program) setFiles(o *strictjson.Object) *refusal.Refusal {
	value, _ := o.Get("files")
	if value == nil {
		return nil
	}
	list, ok := value.(*strictjson.Object)
	if !ok {
		return refuseRun("files must be an object of texts by path")
	}
	if len(list.Keys()) > maxRunFiles {
		return refuseRun("files has more than %d; send fewer, or an archive that the program unpacks", maxRunFiles)
	}
	for _, name := range list.Keys() {
		if why := p.checkPath(name); why != "" {
			return refuseRun("the file %.80q %s", name, why)
		}
		content, _ := list.Get(name)
		f := files.File{Path: name}
		switch v := content.(type) {
		case string:
			f.Content = []byte(v)
		case *strictjson.Object:
			text, _ := v.Get("base64")
			encoded, ok := text.(string)
			decoded, err := base64.StdEncoding.DecodeString(encoded)
			if !ok || err != nil || len(v.Keys()) != 1 {
				return refuseRun(`the file %.80q must be a text, or {"base64": "…"}`, name)
			}
			f.Content = decoded
		default:
			return refuseRun(`the file %.80q must be a text, or {"base64": "…"}`, name)
		}
		p.files = append(p.files, f)
	}
	return nil
}

// checkPath says why a path cannot be that of a file; "" if it can.
func (p *program) checkPath(name string) string {
	switch {
	case name == "" || path.IsAbs(name) || path.Clean(name) != name || name == "." || strings.HasPrefix(name, ".."):
		return "must have a plain path below the program's folder, such as data/input.csv"
	case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' || c == utf8.RuneError }):
		return "has characters in its path that servers read differently"
	case strings.EqualFold(name, p.language.file):
		return "has the name of the program itself"
	case slices.ContainsFunc(p.files, func(f files.File) bool {
		return strings.HasPrefix(f.Path, name+"/") || strings.HasPrefix(name, f.Path+"/")
	}):
		return "is a folder of another file"
	case strings.HasPrefix(name, p.language.file+"/"):
		return "is below the program itself"
	}
	return ""
}

// checkReadable says no to files that are code which no guard can read.
func (p *program) checkReadable() *refusal.Refusal {
	for _, f := range p.files {
		if files.Compiled(f.Path, f.Content) {
			return refusal.New(refusal.CodePolicy, fmt.Sprintf("Blocked by policy: the file %.80q is compiled code, which no guard can read, so nothing was run. Send its source instead, or have the operator put it into the template.", f.Path))
		}
	}
	return nil
}

// upload is all that is written to the sandbox.
func (p *program) upload() []files.File {
	list := []files.File{{Path: path.Join(runFolder, p.language.file), Content: []byte(p.code)}}
	for _, f := range p.files {
		list = append(list, files.File{Path: path.Join(runFolder, f.Path), Content: f.Content})
	}
	return list
}

// file is what comes with the program at a path of the sandbox.
func (p *program) file(name string) (string, files.Content) {
	for _, f := range p.files {
		if path.Join(runHome, f.Path) != name {
			continue
		}
		if len(f.Content) > maxFileText {
			return "", files.Unseen
		}
		return files.ReadContent(f.Content)
	}
	return "", files.Absent
}

// subjects are what the guard must see: the program first.
func (p *program) subjects() []guard.Subject {
	list := []guard.Subject{{
		Kind: guard.KindCode, Language: p.language.guard, Text: p.code, Target: p.language.file,
		Labels: map[string]string{guard.LabelCwd: runHome},
	}}
	for _, f := range p.files {
		name := path.Join(runHome, f.Path)
		class, text := files.Classify(name, f.Content[:min(len(f.Content), files.HeadBytes)]), ""
		if class.Code {
			text = string(f.Content)
		}
		list = append(list, files.WriteSubject(name, "", class, text))
	}
	return list
}
