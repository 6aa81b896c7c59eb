package rls

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of a call. Envoy's configuration makes descriptors, and clients fill in their values.
const (
	MaxMessage     = 256 << 10 // bytes
	MaxDescriptors = 256
	MaxEntries     = 64       // of a descriptor
	MaxDomain      = 1 << 10  // bytes
	MaxText        = 32 << 10 // bytes of a key or a value
)

// invalid returns the error for a call that makes no sense.
func invalid(format string, args ...any) error {
	return status.Error(codes.InvalidArgument, fmt.Sprintf(format, args...))
}

// check returns what is wrong with a call; nil if nothing is.
func (c *call) check() error {
	switch {
	case c.domain == "":
		return invalid("the domain is empty")
	case len(c.domain) > MaxDomain:
		return invalid("the domain has %d bytes, of at most %d", len(c.domain), MaxDomain)
	case len(c.descriptors) == 0:
		return invalid("there are no descriptors")
	case len(c.descriptors) > MaxDescriptors:
		return invalid("there are more than %d descriptors", MaxDescriptors)
	}
	for i := range c.descriptors {
		d := &c.descriptors[i]
		switch {
		case len(d.entries) == 0:
			return invalid("descriptor %d has no entries", i)
		case len(d.entries) > MaxEntries:
			return invalid("descriptor %d has more than %d entries", i, MaxEntries)
		}
		for j := range d.entries {
			e := &d.entries[j]
			switch {
			case e.Key == "":
				return invalid("entry %d of descriptor %d has no key", j, i)
			case len(e.Key) > MaxText || len(e.Value) > MaxText:
				return invalid("entry %d of descriptor %d is longer than %d bytes", j, i, MaxText)
			}
		}
	}
	return nil
}
