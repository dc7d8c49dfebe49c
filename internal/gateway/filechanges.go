package gateway

import (
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// keepFiles notes what a call that goes on now does to the files of its sandbox;
// the function that is returned is called when it is over.
func (c *call) keepFiles() (over func()) {
	memory := c.g.state.files
	switch c.target.Row.Operation {
	case route.FilesWrite, route.FilesCompose, route.FilesystemMove, route.FilesystemRemove:
		changed, known := c.changedFiles()
		if !known {
			return memory.started(c.target.Sandbox)
		}
		done := memory.change(c.target.Sandbox, changed)
		return func() { done(c.answered >= 200 && c.answered < 300) }
	case route.ProcessStart, route.ProcessSendInput, route.ProcessStreamInput, route.ProcessConnect,
		route.CodeRun, route.ContextCreate, route.ContextRestart, route.PortRequest, route.MCPCall:
		return memory.started(c.target.Sandbox)
	default:
		return func() {}
	}
}

// changedFiles are the files that the call changes; false if that is not known.
func (c *call) changedFiles() ([]fileChange, bool) {
	switch {
	case c.upload != nil:
		return c.upload.written()
	case c.moved != nil:
		return c.moved, true
	}
	m, ok := c.msg.(*envd.Message)
	if !ok {
		return nil, false
	}
	var out []fileChange
	for _, p := range m.ChangedPaths() {
		abs := files.Absolute(p, c.user())
		if !plainPlace(abs) {
			return nil, false
		}
		out = append(out, fileChange{path: abs})
	}
	return out, true
}

// written are the files of an upload; false if some are not known yet.
func (u *upload) written() ([]fileChange, bool) {
	if u.next != nil {
		return nil, false
	}
	out := make([]fileChange, 0, len(u.judged))
	for _, j := range u.judged {
		w := fileChange{path: files.Absolute(j.part.Path, u.parts.Username)}
		if !plainPlace(w.path) {
			return nil, false
		}
		if j.text.Size() <= maxFileText {
			if b, err := j.text.Bytes(); err == nil {
				w.text, w.content = files.ReadContent(b)
			}
		}
		out = append(out, w)
	}
	return out, true
}

// plainPlace reports whether a path means what it says. Below /proc and /dev, it
// may be any other file's.
func plainPlace(path string) bool {
	return path != "" && !strings.HasPrefix(path+"/", "/proc/") && !strings.HasPrefix(path+"/", "/dev/")
}

// user is the user the call acts as; "" for the sandbox's own default.
func (c *call) user() string {
	user, _, _ := c.r.BasicAuth()
	return user
}
