package envd

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/codeenv"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// maxWords bounds the arguments and variables of one process. Linux takes a few
// megabytes of them; millions of empty ones would cost us a hundred times that.
const maxWords = strictjson.MaxValues / 2

// systemTag puts a process outside the sandbox's own limits in envd.
const systemTag = "_system"

// Subjects returns what a guard must see of the message; h gives the user
// (Authorization). It refuses without a guard what no legitimate call sends.
// A message that only attaches to, signals or lists processes has no subjects.
func (m *Message) Subjects(h http.Header) ([]guard.Subject, *refusal.Refusal) {
	subjects, r := m.subjects()
	if r != nil {
		return nil, r
	}
	if user := basicUser(h); user != "" {
		for i := range subjects {
			label(&subjects[i], guard.LabelUser, user)
		}
	}
	return subjects, nil
}

func (m *Message) subjects() ([]guard.Subject, *refusal.Refusal) {
	switch req := m.Proto.(type) {
	case *processpb.StartRequest:
		return startSubjects(req)
	case *filesystempb.MoveRequest:
		return moveSubjects(req, m.MovedText)
	case *filesystempb.RemoveRequest:
		if req.GetPath() == "" {
			return nil, invalid("The path is empty, which envd takes for the whole home folder, so nothing was removed. Name the path.")
		}
		return fileSubjects("remove", req.GetPath())
	case *filesystempb.MakeDirRequest:
		return fileSubjects("mkdir", req.GetPath())
	case *filesystempb.StatRequest:
		return fileSubjects("list", req.GetPath())
	case *filesystempb.ListDirRequest:
		return fileSubjects("list", req.GetPath())
	case *filesystempb.WatchDirRequest:
		return fileSubjects("watch", req.GetPath())
	case *filesystempb.CreateWatcherRequest:
		return fileSubjects("watch", req.GetPath())
	default:
		return nil, nil
	}
}

func startSubjects(req *processpb.StartRequest) ([]guard.Subject, *refusal.Refusal) {
	p := req.GetProcess()
	if r := refuseStart(req); r != nil {
		return nil, r
	}
	subjects := argvSubjects(p.GetCmd(), p.GetArgs())
	subjects = append(subjects, codeenv.Subjects(p.GetEnvs())...)
	names := strings.Join(codeenv.Names(p.GetEnvs()), ",")
	for i := range subjects {
		s := &subjects[i]
		if s.Target == "" {
			s.Target = req.GetTag()
		}
		if cwd := p.GetCwd(); cwd != "" {
			label(s, guard.LabelCwd, cwd)
		}
		if names != "" {
			label(s, guard.LabelEnvNames, names)
		}
	}
	return subjects, nil
}

// refuseStart refuses what envd would run in a way that its own fields do not
// tell.
func refuseStart(req *processpb.StartRequest) *refusal.Refusal {
	p := req.GetProcess()
	switch {
	case len(p.GetArgs())+len(p.GetEnvs()) > maxWords:
		return invalid("The command has more arguments and environment variables than any system starts a program with, so nothing was run.")
	case p.GetCmd() == "":
		return invalid("The command is empty, so nothing was run. Name a program.")
	case strings.HasPrefix(p.GetCmd(), "-"):
		// envd hands cmd to nice(1), which would read it as an option.
		return policy("A program whose name starts with \"-\" is read as an option by the sandbox. Name the program itself, or its path.")
	case req.GetTag() == systemTag:
		return policy("The tag " + systemTag + " is the sandbox's own and puts a process outside its limits. Use another tag.")
	}
	fields := slices.Concat([]string{p.GetCmd(), p.GetCwd()}, p.GetArgs())
	for name, value := range p.GetEnvs() {
		// envd joins name and value with "=": a name that holds one sets another
		// variable.
		if name == "" || strings.Contains(name, "=") {
			return invalid("The environment variable name " + quote(name) + " is not valid. Names must not be empty or contain \"=\".")
		}
		fields = append(fields, name, value)
	}
	for _, f := range fields {
		if strings.ContainsRune(f, 0) {
			return invalid("A program, argument, folder or environment variable contains a NUL byte, which no process can be given.")
		}
	}
	return nil
}

// moveSubjects judges a move as the taking away of its source and a write to its
// destination.
func moveSubjects(req *filesystempb.MoveRequest, text *string) ([]guard.Subject, *refusal.Refusal) {
	if req.GetSource() == "" || req.GetDestination() == "" {
		return nil, invalid("The move names no source or no destination, which envd takes for the whole home folder, so nothing was moved. Name both.")
	}
	if why, ok := files.SelfRunning(req.GetDestination()); ok && text == nil {
		return nil, policy("Blocked by policy: moving a file to " + quote(req.GetDestination()) + " (" + why +
			") makes its content run by itself, and the gateway could not read what is moved. Write the file with its content instead.")
	}
	from, r := fileSubjects("take", req.GetSource())
	if r != nil {
		return nil, r
	}
	to, r := fileSubjects("move", req.GetDestination())
	if r != nil {
		return nil, r
	}
	if text != nil {
		class := files.Classify(req.GetDestination(), []byte((*text)[:min(len(*text), files.HeadBytes)]))
		written := files.WriteSubject(req.GetDestination(), "", class, *text)
		to[0].Text, to[0].Language = written.Text, written.Language
	}
	return append(from, to...), nil
}

func fileSubjects(action, path string) ([]guard.Subject, *refusal.Refusal) {
	if strings.ContainsRune(path, 0) {
		return nil, invalid("The path contains a NUL byte, which no file system knows.")
	}
	if path == "" {
		path = "~" // envd takes an empty path for the home, or the template's own folder
	}
	s := guard.Subject{Kind: guard.KindFile, Target: files.Judged(path)}
	label(&s, guard.LabelAction, action)
	return []guard.Subject{s}, nil
}

func policy(reason string) *refusal.Refusal { return refusal.New(refusal.CodePolicy, reason) }

func label(s *guard.Subject, key, value string) {
	if s.Labels == nil {
		s.Labels = make(map[string]string)
	}
	s.Labels[key] = value
}

// basicUser is the user a call runs as: envd takes it from the Basic
// credentials and ignores the password. "" is the sandbox's default user.
func basicUser(h http.Header) string {
	scheme, value, _ := strings.Cut(h.Get(headerAuthorization), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil {
		return ""
	}
	user, _, _ := strings.Cut(string(decoded), ":")
	return user
}
