package envd

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// countFields counts the fields of an encoded message, those of its messages
// too, down from left; false says that there are more. A field of two bytes takes
// a hundred once it is decoded, so a few megabytes could take gigabytes. What is
// broken is left to the decoder.
func countFields(b []byte, d protoreflect.MessageDescriptor, left *int) bool {
	for len(b) > 0 {
		if *left--; *left < 0 {
			return false
		}
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return true
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(number, kind, b)
		if size < 0 {
			return true
		}
		if field := d.Fields().ByNumber(number); kind == protowire.BytesType && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(b)
			if !countFields(inner, field.Message(), left) {
				return false
			}
		}
		b = b[size:]
	}
	return true
}
