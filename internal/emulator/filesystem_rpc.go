package emulator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"syscall"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
)

func (sb *sandbox) filesystemHandlers(opts ...connect.HandlerOption) map[string]http.Handler {
	const service = "/filesystem.Filesystem/"
	return map[string]http.Handler{
		service + "Stat":             connect.NewUnaryHandler(service+"Stat", sb.stat, opts...),
		service + "MakeDir":          connect.NewUnaryHandler(service+"MakeDir", sb.makeDir, opts...),
		service + "Move":             connect.NewUnaryHandler(service+"Move", sb.move, opts...),
		service + "ListDir":          connect.NewUnaryHandler(service+"ListDir", sb.listDir, opts...),
		service + "Remove":           connect.NewUnaryHandler(service+"Remove", sb.remove, opts...),
		service + "WatchDir":         connect.NewServerStreamHandler(service+"WatchDir", sb.watchDir, opts...),
		service + "CreateWatcher":    connect.NewUnaryHandler(service+"CreateWatcher", sb.createWatcher, opts...),
		service + "GetWatcherEvents": connect.NewUnaryHandler(service+"GetWatcherEvents", sb.watcherEvents, opts...),
		service + "RemoveWatcher":    connect.NewUnaryHandler(service+"RemoveWatcher", sb.removeWatcher, opts...),
	}
}

// pathOf expands a request's path for its user.
func pathOf(ctx context.Context, p string) (string, account, error) {
	u, err := userOf(ctx)
	if err != nil {
		return "", u, err
	}
	full, err := expand(p, u)
	if err != nil {
		return "", u, invalid(err)
	}
	return full, u, nil
}

func internal(context string, err error) error {
	return connect.NewError(connect.CodeInternal, fmt.Errorf("%s: %w", context, err))
}

// entry describes the file at p, as envd does.
func (sb *sandbox) entry(p string) (*pb.EntryInfo, error) {
	info, err := sb.fs.lstat(p)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("file not found: %w", err))
		}
		return nil, internal("error getting file info", err)
	}
	attrs := sb.fs.attrsOf(path.Clean(p))
	e := &pb.EntryInfo{
		Name: path.Base(path.Clean(p)), Path: p, Size: info.Size(), Permissions: info.Mode().String(),
		Owner: attrs.owner, Group: attrs.owner, ModifiedTime: timestamppb.New(info.ModTime()), Metadata: attrs.metadata,
		Mode: uint32(info.Mode().Perm()), Type: typeOf(info.Mode()),
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		// The type is that of what the link leads to.
		target, err := sb.fs.resolve(p, true)
		if err != nil {
			target = p
		}
		e.SymlinkTarget, e.Mode, e.Type = &target, 0, pb.FileType_FILE_TYPE_UNSPECIFIED
		if led, err := sb.fs.stat(p); err == nil {
			e.Mode, e.Type = uint32(led.Mode().Perm()), typeOf(led.Mode())
		}
	}
	return e, nil
}

func typeOf(m fs.FileMode) pb.FileType {
	switch {
	case m.IsRegular():
		return pb.FileType_FILE_TYPE_FILE
	case m.IsDir():
		return pb.FileType_FILE_TYPE_DIRECTORY
	case m&fs.ModeSymlink != 0:
		return pb.FileType_FILE_TYPE_SYMLINK
	}
	return pb.FileType_FILE_TYPE_UNSPECIFIED
}

func (sb *sandbox) stat(ctx context.Context, req *connect.Request[pb.StatRequest]) (*connect.Response[pb.StatResponse], error) {
	p, _, err := pathOf(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	e, err := sb.entry(p)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.StatResponse{Entry: e}), nil
}

