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

// phrase is an entry of the field RateLimit: "burst";r=50;t=30
//
// The other dialects take their numbers out of it. It is never changed once it is in a
// slot.
type phrase struct {
	policy           *policy
	remaining, reset int64
	text             string
	resetAt          int // in text
}

// values returns what p says of a client that has so much remaining, and is as
// good as new in so many seconds, and list. The strings are shared, the array
// is the caller's own: it becomes part of a header, where a handler may write.
func (ps *phrases) values(p *policy, remaining, reset int64, list string) *[2]string {
	said, slot := ps.lookup(p, remaining, reset)
	if said != nil {
		return &[2]string{said.text, list}
	}
	fresh := &struct { // one allocation for both
		phrase
		values [2]string
	}{phrase: p.phrase(remaining, reset)}
	fresh.values = [2]string{fresh.text, list}
	slot.Store(&fresh.phrase)
	return &fresh.values
}

// find returns the phrase alone.
func (ps *phrases) find(p *policy, remaining, reset int64) *phrase {
	said, slot := ps.lookup(p, remaining, reset)
	if said == nil {
		fresh := p.phrase(remaining, reset)
		said = &fresh
		slot.Store(said)
	}
	return said
}

// lookup returns the phrase, or nil, and the slot that is its.
func (ps *phrases) lookup(p *policy, remaining, reset int64) (*phrase, *atomic.Pointer[phrase]) {
	// Times odd numbers without a pattern: neighbours fall far apart.
	mixed := p.salt + uint64(remaining)*0x9e3779b97f4a7c15 + uint64(reset)*0xd6e8feb86659fd93
	slot := &ps[mixed>>(64-phraseBits)]
	if said := slot.Load(); said != nil && said.remaining == remaining && said.reset == reset && said.policy == p {
		return said, slot
	}
	return nil, slot
}

func (p *policy) phrase(remaining, reset int64) phrase {
	var room [96]byte
	b := append(room[:0], p.item...)
	b = strconv.AppendInt(b, remaining, 10)
	if !p.slots {
		b = append(b, beforeReset...)
	}
	at := len(b)
	if !p.slots {
		b = strconv.AppendInt(b, reset, 10)
	}
	return phrase{p, remaining, reset, string(b), at}
}

const beforeReset = ";t="

// left is what remains, in digits.
func (f *phrase) left() string {
	end := f.resetAt
	if !f.policy.slots {
		end -= len(beforeReset)
	}
	return f.text[len(f.policy.item):end]
}

// number is n in digits, those of the phrase if they say it.
func (f *phrase) number(n int64) string {
	if n == f.reset && !f.policy.slots {
		return f.text[f.resetAt:]
	}
	return strconv.FormatInt(n, 10)
}
