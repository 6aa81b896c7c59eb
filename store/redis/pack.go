package redis

import (
	"encoding/binary"
	"fmt"
	"math"

	"tidegate.dev/tidegate"
)

// The arguments and replies of scripts are packed as by Lua's struct library: bytes, and
// numbers as little-endian doubles, all of them whole and below 2^53. That is cheaper than
// decimals on both sides, and nothing is rounded.

type packer []byte

func (p *packer) byte(n byte)      { *p = append(*p, n) }
func (p *packer) uint16(n uint16)  { *p = binary.LittleEndian.AppendUint16(*p, n) }
func (p *packer) number(n float64) { *p = binary.LittleEndian.AppendUint64(*p, math.Float64bits(n)) }
func (p *packer) int(n int64)      { p.number(float64(n)) }
func (p *packer) text(s string)    { *p = append(*p, s...) }

func (p *packer) handle(h tidegate.Handle) {
	*p = binary.LittleEndian.AppendUint64(*p, h[0])
	*p = binary.LittleEndian.AppendUint64(*p, h[1])
}

// ticks appends two numbers: µs, and the ticks beyond them.
func (p *packer) ticks(t int64) {
	p.int(t / 1024)
	p.uint16(uint16(t % 1024))
}

// tag tells a call of a script from others. Its reply begins with it: see store/redis/internal/rediswire,
// which closes a connection whose replies are to other calls.
type tag float64

const tags = 1 << 40

func (s *Store) tag() tag { return tag(s.lastTag.Add(1) % tags) }

// before returns the arguments of a script, of which the tag is the first.
func (t tag) before(args ...string) []string {
	var head packer
	head.number(float64(t))
	return append([]string{string(head)}, args...)
}

// unpack returns the i-th number in a text, from 0.
func unpack(text string, i int) float64 {
	var word uint64
	for j := range 8 {
		word |= uint64(text[8*i+j]) << (8 * j)
	}
	return math.Float64frombits(word)
}

// wholeNumbers returns the numbers in a text, or false if it has any that are not whole or not
// below 2^53.
func wholeNumbers(text string) (reply, bool) {
	r := make(reply, len(text)/8)
	for i := range r {
		x := unpack(text, i)
		if x != math.Trunc(x) || math.Abs(x) >= 1<<53 { // NaN is neither
			return nil, false
		}
		r[i] = int64(x)
	}
	return r, len(text)%8 == 0
}

// reply is the numbers that a script answered, between its tag and their sum.
type reply []int64

// parseReply reads the reply to a call of that tag. The sum, added up in the same order as
// in the script, shows that no bit was changed on the way.
func parseReply(text string, of tag) (reply, error) {
	n := len(text) / 8
	if len(text)%8 != 0 || n < 3 {
		return nil, invalidReply("a reply of %d bytes", len(text))
	}
	sum := 0.0
	for i := range n - 1 {
		sum += unpack(text, i)
	}
	switch {
	case unpack(text, 0) != float64(of):
		return nil, invalidReply("a reply to another call")
	case unpack(text, n-1) != sum:
		return nil, invalidReply("a reply whose numbers do not add up: %x", text[:min(len(text), 64)])
	}
	r, ok := wholeNumbers(text[8 : len(text)-8])
	if !ok {
		return nil, invalidReply("a reply of odd numbers: %x", text[:min(len(text), 64)])
	}
	return r, nil
}

// missed reports whether the reply says that the dates sent do not include the instant us. now is Redis'
// time.
func (r reply) missed() (now, us int64, ok bool) {
	if len(r) != 3 || r[0] != -1 {
		return 0, 0, false
	}
	return r[1], r[2], true
}

// invalidReply returns the error of a reply that the script cannot have sent.
func invalidReply(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errInvalidReply, fmt.Sprintf(format, args...))
}
