package envd

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// frameKind is what a response frame carries, as far as the filter cares.
type frameKind uint8

const (
	frameOther frameKind = iota
	frameStart
	frameEnd
	frameOutput
)

// peek tells a frame's kind and, of output, how many bytes it holds decoded,
// without decoding it. payload may be only the beginning of a frame of size
// bytes. A compressed frame, which envd does not send unasked, counts as output
// of its own size.
func peek(c Codec, flags byte, payload []byte, size int64) (frameKind, int64) {
	switch {
	case flags&flagCompressed != 0:
		return frameOutput, size
	case c == Proto:
		return peekProto(payload)
	default:
		return peekJSON(payload, size)
	}
}

// Field numbers of the process service's messages.
const (
	fieldResponseEvent = 1 // StartResponse.event, ConnectResponse.event
	fieldEventStart    = 1
	fieldEventData     = 2
	fieldEventEnd      = 3
)

func peekProto(b []byte) (frameKind, int64) {
	num, event, ok := protoField(b)
	if !ok || num != fieldResponseEvent {
		return frameOther, 0
	}
	num, data, ok := protoField(event)
	if !ok {
		return frameOther, 0
	}
	switch num {
	case fieldEventStart:
		return frameStart, 0
	case fieldEventEnd:
		return frameEnd, 0
	case fieldEventData:
		// The output's own field: its length stands before its bytes.
		if _, typ, n := protowire.ConsumeTag(data); n > 0 && typ == protowire.BytesType {
			if size, k := protowire.ConsumeVarint(data[n:]); k > 0 && size < 1<<32 {
				return frameOutput, int64(size)
			}
		}
	}
	return frameOther, 0
}

// protoField returns the first field of a message, a message itself, of which b
// may hold only the beginning.
func protoField(b []byte) (protowire.Number, []byte, bool) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 || typ != protowire.BytesType {
		return 0, nil, false
	}
	size, k := protowire.ConsumeVarint(b[n:])
	if k < 0 {
		return 0, nil, false
	}
	b = b[n+k:]
	return num, b[:min(uint64(len(b)), size)], true
}

// peekJSON walks {"event":{"data":{"stdout":"<base64>"}}}, whose objects have
// one member each.
func peekJSON(b []byte, size int64) (frameKind, int64) {
	given := int64(len(b))
	key, b := jsonMember(b)
	if string(key) != "event" {
		return frameOther, 0
	}
	key, b = jsonMember(b)
	switch string(key) {
	case "start":
		return frameStart, 0
	case "end":
		return frameEnd, 0
	case "data":
	default:
		return frameOther, 0
	}
	_, b = jsonMember(b)
	if len(b) == 0 || b[0] != '"' {
		return frameOther, 0
	}
	b = b[1:]
	if given < size {
		// Three brackets follow the value: the estimate is a few bytes high.
		return frameOutput, (size - given + int64(len(b))) / 4 * 3
	}
	n := bytes.IndexByte(b, '"')
	if n < 0 {
		return frameOther, 0
	}
	return frameOutput, int64(len(bytes.TrimRight(b[:n], "="))) * 3 / 4
}

// jsonMember returns the first key of an object and what follows its colon; no
// key if b does not begin with one.
func jsonMember(b []byte) (key, value []byte) {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return nil, nil
	}
	b = skipSpace(b[1:])
	if len(b) == 0 || b[0] != '"' {
		return nil, nil
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 {
		return nil, nil
	}
	key = b[1 : 1+end]
	b = skipSpace(b[end+2:])
	if len(b) == 0 || b[0] != ':' {
		return nil, nil
	}
	return key, skipSpace(b[1:])
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// lifeEvent decodes a start or end event. Connect's responses have the shape of
// Start's.
func lifeEvent(c Codec, payload []byte) (Event, bool) {
	var m processpb.StartResponse
	if _, err := unmarshal(c, payload, &m); err != nil {
		return Event{}, false
	}
	switch e := m.GetEvent().GetEvent().(type) {
	case *processpb.ProcessEvent_Start:
		return Event{Kind: EventStart, PID: e.Start.GetPid()}, true
	case *processpb.ProcessEvent_End:
		return Event{Kind: EventEnd, ExitCode: e.End.GetExitCode(), Status: e.End.GetStatus()}, true
	default:
		return Event{}, false
	}
}

func endStreamEvent(payload []byte) Event {
	var end struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	// A frame that cannot be read is passed on all the same: it is the client's
	// to complain about.
	_ = json.Unmarshal(payload, &end)
	return Event{Kind: EventEndStream, Code: end.Error.Code, Message: end.Error.Message}
}

func outputLimitReason(limit int64) string {
	return "The output limit of " + strconv.FormatInt(limit, 10) + " bytes was passed, so the stream was ended and the process is being stopped. " +
		"Write large output to a file in the sandbox and read the part you need."
}

func wallClockReason(limit time.Duration) string {
	return "The process ran for " + limit.String() + ", as long as policy lets it, and was stopped. Raising the client's timeout does not help: " +
		"do less in one command, or split the work."
}
