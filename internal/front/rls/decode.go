package rls

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"tidegate.dev/tidegate/rules/envoy"
)

// Numbers of the fields of a request, and of its parts.
const (
	requestDomain      = 1
	requestDescriptors = 2
	requestHits        = 3

	descriptorEntries  = 1
	descriptorLimit    = 2
	descriptorHits     = 3
	descriptorNegative = 4

	entryKey   = 1
	entryValue = 2

	limitRequests   = 1
	limitUnit       = 2
	limitMultiplier = 3

	wrappedValue = 1
)

var (
	errMalformed = invalid("the message is not a RateLimitRequest")
	errNotUTF8   = invalid("a text of the message is not valid UTF-8")
)

// decode reads a RateLimitRequest as protobuf encodes it, like proto.Unmarshal and read do,
// but without an object for every part. Texts refer to message, which must stay as it is until
// reset. More descriptors, or entries of one, than check allows are an error at once.
func (c *call) decode(message []byte) error {
	c.message = message
	var f field
	for len(message) > 0 {
		if message = f.read(message); message == nil {
			return errMalformed
		}
		var err error
		switch {
		case f.number == requestDomain && f.kind == protowire.BytesType:
			c.domain, err = f.text()
		case f.number == requestDescriptors && f.kind == protowire.BytesType:
			err = c.decodeDescriptor(f.bytes)
		case f.number == requestHits && f.kind == protowire.VarintType:
			c.hits = uint32(f.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) decodeDescriptor(message []byte) error {
	if len(c.descriptors) >= MaxDescriptors {
		return invalid("there are more than %d descriptors", MaxDescriptors)
	}
	c.descriptors = append(c.descriptors, descriptor{})
	d := &c.descriptors[len(c.descriptors)-1]
	from := len(c.entries)
	var f field
	for len(message) > 0 {
		if message = f.read(message); message == nil {
			return errMalformed
		}
		var err error
		switch {
		case f.number == descriptorEntries && f.kind == protowire.BytesType:
			if len(c.entries)-from >= MaxEntries {
				return invalid("descriptor %d has more than %d entries", len(c.descriptors)-1, MaxEntries)
			}
			var e envoy.Entry
			e, err = decodeEntry(f.bytes)
			c.entries = append(c.entries, e)
		case f.number == descriptorLimit && f.kind == protowire.BytesType:
			err = d.limit.decode(f.bytes)
		case f.number == descriptorHits && f.kind == protowire.BytesType:
			d.hitsSet = true
			err = decodeWrapped(f.bytes, &d.hits)
		case f.number == descriptorNegative && f.kind == protowire.VarintType:
			d.negative = f.value != 0
		}
		if err != nil {
			return err
		}
	}
	d.entries = c.entries[from:len(c.entries):len(c.entries)] // stays valid when entries grow: the old memory is kept by it
	return nil
}

func decodeEntry(message []byte) (e envoy.Entry, err error) {
	var f field
	for len(message) > 0 {
		if message = f.read(message); message == nil {
			return e, errMalformed
		}
		switch {
		case f.number == entryKey && f.kind == protowire.BytesType:
			e.Key, err = f.text()
		case f.number == entryValue && f.kind == protowire.BytesType:
			e.Value, err = f.text()
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// decode reads a message. A field that it lacks keeps what an earlier message has set, as protobuf
// merges them.
func (o *override) decode(message []byte) error {
	o.set = true
	var f field
	for len(message) > 0 {
		if message = f.read(message); message == nil {
			return errMalformed
		}
		switch {
		case f.number == limitRequests && f.kind == protowire.VarintType:
			o.requests = uint32(f.value)
		case f.number == limitUnit && f.kind == protowire.VarintType:
			o.unit = int32(f.value)
		case f.number == limitMultiplier && f.kind == protowire.BytesType:
			var ignored uint64 // as envoyproxy/ratelimit does
			if err := decodeWrapped(f.bytes, &ignored); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeWrapped reads a message that wraps a number; if the number is missing, to stays as it is.
func decodeWrapped(message []byte, to *uint64) error {
	var f field
	for len(message) > 0 {
		if message = f.read(message); message == nil {
			return errMalformed
		}
		if f.number == wrappedValue && f.kind == protowire.VarintType {
			*to = f.value
		}
	}
	return nil
}

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64 // of a varint
	bytes  []byte // of a text or message
}

// read takes the first field of a message and returns the rest, nil if it is malformed.
func (f *field) read(message []byte) []byte {
	var n int
	f.number, f.kind, n = protowire.ConsumeTag(message)
	if n < 0 || f.number > protowire.MaxValidNumber {
		return nil
	}
	message = message[n:]
	switch f.kind {
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(message)
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(message)
	default:
		n = protowire.ConsumeFieldValue(f.number, f.kind, message)
	}
	if n < 0 {
		return nil
	}
	return message[n:]
}

// text returns the field as a string, in memory of the message.
func (f *field) text() (string, error) {
	if !utf8.Valid(f.bytes) {
		return "", errNotUTF8
	}
	return text(f.bytes), nil
}
