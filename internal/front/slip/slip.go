// Package slip writes slips: texts that refused clients get, and can quote to whoever runs the
// service. A slip says which rule refused whom, when and where, and is sealed: clients
// can neither read it nor make one. Nothing is stored.
//
// It does not explain a refusal; the admin API does, from what a slip says. Start with
// [NewSealer].
package slip

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// Slip is what is written about a refusal.
type Slip struct {
	At   time.Time // to the millisecond
	Node string
	// Rules is the beginning of the hash of the rules in force, in hex; "" if they have none.
	Rules string
	// Rule, Limit and Scope describe the limit that refused; Key is the key that it counts.
	Rule, Limit, Scope, Key string
	// Remaining of Capacity events were left. After RetryAfter, the same request would have passed.
	Remaining, Capacity int64
	RetryAfter          time.Duration
	Flags               Flags
}

// Flags say more about a refusal.
type Flags uint8

const (
	// Never: the same request can never pass.
	Never Flags = 1 << iota
	// Denied: by an access rule or a ban.
	Denied
	// Blocked: the key was over its limit before, and is kept out for a time.
	Blocked
	// Unsure: the store could not tell, and the rule refuses then.
	Unsure
	// Local: the store did not answer, and counters of the instance decided.
	Local
	// Shed: there was not the capacity for all requests.
	Shed
)

// version is the first byte of what is sealed.
const version = 1

// maxText bounds each text of a slip.
const maxText = 128

var errGarbled = errors.New("the slip is of another version")

// appendTo writes s without its seal.
func (s *Slip) appendTo(b []byte) []byte {
	b = append(b, version, byte(s.Flags))
	b = binary.AppendVarint(b, s.At.UnixMilli())
	b = binary.AppendVarint(b, s.Remaining)
	b = binary.AppendVarint(b, s.Capacity)
	b = binary.AppendVarint(b, s.RetryAfter.Milliseconds())
	for _, text := range []string{s.Rules, s.Node, s.Rule, s.Limit, s.Scope, s.Key} {
		text = text[:min(len(text), maxText)]
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

// read is the inverse of appendTo.
func read(b []byte) (s Slip, err error) {
	if len(b) < 2 || b[0] != version {
		return s, errGarbled
	}
	s.Flags, b = Flags(b[1]), b[2:]
	var numbers [4]int64
	for i := range numbers {
		v, n := binary.Varint(b)
		if n <= 0 {
			return s, errGarbled
		}
		numbers[i], b = v, b[n:]
	}
	s.At, s.Remaining, s.Capacity = time.UnixMilli(numbers[0]).UTC(), numbers[1], numbers[2]
	s.RetryAfter = time.Duration(numbers[3]) * time.Millisecond
	for _, to := range []*string{&s.Rules, &s.Node, &s.Rule, &s.Limit, &s.Scope, &s.Key} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return s, errGarbled
		}
		*to, b = strings.ToValidUTF8(string(b[size:size+int(n)]), "?"), b[size+int(n):]
	}
	if len(b) > 0 {
		return s, errGarbled
	}
	return s, nil
}
