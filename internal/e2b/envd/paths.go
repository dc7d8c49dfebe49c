package envd

import (
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
)

// canonicalPaths resolves ".." in the paths of a message, so that the path that
// is judged is the one the kernel opens.
func canonicalPaths(m proto.Message) {
	for _, p := range pathsOf(m) {
		*p = files.Canonical(*p)
	}
}

func pathsOf(m proto.Message) []*string {
	switch m := m.(type) {
	case *processpb.StartRequest:
		if m.GetProcess().GetCwd() != "" {
			return []*string{m.Process.Cwd}
		}
	case *filesystempb.MoveRequest:
		return []*string{&m.Source, &m.Destination}
	case *filesystempb.RemoveRequest:
		return []*string{&m.Path}
	case *filesystempb.MakeDirRequest:
		return []*string{&m.Path}
	case *filesystempb.StatRequest:
		return []*string{&m.Path}
	case *filesystempb.ListDirRequest:
		return []*string{&m.Path}
	case *filesystempb.WatchDirRequest:
		return []*string{&m.Path}
	case *filesystempb.CreateWatcherRequest:
		return []*string{&m.Path}
	}
	return nil
}

// ChangedPaths are the files and folders that the message moves or removes.
func (m *Message) ChangedPaths() []string {
	switch req := m.Proto.(type) {
	case *filesystempb.MoveRequest:
		return []string{req.GetSource(), req.GetDestination()}
	case *filesystempb.RemoveRequest:
		return []string{req.GetPath()}
	default:
		return nil
	}
}

// MovePaths are the source and the destination of a move.
func (m *Message) MovePaths() (from, to string) {
	req, _ := m.Proto.(*filesystempb.MoveRequest)
	return req.GetSource(), req.GetDestination()
}
