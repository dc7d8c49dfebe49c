// Package envd reads and writes the RPC of E2B's in-sandbox daemon: Connect
// framing, the messages of its process and filesystem services, what in them a
// guard must see, the limits put on a process, and its response streams.
//
// Facts of the protocol are envd's: its .proto files (field names and numbers)
// and connect-go, the library it is built on.
package envd

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate --template proto/buf.gen.yaml proto

import (
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// Kind is how a method's messages flow.
type Kind uint8

// The kinds.
const (
	Unary Kind = iota + 1
	ServerStream
	ClientStream
)

// Method is one RPC of envd.
type Method struct {
	// Path is the request path: "/process.Process/Start".
	Path string
	Kind Kind

	newRequest  func() proto.Message
	newResponse func() proto.Message
}

// Methods returns every RPC of envd, in the order of the protocol.
func Methods() []Method { return append([]Method(nil), methods...) }

// MethodFor returns the RPC of a decoded request path.
func MethodFor(path string) (Method, bool) {
	for _, m := range methods {
		if m.Path == path {
			return m, true
		}
	}
	return Method{}, false
}

var methods = []Method{
	method[processpb.ListRequest, processpb.ListResponse]("/process.Process/List", Unary),
	method[processpb.StartRequest, processpb.StartResponse]("/process.Process/Start", ServerStream),
	method[processpb.ConnectRequest, processpb.ConnectResponse]("/process.Process/Connect", ServerStream),
	method[processpb.UpdateRequest, processpb.UpdateResponse]("/process.Process/Update", Unary),
	method[processpb.StreamInputRequest, processpb.StreamInputResponse]("/process.Process/StreamInput", ClientStream),
	method[processpb.SendInputRequest, processpb.SendInputResponse]("/process.Process/SendInput", Unary),
	method[processpb.SendSignalRequest, processpb.SendSignalResponse]("/process.Process/SendSignal", Unary),
	method[processpb.CloseStdinRequest, processpb.CloseStdinResponse]("/process.Process/CloseStdin", Unary),
	method[filesystempb.StatRequest, filesystempb.StatResponse]("/filesystem.Filesystem/Stat", Unary),
	method[filesystempb.ListDirRequest, filesystempb.ListDirResponse]("/filesystem.Filesystem/ListDir", Unary),
	method[filesystempb.MakeDirRequest, filesystempb.MakeDirResponse]("/filesystem.Filesystem/MakeDir", Unary),
	method[filesystempb.MoveRequest, filesystempb.MoveResponse]("/filesystem.Filesystem/Move", Unary),
	method[filesystempb.RemoveRequest, filesystempb.RemoveResponse]("/filesystem.Filesystem/Remove", Unary),
	method[filesystempb.WatchDirRequest, filesystempb.WatchDirResponse]("/filesystem.Filesystem/WatchDir", ServerStream),
	method[filesystempb.CreateWatcherRequest, filesystempb.CreateWatcherResponse]("/filesystem.Filesystem/CreateWatcher", Unary),
	method[filesystempb.GetWatcherEventsRequest, filesystempb.GetWatcherEventsResponse]("/filesystem.Filesystem/GetWatcherEvents", Unary),
	method[filesystempb.RemoveWatcherRequest, filesystempb.RemoveWatcherResponse]("/filesystem.Filesystem/RemoveWatcher", Unary),
}

// message ties a generated struct to the proto.Message its pointer is.
type message[T any] interface {
	*T
	proto.Message
}

func method[Req, Resp any, PReq message[Req], PResp message[Resp]](path string, kind Kind) Method {
	return Method{
		Path:        path,
		Kind:        kind,
		newRequest:  func() proto.Message { return PReq(new(Req)) },
		newResponse: func() proto.Message { return PResp(new(Resp)) },
	}
}
