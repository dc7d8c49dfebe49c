package envd

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
)

// frameKind is what a response frame carries, as far as the filter cares.
type frameKind uint8

const (
	frameOther frameKind = iota
	frameStart
	frameEnd
	frameOutput
)

// peeked is what a frame's beginning tells.
type peeked struct {
	kind frameKind
	// size is how many bytes of output the frame holds, decoded.
	size int64
	to   relay.Output
	// data is the output as the codec writes it; nil if it is not all there.
	data []byte
}

// peek tells a frame's kind and, of output, how many bytes it holds decoded,
// without decoding it. payload may be only the beginning of a frame of size
// bytes. A compressed frame, which envd does not send unasked, counts as output
// of its own size.
func peek(c Codec, flags byte, payload []byte, size int64) peeked {
	switch {
	case flags&flagCompressed != 0:
		return peeked{kind: frameOutput, size: size, to: relay.Stdout}
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
	fieldDataStderr    = 2
	fieldDataPTY       = 3
)

func peekProto(b []byte) peeked {
	num, event, ok := protoField(b)
	if !ok || num != fieldResponseEvent {
		return peeked{}
	}
	num, data, ok := protoField(event)
	if !ok {
		return peeked{}
	}
	switch num {
	case fieldEventStart:
		return peeked{kind: frameStart}
	case fieldEventEnd:
		return peeked{kind: frameEnd}
	case fieldEventData:
		// The output's own field: its length stands before its bytes.
		field, typ, n := protowire.ConsumeTag(data)
		if n <= 0 || typ != protowire.BytesType {
			return peeked{}
		}
		size, k := protowire.ConsumeVarint(data[n:])
		if k <= 0 || size >= 1<<32 {
			return peeked{}
		}
		p := peeked{kind: frameOutput, size: int64(size), to: relay.Stdout}
		switch field {
		case fieldDataStderr:
			p.to = relay.Stderr
		case fieldDataPTY:
			p.to = relay.PTY
		}
		if text := data[n+k:]; uint64(len(text)) >= size {
			p.data = text[:size]
		}
		return p
	default:
		return peeked{}
	}
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
func peekJSON(b []byte, size int64) peeked {
	given := int64(len(b))
	key, b := jsonMember(b)
	if string(key) != "event" {
		return peeked{}
	}
	key, b = jsonMember(b)
	switch string(key) {
	case "start":
		return peeked{kind: frameStart}
	case "end":
		return peeked{kind: frameEnd}
	case "data":
	default:
		return peeked{}
	}
	key, b = jsonMember(b)
	if len(b) == 0 || b[0] != '"' {
		return peeked{}
	}
	b = b[1:]
	p := peeked{kind: frameOutput, to: relay.Stdout}
	switch string(key) {
	case "stderr":
		p.to = relay.Stderr
	case "pty":
		p.to = relay.PTY
	}
	if given < size {
		// Three brackets follow the value: the estimate is a few bytes high.
		p.size = (size - given + int64(len(b))) / 4 * 3
		return p
	}
	n := bytes.IndexByte(b, '"')
	if n < 0 {
		return peeked{}
	}
	p.data = b[:n]
	p.size = int64(len(bytes.TrimRight(b[:n], "="))) * 3 / 4
	return p
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

// WallClockReason tells that the wall clock of policy has ended a process.
func WallClockReason(limit time.Duration) string {
	return "The process ran for " + limit.String() + ", as long as policy lets it, and was stopped. Raising the client's timeout does not help: " +
		"do less in one command, or split the work."
}
