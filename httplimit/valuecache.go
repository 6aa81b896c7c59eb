package httplimit

import (
	"strconv"
	"sync/atomic"
)

// valueCache caches values of the field RateLimit: a limit has only so many states, so most
// values were sent before. Two values that fall into the same entry replace each other, so the
// cache does not grow: its 512 entries take some 60 KiB, for all limits of a handler.
type valueCache [1 << cacheBits]atomic.Pointer[cachedValue]

const cacheBits = 9

// cachedValue is an entry of the field RateLimit: "burst";r=50;t=30
//
// The other dialects take their numbers out of it. It is never changed once it is in the
// cache.
type cachedValue struct {
	policy           *policy
	remaining, reset int64
	text             string
	resetAt          int // in text
}

// values returns an array of two: the value of RateLimit for a client with so much remaining
// and a reset in so many seconds, and list. The strings are shared, but the array is new: it
// becomes part of a header, which a handler may change.
func (ps *valueCache) values(p *policy, remaining, reset int64, list string) *[2]string {
	cached, entry := ps.lookup(p, remaining, reset)
	if cached != nil {
		return &[2]string{cached.text, list}
	}
	fresh := &struct { // one allocation for both
		cachedValue
		values [2]string
	}{cachedValue: p.rateLimitValue(remaining, reset)}
	fresh.values = [2]string{fresh.text, list}
	entry.Store(&fresh.cachedValue)
	return &fresh.values
}

// find returns the cached value alone.
func (ps *valueCache) find(p *policy, remaining, reset int64) *cachedValue {
	cached, entry := ps.lookup(p, remaining, reset)
	if cached == nil {
		fresh := p.rateLimitValue(remaining, reset)
		cached = &fresh
		entry.Store(cached)
	}
	return cached
}

// lookup returns the cached value, or nil, and its entry in the cache.
func (ps *valueCache) lookup(p *policy, remaining, reset int64) (*cachedValue, *atomic.Pointer[cachedValue]) {
	// Multiplying by random-looking odd numbers spreads neighbouring values.
	mixed := p.salt + uint64(remaining)*0x9e3779b97f4a7c15 + uint64(reset)*0xd6e8feb86659fd93
	entry := &ps[mixed>>(64-cacheBits)]
	if cached := entry.Load(); cached != nil && cached.remaining == remaining && cached.reset == reset && cached.policy == p {
		return cached, entry
	}
	return nil, entry
}

func (p *policy) rateLimitValue(remaining, reset int64) cachedValue {
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
	return cachedValue{p, remaining, reset, string(b), at}
}

const beforeReset = ";t="

// left returns what remains, in digits, cut out of the text.
func (f *cachedValue) left() string {
	end := f.resetAt
	if !f.policy.slots {
		end -= len(beforeReset)
	}
	return f.text[len(f.policy.item):end]
}

// number returns n in digits, cut out of the text if it is there.
func (f *cachedValue) number(n int64) string {
	if n == f.reset && !f.policy.slots {
		return f.text[f.resetAt:]
	}
	return strconv.FormatInt(n, 10)
}
