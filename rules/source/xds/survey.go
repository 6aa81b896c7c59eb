package xds

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxMessages is how many messages a response may contain, resources and descriptors together.
	// A message of two bytes on the wire takes a hundred times that in memory.
	maxMessages = 200_000
	// maxLevels is how deep descriptors may be nested. The text of rules has two levels of
	// indentation for each.
	maxLevels = 30
)

// survey counts the messages in wire format before they are decoded.
type survey struct{ messages int }

// message counts the messages in b, which is of type d, and returns an error if they are more than
// maxMessages, are nested deeper than maxLevels, or b is malformed.
func (s *survey) message(b []byte, d protoreflect.MessageDescriptor, level int) error {
	if level > maxLevels {
		return fmt.Errorf("more than %d levels of messages, one inside of the other", maxLevels)
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("not a protobuf message: %w", protowire.ParseError(n))
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return fmt.Errorf("not a protobuf message: %w", protowire.ParseError(n))
		}
		if f := d.Fields().ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			if s.messages++; s.messages > maxMessages {
				return fmt.Errorf("more than %d messages inside of one", maxMessages)
			}
			inner, _ := protowire.ConsumeBytes(b)
			if err := s.message(inner, f.Message(), level+1); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}
