package httplimit

import (
	"strconv"
	"sync/atomic"
)

// phrases remembers RateLimit values: most of them have been said before, as a
// limit has only so many places where its clients can stand. Two that fall into
// the same slot drive each other out, so that it does not grow: 512 slots come
// to some 60 KiB, for all limits of a handler.
type phrases [1 << phraseBits]atomic.Pointer[phrase]

const phraseBits = 9

// phrase is never changed once it is in a slot.
type phrase struct {
	policy           *policy
	remaining, reset int64
	text             string
}

// values returns what p says of a client that has so much remaining, and is as
// good as new in so many seconds, and list. The strings are shared, the array
// is the caller's own: it becomes part of a header, where a handler may write.
func (ps *phrases) values(p *policy, remaining, reset int64, list string) *[2]string {
	// Times odd numbers without a pattern: neighbours fall far apart.
	mixed := p.salt + uint64(remaining)*0x9e3779b97f4a7c15 + uint64(reset)*0xd6e8feb86659fd93
	slot := &ps[mixed>>(64-phraseBits)]
	if said := slot.Load(); said != nil && said.remaining == remaining && said.reset == reset && said.policy == p {
		return &[2]string{said.text, list}
	}
	text := p.phrase(remaining, reset)
	fresh := &struct { // one allocation for both
		phrase
		values [2]string
	}{phrase{p, remaining, reset, text}, [2]string{text, list}}
	slot.Store(&fresh.phrase)
	return &fresh.values
}

// phrase is an entry of the field RateLimit: "burst";r=50;t=30
func (p *policy) phrase(remaining, reset int64) string {
	var room [96]byte
	b := append(room[:0], p.item...)
	b = strconv.AppendInt(b, remaining, 10)
	if !p.slots {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, reset, 10)
	}
	return string(b)
}
