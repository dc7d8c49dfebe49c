package envd

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// Message is one decoded request. Proto may be edited before Encode; what is not
// known here, unknown fields and JSON keys, survives.
type Message struct {
	Method   Method
	Encoding Encoding
	Proto    proto.Message
	// MovedText is the text of the file that a move moves; nil if it is not known.
	MovedText *string

	// unknown is the JSON the client sent, where it has keys not known here.
	unknown *strictjson.Object
}

// Decode reads the whole request body (already size-capped by the caller) the
// way envd would; paths are made canonical. maxBytes bounds the message before and after decompression.
// An error of body itself that is a *refusal.Refusal is returned as it is.
func Decode(m Method, enc Encoding, body io.Reader, maxBytes int64) (*Message, *refusal.Refusal) {
	if m.Kind == ClientStream {
		return nil, unsupported("This procedure takes a stream of messages: see InputStream.")
	}
	read := readBare
	if enc.Stream {
		read = readUnaryStream
	}
	payload, err := read(body, enc.Gzip, maxBytes)
	if err != nil {
		return nil, refuseBody(m, err)
	}
	msg := &Message{Method: m, Encoding: enc, Proto: m.newRequest()}
	if len(payload) == 0 && enc.Stream {
		return msg, nil // An empty frame is the empty message, in either codec.
	}
	if msg.unknown, err = unmarshal(enc.Codec, payload, msg.Proto); err != nil {
		return nil, refuseBody(m, err)
	}
	canonicalPaths(msg.Proto)
	return msg, nil
}

// refuseBody turns a reading error into the answer for the client.
func refuseBody(m Method, err error) *refusal.Refusal {
	var r *refusal.Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, errTooLarge):
		r = refusal.New(refusal.CodeTooLarge, "The request of "+m.Path+" is larger than this gateway reads. Send less in one call; write large data to a file first.")
	default:
		r = invalid("The request of " + m.Path + " cannot be decoded, so nothing was run: " + err.Error() + ".")
	}
	r.Err = err
	return r
}

// Encode writes the message as one canonical, uncompressed body.
func (m *Message) Encode() ([]byte, error) {
	payload, err := marshal(m.Encoding.Codec, m.Proto, m.unknown)
	if err != nil {
		return nil, err
	}
	if !m.Encoding.Stream {
		return payload, nil
	}
	return appendFrame(make([]byte, 0, frameHeader+len(payload)), 0, payload), nil
}

// position is where protojson says that a value is wrong.
var position = regexp.MustCompile(`\(line \d+:\d+\)`)

// unmarshal reads a message with the options connect-go reads it with. For JSON
// it returns the value itself if that has keys the message does not know.
func unmarshal(c Codec, payload []byte, into proto.Message) (*strictjson.Object, error) {
	if c == Proto {
		if left := strictjson.MaxValues; !countFields(payload, into.ProtoReflect().Descriptor(), &left) {
			return nil, fmt.Errorf("reading protobuf: the message has more than %d fields; send fewer", strictjson.MaxValues)
		}
		if err := proto.Unmarshal(payload, into); err != nil {
			return nil, fmt.Errorf("reading protobuf: %w", err)
		}
		return nil, nil
	}
	if len(payload) == 0 {
		return nil, errors.New("reading JSON: the body is empty")
	}
	// protojson skips over unknown values more leniently than it reads known
	// ones; the strict reader looks at all of it, and tells what is wrong without
	// quoting values, which may be secrets.
	tree, err := strictjson.DecodeObject(payload)
	if err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(payload, into); err != nil {
		return nil, fmt.Errorf("reading JSON: a value is not of its field's type %s", position.FindString(err.Error()))
	}
	if !hasUnknown(tree, into.ProtoReflect().Descriptor()) {
		return nil, nil
	}
	return tree, nil
}

// marshal is the inverse of unmarshal.
func marshal(c Codec, m proto.Message, unknown *strictjson.Object) ([]byte, error) {
	if c == Proto {
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	b, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	// protojson puts in spaces at random; the canonical body is compact.
	tree, err := strictjson.DecodeObject(b)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	if unknown != nil {
		addUnknown(tree, unknown, m.ProtoReflect().Descriptor())
	}
	return strictjson.Encode(tree), nil
}

// field finds the field of a JSON key, by either of the names protojson reads.
func field(d protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByJSONName(key); f != nil {
		return f
	}
	return d.Fields().ByTextName(key)
}

func hasUnknown(o *strictjson.Object, d protoreflect.MessageDescriptor) bool {
	for _, key := range o.Keys() {
		f := field(d, key)
		if f == nil {
			return true
		}
		v, _ := o.Get(key)
		for _, child := range children(f, v) {
			if hasUnknown(child, f.Message()) {
				return true
			}
		}
	}
	return false
}

// addUnknown copies the keys of from that d does not know into to, the same
// message written canonically.
func addUnknown(to, from *strictjson.Object, d protoreflect.MessageDescriptor) {
	for _, key := range from.Keys() {
		v, _ := from.Get(key)
		f := field(d, key)
		if f == nil {
			to.Set(key, v)
			continue
		}
		written, _ := to.Get(f.JSONName())
		src, dst := children(f, v), children(f, written)
		if len(src) != len(dst) {
			continue // The message was edited: its old parts have no place.
		}
		for i := range src {
			addUnknown(dst[i], src[i], f.Message())
		}
	}
}

// children are the objects in a field's JSON value that are messages.
func children(f protoreflect.FieldDescriptor, v any) []*strictjson.Object {
	if f.Message() == nil || f.IsMap() {
		return nil
	}
	switch v := v.(type) {
	case *strictjson.Object:
		return []*strictjson.Object{v}
	case []any:
		out := make([]*strictjson.Object, 0, len(v))
		for _, e := range v {
			if o, ok := e.(*strictjson.Object); ok {
				out = append(out, o)
			}
		}
		return out
	default:
		return nil
	}
}

// Environment is the variables that the message gives a process.
func (m *Message) Environment() map[string]string {
	if start, ok := m.Proto.(*processpb.StartRequest); ok {
		return start.GetProcess().GetEnvs()
	}
	return nil
}

// Words are the words of the command that the message starts.
func (m *Message) Words() []string {
	if start, ok := m.Proto.(*processpb.StartRequest); ok {
		return start.GetProcess().GetArgs()
	}
	return nil
}
