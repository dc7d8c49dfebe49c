package control

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/archive"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Copy is a COPY step of a build: which files it takes of an uploaded archive, and
// where it puts them.
type Copy struct {
	// Step is its number, from one.
	Step int
	// Hash is what the client calls the archive.
	Hash string
	// Source is the file or folder of the archive, as archive.Source says.
	Source string
	// Destination is absolute, with a slash at its end if it must be a folder. It
	// is relative if nobody can tell from the build where it is.
	Destination string
	// User will own the files; "" for E2B's default.
	User string

	object *strictjson.Object
}

// SetHash names the archive as E2B is to find it.
func (c Copy) SetHash(hash string) { c.object.Set("filesHash", hash) }

var filesHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// IsFilesHash reports whether a text is what E2B takes for the hash of the files
// of a COPY step; its builder pastes it into a script.
func IsFilesHash(text string) bool { return filesHash.MatchString(text) }

// permissions are those that chmod takes as digits, without the bits that make a
// program run as its owner.
var permissions = regexp.MustCompile(`^0{0,2}[0-7]{3}$`)

// checkCopy checks the arguments of a COPY step: source, destination, owner and
// permissions.
func (s step) checkCopy() error {
	if len(s.args) < 2 || len(s.args) > 4 {
		return errors.New("it takes a source, a destination and, if wanted, an owner and permissions")
	}
	for _, name := range s.args[:2] {
		if name == "" || strings.ContainsAny(name, "\"`\\") || strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || c == 0x7f }) {
			return errors.New("E2B pastes its paths into a script, where quotes, backslashes and line breaks would be code; leave them out")
		}
	}
	if source := s.args[0]; strings.ContainsRune(source, '$') || strings.HasPrefix(source, "/") || source == ".." || strings.HasPrefix(path.Clean(source), "../") || path.Clean(source) == ".." {
		return errors.New("its source must be a path below the folder of the build, without \"$\"")
	}
	if len(s.args) > 3 && s.args[3] != "" && !permissions.MatchString(s.args[3]) {
		return errors.New("its permissions must be three octal digits, such as 755")
	}
	if !IsFilesHash(s.hash) {
		return errors.New("its filesHash is not the SHA-256 that E2B's SDKs send, 64 hexadecimal digits")
	}
	return checkAccount(s.args[2:min(len(s.args), 3)])
}

// place is what the steps before one make of its folder and user.
type place struct {
	vars      map[string]string
	cwd, user string
	// lost says that the folder is not known: the one a template was built with, or
	// one that is relative or named by a variable that is not known.
	lost bool
}

// startPlace is where a build begins: from a template in a folder of the template's.
func (m *message) startPlace() place {
	template, _ := getText(m.object, "fromTemplate")
	return place{lost: template != ""}
}

// resolve puts the values of variables in place of their names.
func (p place) resolve(text string) (resolved string, ok bool) {
	ok = true
	resolved = plainDollar.ReplaceAllStringFunc(text, func(name string) string {
		value, set := p.vars[strings.Trim(name, "${}")]
		if !set || strings.ContainsAny(value, "$\"`\\") {
			ok = false
		}
		return value
	})
	return resolved, ok && !strings.Contains(resolved, "$")
}

// after is the place after a step.
func (p place) after(s step) place {
	switch s.kind {
	case "ENV", "ARG":
		vars := make(map[string]string, len(p.vars)+1)
		for k, v := range p.vars {
			vars[k] = v
		}
		for i := 0; i < len(s.args); i += 2 {
			value, ok := p.resolve(s.args[i+1])
			if !ok {
				value = s.args[i+1] // with its "$", which resolve stops at
			}
			vars[s.args[i]] = value
		}
		p.vars = vars
	case "USER":
		p.user = s.args[0]
	case "WORKDIR":
		dir, ok := p.resolve(s.args[0])
		p.cwd, p.lost = path.Clean(dir), !ok || !strings.HasPrefix(dir, "/")
	}
	return p
}

// folder is where relative paths begin: without a WORKDIR in the home of the user.
// Those of system accounts are anywhere.
func (p place) folder() (dir string, known bool) {
	user, _, _ := strings.Cut(p.user, ":")
	switch {
	case p.lost:
		return "", false
	case p.cwd != "":
		return p.cwd, true
	case user == "root":
		return "/root", true
	case user == "", user == "user": // E2B's builder starts as this user
		return "/home/user", true
	default:
		return "", false
	}
}

// moving are variables by which the programs that the builder copies with do
// something else.
var moving = []string{"TAR_OPTIONS", "CDPATH"}

// Copies are the COPY steps of a build, in order. A destination with variables is
// written into the step as what it is judged by.
func (m *message) Copies() ([]Copy, *refusal.Refusal) {
	var copies []Copy
	at := m.startPlace()
	for i, s := range m.steps {
		if s.kind != "COPY" && s.kind != "ADD" {
			at = at.after(s)
			continue
		}
		for _, name := range moving {
			if at.vars[name] != "" {
				return nil, denied(fmt.Sprintf("step %d (%s): the variable %s, which an ENV step sets, changes where its files go; set it after the COPY steps", i+1, s.kind, name))
			}
		}
		destination, ok := at.resolve(s.args[1])
		if !ok {
			return nil, denied(fmt.Sprintf("step %d (%s): its destination %q has a variable whose value is not known from the ENV steps before it; write the path as it is", i+1, s.kind, shorten(s.args[1])))
		}
		if destination != s.args[1] {
			args := append([]string{s.args[0], destination}, s.args[2:]...)
			setTexts(s.object, "args", args)
		}
		c := Copy{Step: i + 1, Hash: s.hash, Source: archive.Source(s.args[0]), Destination: destination, User: at.user, object: s.object}
		if dir, known := at.folder(); known && !strings.HasPrefix(destination, "/") {
			c.Destination = strings.TrimSuffix(dir, "/") + "/" + destination
		}
		if path.Base(destination) == "." || path.Base(destination) == ".." {
			c.Destination += "/" // as a folder it is there already
		}
		if len(s.args) > 2 && s.args[2] != "" {
			c.User = s.args[2]
		}
		copies = append(copies, c)
	}
	return copies, nil
}

// UploadPlace reads E2B's answer about an archive: whether it has it, and where to
// send it; "" for nowhere.
func UploadPlace(body []byte) (present bool, url string, err error) {
	o, err := strictjson.DecodeObject(body)
	if err == nil {
		err = check(o, []field{{"present", boolean}, {"url", text}}, "")
	}
	if err != nil {
		return false, "", fmt.Errorf("reading E2B's answer: %w", err)
	}
	present, _ = getBool(o, "present")
	url, _ = getText(o, "url")
	return present, url, nil
}

// UploadAnswer is that answer for the client.
func UploadAnswer(present bool, url string) []byte {
	o := strictjson.NewObject()
	o.Set("present", present)
	o.Set("url", url)
	return strictjson.Encode(o)
}
