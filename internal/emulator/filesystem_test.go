package emulator

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	fspb "github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
)

const fsService = "/filesystem.Filesystem/"

func (b box) mkdir(path string) (*fspb.EntryInfo, error) {
	res, err := unary[fspb.MakeDirRequest, fspb.MakeDirResponse](b, fsService+"MakeDir", &fspb.MakeDirRequest{Path: path})
	return res.GetEntry(), err
}

func (b box) list(path string, depth uint32) ([]*fspb.EntryInfo, error) {
	res, err := unary[fspb.ListDirRequest, fspb.ListDirResponse](b, fsService+"ListDir", &fspb.ListDirRequest{Path: path, Depth: depth})
	return res.GetEntries(), err
}

func TestFilesystemCalls(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	made, err := b.mkdir("a/b")
	require.NoError(t, err)
	require.Equal(t, "/home/user/a/b", made.GetPath())
	require.Equal(t, fspb.FileType_FILE_TYPE_DIRECTORY, made.GetType())
	require.Equal(t, "user", made.GetOwner())
	require.Equal(t, "drwxr-xr-x", made.GetPermissions())
	_, err = b.mkdir("a/b")
	require.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))

	b.run("echo text > a/f; ln -s f a/l; ln -s nowhere a/broken; echo '#' > a/b/deep")
	_, err = b.mkdir("a/f")
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = b.mkdir("a/f/x")
	require.Equal(t, connect.CodeInternal, connect.CodeOf(err))
	require.ErrorContains(t, err, "not a directory")

	entries, err := b.list("a", 2)
	require.NoError(t, err)
	got := map[string]fspb.FileType{}
	for _, e := range entries {
		got[e.GetPath()] = e.GetType()
	}
	require.Equal(t, map[string]fspb.FileType{
		"/home/user/a/b": fspb.FileType_FILE_TYPE_DIRECTORY, "/home/user/a/b/deep": fspb.FileType_FILE_TYPE_FILE,
		"/home/user/a/f": fspb.FileType_FILE_TYPE_FILE, "/home/user/a/l": fspb.FileType_FILE_TYPE_FILE,
		"/home/user/a/broken": fspb.FileType_FILE_TYPE_UNSPECIFIED,
	}, got)
	flat, err := b.list("a", 0)
	require.NoError(t, err)
	require.Len(t, flat, 4)
	_, err = b.list("a/f", 1)
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = b.list("nowhere", 1)
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))

	link, err := b.stat("a/l")
	require.NoError(t, err)
	require.Equal(t, "/home/user/a/f", link.GetSymlinkTarget())
	file, err := b.stat("/home/user/a/../a/f")
	require.NoError(t, err)
	require.EqualValues(t, 5, file.GetSize())
	require.Equal(t, "/home/user/a/../a/f", file.GetPath(), "an absolute path is given back as it came")
	_, err = b.stat("zz")
	require.EqualError(t, err, "not_found: file not found: lstat /home/user/zz: no such file or directory")

	moved, err := unary[fspb.MoveRequest, fspb.MoveResponse](b, fsService+"Move", &fspb.MoveRequest{Source: "a/f", Destination: "~/new/place"})
	require.NoError(t, err)
	require.Equal(t, "/home/user/new/place", moved.GetEntry().GetPath())
	_, err = unary[fspb.MoveRequest, fspb.MoveResponse](b, fsService+"Move", &fspb.MoveRequest{Source: "a/f", Destination: "x"})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = unary[fspb.MoveRequest, fspb.MoveResponse](b, fsService+"Move", &fspb.MoveRequest{Source: "~other/f", Destination: "x"})
	require.ErrorContains(t, err, "cannot expand user-specific home dir")

	for range 2 { // Removing what is not there is no error.
		_, err = unary[fspb.RemoveRequest, fspb.RemoveResponse](b, fsService+"Remove", &fspb.RemoveRequest{Path: "a"})
		require.NoError(t, err)
	}
	_, err = b.stat("a")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

