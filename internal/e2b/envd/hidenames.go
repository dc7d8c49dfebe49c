package envd

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// answers of procedures that tell of files.
var answers = map[string]func() proto.Message{
	"/filesystem.Filesystem/Stat":             func() proto.Message { return new(filesystempb.StatResponse) },
	"/filesystem.Filesystem/ListDir":          func() proto.Message { return new(filesystempb.ListDirResponse) },
	"/filesystem.Filesystem/MakeDir":          func() proto.Message { return new(filesystempb.MakeDirResponse) },
	"/filesystem.Filesystem/Move":             func() proto.Message { return new(filesystempb.MoveResponse) },
	"/filesystem.Filesystem/GetWatcherEvents": func() proto.Message { return new(filesystempb.GetWatcherEventsResponse) },
}

// HideNames takes secrets out of the names in the answer of a unary procedure: a
// command can give a file any name, and a link any target. It edits the headers to
// match; a body in which nothing changes is returned as it came.
func HideNames(procedure string, h http.Header, body io.Reader, maxBytes int64, secrets *redact.Set) ([]byte, error) {
	raw, err := readCapped(body, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	var codec Codec
	switch base, _, _ := mime.ParseMediaType(h.Get(headerContentType)); base {
	case "application/json":
		codec = JSON
	case "application/proto":
		codec = Proto
	default:
		return raw, nil // an error page of something on the way
	}
	answer, known := answers[procedure]
	if !known {
		return raw, nil
	}
	payload, err := readBare(bytes.NewReader(raw), h.Get(headerContentEncoding) == "gzip", maxBytes)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	if secrets.Replace(string(payload)) == string(payload) {
		return raw, nil
	}
	m := answer()
	unknown, err := unmarshal(codec, payload, m)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	if !hideStrings(m.ProtoReflect(), secrets) {
		return raw, nil
	}
	h.Del(headerContentEncoding)
	h.Del("Content-Length")
	return marshal(codec, m, unknown)
}

// hideStrings takes secrets out of all texts of a message, and reports whether there
// were any.
func hideStrings(m protoreflect.Message, secrets *redact.Set) (changed bool) {
	hide := func(v protoreflect.Value) protoreflect.Value {
		clean := secrets.Replace(v.String())
		changed = changed || clean != v.String()
		return protoreflect.ValueOfString(clean)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v2 protoreflect.Value) bool {
				if f.MapValue().Kind() == protoreflect.StringKind {
					v.Map().Set(k, hide(v2))
				}
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				switch f.Kind() {
				case protoreflect.StringKind:
					v.List().Set(i, hide(v.List().Get(i)))
				case protoreflect.MessageKind:
					changed = hideStrings(v.List().Get(i).Message(), secrets) || changed
				}
			}
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, hide(v))
		case f.Kind() == protoreflect.MessageKind:
			changed = hideStrings(v.Message(), secrets) || changed
		}
		return true
	})
	return changed
}