func (sb *sandbox) makeDir(ctx context.Context, req *connect.Request[pb.MakeDirRequest]) (*connect.Response[pb.MakeDirResponse], error) {
	p, u, err := pathOf(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	switch info, err := sb.fs.stat(p); {
	case err == nil && info.IsDir():
		return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory already exists: %s", p))
	case err == nil:
		return nil, invalid(fmt.Errorf("path already exists but it is not a directory: %s", p))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, internal("error getting file info", err)
	}
	if err := sb.ensureDirs(p, u); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	e, err := sb.entry(p)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.MakeDirResponse{Entry: e}), nil
}

// ensureDirs makes p and its parents; those it makes belong to u.
func (sb *sandbox) ensureDirs(p string, u account) error {
	var missing []string
	for at := path.Clean(p); at != "/"; at = path.Dir(at) {
		info, err := sb.fs.stat(at)
		if err == nil {
			if !info.IsDir() {
				return fmt.Errorf("path is a file: %s", at)
			}
			break
		}
		if errors.Is(err, syscall.ENOTDIR) {
			continue // A parent is a file; the loop comes to it.
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("failed to stat directory: %w", err)
		}
		missing = append(missing, at)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := sb.fs.mkdirAll(p); err != nil {
		return fmt.Errorf("failed to create directory: %w", err)
	}
	for _, at := range missing {
		sb.own(at, u, nil)
	}
	return nil
}

func (sb *sandbox) move(ctx context.Context, req *connect.Request[pb.MoveRequest]) (*connect.Response[pb.MoveResponse], error) {
	from, u, err := pathOf(ctx, req.Msg.GetSource())
	if err != nil {
		return nil, err
	}
	to, err := expand(req.Msg.GetDestination(), u)
	if err != nil {
		return nil, invalid(err)
	}
	if err := sb.ensureDirs(path.Dir(to), u); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	if err := sb.fs.rename(from, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("source file not found: %w", err))
		}
		return nil, internal("error renaming", err)
	}
	e, err := sb.entry(to)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.MoveResponse{Entry: e}), nil
}

func (sb *sandbox) listDir(ctx context.Context, req *connect.Request[pb.ListDirRequest]) (*connect.Response[pb.ListDirResponse], error) {
	depth := int(req.Msg.GetDepth())
	if depth == 0 {
		depth = 1
	}
	p, _, err := pathOf(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	info, err := sb.fs.stat(p)
	if err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("path not found: %w", err))
		case errors.Is(err, syscall.ELOOP):
			return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("cyclic symlink or chain >255 links at %q", p))
		}
		return nil, internal("error resolving symlink", err)
	}
	if !info.IsDir() {
		return nil, invalid(fmt.Errorf("path is not a directory: %s", p))
	}
	entries, err := sb.walk(path.Clean(p), depth)
	if err != nil {
		return nil, internal("error reading directory "+p, err)
	}
	return connect.NewResponse(&pb.ListDirResponse{Entries: entries}), nil
}

// walk lists a folder to a depth, parents before children, links not followed.
func (sb *sandbox) walk(p string, depth int) ([]*pb.EntryInfo, error) {
	dir, err := sb.fs.open(p, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	names, err := fs.ReadDirFile(dir).ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return nil, err
	}
	sortByName(names)
	var entries []*pb.EntryInfo
	for _, d := range names {
		child := path.Join(p, d.Name())
		e, err := sb.entry(child)
		if err != nil {
			continue // Removed while we looked.
		}
		entries = append(entries, e)
		if d.IsDir() && depth > 1 {
			below, err := sb.walk(child, depth-1)
			if err != nil {
				return nil, err
			}
			entries = append(entries, below...)
		}
	}
	return entries, nil
}

func sortByName(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

func (sb *sandbox) remove(ctx context.Context, req *connect.Request[pb.RemoveRequest]) (*connect.Response[pb.RemoveResponse], error) {
	p, _, err := pathOf(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if err := sb.fs.removeAll(p); err != nil {
		return nil, internal("error removing file or directory", err)
	}
	return connect.NewResponse(&pb.RemoveResponse{}), nil
}