func TestRootHasItsOwnHome(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	res, err := unary[fspb.MakeDirRequest, fspb.MakeDirResponse](b, fsService+"MakeDir", &fspb.MakeDirRequest{Path: "d"}, "Authorization", "Basic cm9vdDppZ25vcmVk")
	require.NoError(t, err)
	require.Equal(t, "/root/d", res.GetEntry().GetPath())
	require.Equal(t, "root", res.GetEntry().GetOwner())
}

func TestWatchDirStreamsEvents(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	client := connect.NewClient[fspb.WatchDirRequest, fspb.WatchDirResponse](b.client, b.url+fsService+"WatchDir", connect.WithProtoJSON())
	stream, err := client.CallServerStream(t.Context(), address(b, &fspb.WatchDirRequest{Path: "/home/user", Recursive: true, IncludeEntry: true}))
	require.NoError(t, err)
	defer stream.Close()
	require.True(t, stream.Receive(), "%v", stream.Err())
	require.NotNil(t, stream.Msg().GetStart())
	b.run("mkdir d")
	next := func(name string, kind fspb.EventType) *fspb.FilesystemEvent {
		t.Helper()
		for stream.Receive() {
			e := stream.Msg().GetFilesystem()
			if e.GetName() == name && e.GetType() == kind {
				return e
			}
		}
		t.Fatalf("the stream ended: %v", stream.Err())
		return nil
	}
	require.Equal(t, "/home/user/d", next("d", fspb.EventType_EVENT_TYPE_CREATE).GetEntry().GetPath())
	b.run("echo x > d/f; mv d/f d/g; rm d/g")
	next("d/f", fspb.EventType_EVENT_TYPE_CREATE)
	require.Nil(t, next("d/f", fspb.EventType_EVENT_TYPE_RENAME).GetEntry())
	next("d/g", fspb.EventType_EVENT_TYPE_REMOVE)
	require.True(t, b.e.kill(b.id))
	for stream.Receive() {
		require.NotNil(t, stream.Msg())
	}
	require.Error(t, stream.Err(), "the end of the sandbox ends the stream")
}

func TestPolledWatchers(t *testing.T) {
	b := newLab(t, Options{}).newBox()
	made, err := unary[fspb.CreateWatcherRequest, fspb.CreateWatcherResponse](b, fsService+"CreateWatcher", &fspb.CreateWatcherRequest{Path: "."})
	require.NoError(t, err)
	id := made.GetWatcherId()
	b.run("echo x > w.txt")
	var names []string
	require.Eventually(t, func() bool {
		res, err := unary[fspb.GetWatcherEventsRequest, fspb.GetWatcherEventsResponse](b, fsService+"GetWatcherEvents", &fspb.GetWatcherEventsRequest{WatcherId: id})
		require.NoError(t, err)
		for _, e := range res.GetEvents() {
			names = append(names, e.GetName()+" "+e.GetType().String())
		}
		return len(names) >= 2
	}, soon, tick)
	require.Equal(t, []string{"w.txt EVENT_TYPE_CREATE", "w.txt EVENT_TYPE_WRITE"}, names[:2])
	_, err = unary[fspb.RemoveWatcherRequest, fspb.RemoveWatcherResponse](b, fsService+"RemoveWatcher", &fspb.RemoveWatcherRequest{WatcherId: id})
	require.NoError(t, err)
	_, err = unary[fspb.GetWatcherEventsRequest, fspb.GetWatcherEventsResponse](b, fsService+"GetWatcherEvents", &fspb.GetWatcherEventsRequest{WatcherId: id})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = unary[fspb.CreateWatcherRequest, fspb.CreateWatcherResponse](b, fsService+"CreateWatcher", &fspb.CreateWatcherRequest{Path: "nowhere"})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = unary[fspb.CreateWatcherRequest, fspb.CreateWatcherResponse](b, fsService+"CreateWatcher", &fspb.CreateWatcherRequest{Path: "w.txt"})
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
}
