package envd

import (
	"encoding/base64"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/relay"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// hider takes secrets out of the output of one process: see redact.Stream.
type hider struct {
	codec   Codec
	set     *redact.Set
	streams [relay.PTY + 1]*redact.Stream
	decoded []byte
	frames  []byte // what it returned last, never nil
}

// Hide replaces the secrets of a set in what the process writes, and in the error
// that ends the stream. It must be called before the first Read.
func (f *StreamFilter) Hide(set *redact.Set) {
	if set.Empty() {
		return
	}
	f.hider = &hider{codec: f.codec, set: set, frames: []byte{}}
	for to := range f.hider.streams {
		f.hider.streams[to] = redact.NewStream(set)
	}
}

// output returns what may be shown of a frame's output, and the frame in the place
// of this one if that is less or something else: an empty one if there is nothing
// to show yet. It fails for output that cannot be read.
func (h *hider) output(p peeked) (shown, instead []byte, ok bool) {
	data := p.data
	if h.codec == JSON && data != nil {
		need := base64.StdEncoding.DecodedLen(len(data))
		if cap(h.decoded) < need {
			h.decoded = make([]byte, need)
		}
		n, err := base64.StdEncoding.Decode(h.decoded[:need], data)
		if err != nil {
			return nil, nil, false
		}
		data = h.decoded[:n]
	}
	if data == nil && p.size > 0 {
		return nil, nil, false
	}
	shown, changed := h.streams[p.to].Next(data)
	if !changed {
		return shown, nil, true
	}
	h.frames = h.frames[:0]
	if len(shown) > 0 {
		h.frames = h.appendOutput(h.frames, p.to, shown)
	}
	return shown, h.frames, true
}

// held returns the frames of what is held back, when no more will come; nil if
// nothing is.
func (h *hider) held(observe func(relay.Output, []byte)) []byte {
	var frames []byte
	for to := relay.Stdout; to <= relay.PTY; to++ {
		if rest := h.streams[to].End(); len(rest) > 0 {
			observe(to, rest)
			frames = h.appendOutput(frames, to, rest)
		}
	}
	return frames
}

func (h *hider) appendOutput(frames []byte, to relay.Output, data []byte) []byte {
	event := &processpb.ProcessEvent_DataEvent{}
	switch to {
	case relay.Stderr:
		event.Output = &processpb.ProcessEvent_DataEvent_Stderr{Stderr: data}
	case relay.PTY:
		event.Output = &processpb.ProcessEvent_DataEvent_Pty{Pty: data}
	default:
		event.Output = &processpb.ProcessEvent_DataEvent_Stdout{Stdout: data}
	}
	m := &processpb.StartResponse{Event: &processpb.ProcessEvent{Event: &processpb.ProcessEvent_Data{Data: event}}}
	payload, err := marshal(h.codec, m, nil)
	if err != nil {
		panic(err) // only for invalid UTF-8 in a string field; it has none
	}
	return appendFrame(frames, 0, payload)
}
