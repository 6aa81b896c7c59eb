package resp

import (
	"math"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
)

// throttle implements CL.THROTTLE key max_burst count period [quantity]. It answers five integers
// as redis-cell does: 0 or 1 for limited, the limit, what remains, in how many seconds to
// try again (-1: allowed, or it will never fit), and when all is regained.
func (c *conn) throttle(args [][]byte) {
	if len(args) != 5 && len(args) != 6 {
		c.settlePending()
		c.error("Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
		return
	}
	var n [4]int64
	n[3] = 1
	for i, a := range args[2:] {
		v, ok := integer(a)
		if !ok {
			c.settlePending()
			c.error("Cell error: Store error: Couldn't parse as integer: " + string(a[:min(len(a), 256)]))
			return
		}
		n[i] = v
	}
	r := c.rate // most clients have one
	if t := (triple{n[0], n[1], n[2]}); r == nil || r.triple != t {
		var wrong string
		if r, wrong = c.srv.rates.get(t); wrong != "" {
			c.settlePending()
			c.error(wrong)
			return
		}
		c.rate = r
	}
	key, quantity := c.keyOf(args[1]), n[3]
	cost := min(quantity, tidegate.MaxCount+1)
	switch {
	case quantity <= 0 || r.never:
		c.settlePending()
		c.look(key, r, quantity)
	case c.srv.one != nil:
		d, err := c.srv.one.TakeOne(c.srv.ctx, key, r.limit, cost, 0)
		if err == nil {
			c.watch(key, r.limit, cost, &d)
		}
		c.throttled(r, &d, err)
	default:
		c.later(key, r, cost)
	}
}

// throttled answers what the store has decided.
func (c *conn) throttled(r *rate, d *tidegate.Decision, err error) {
	if err != nil {
		c.failed(err)
		return
	}
	retry := int64(-1)
	if !d.OK && !d.Never {
		retry = seconds(d.RetryAfter)
	}
	c.five(!d.OK, r, d.Remaining, retry, seconds(d.ResetAfter))
}

// five appends the five integers of an answer. The first two are made ready in r.begin.
func (c *conn) five(limited bool, r *rate, remaining, retry, reset int64) {
	begin := r.begin[0]
	if limited {
		begin = r.begin[1]
	}
	c.raw(begin)
	c.int(remaining)
	c.int(retry)
	c.int(reset)
}

// look answers commands that take nothing: with a quantity of 0, with a negative one, which gives
// back, and all under a negative burst. Like redis-cell, it admits a command if what is used after
// it is no more than the limit. So a quantity of 0 is admitted even when nothing remains, unless
// more is used than the limit of this triple. Observers are told only of what a negative burst
// refuses.
func (c *conn) look(key string, r *rate, quantity int64) {
	c.checks[0] = tidegate.Check{Key: key, Limit: r.limit}
	d, err := c.srv.o.Store.Take(c.srv.ctx, c.checks[:], 1)
	if err != nil {
		c.failed(err)
		return
	}
	if quantity <= 0 && !r.never && d.Receipt.Origin != tidegate.OriginStore {
		c.lookHere(key, r, quantity, &d)
		return
	}
	used, full := float64(d.ResetAfter), (float64(r.burst)+1)*r.em
	asked := float64(quantity) * r.em
	after := used + asked
	if after > full+1 { // a store rounds up to a nanosecond
		retry := int64(-1)
		if asked <= full {
			retry = seconds(duration(after - full))
		}
		c.five(true, r, max(0, r.fits(full-used)), retry, seconds(d.ResetAfter))
		if quantity > 0 {
			d.OK, d.Granted, d.Never, d.RetryAfter, d.Limit = false, 0, true, 0, r.limit
			c.watch(key, r.limit, quantity, &d)
		}
		return
	}
	if quantity < 0 {
		if err := c.giveBack(key, r, quantity, &d); err != nil {
			c.failed(err)
			return
		}
	}
	c.five(false, r, r.fits(full-after), -1, seconds(duration(after)))
}

// lookHere is look for a decision d that this process has made by itself, as the store is away. It
// has only a share of the limit, so the numbers of the answer are those of d.
func (c *conn) lookHere(key string, r *rate, quantity int64, d *tidegate.Decision) {
	if quantity < 0 {
		err := c.giveBack(key, r, quantity, d)
		if err == nil {
			*d, err = c.srv.o.Store.Take(c.srv.ctx, c.checks[:], 1)
		}
		if err != nil {
			c.failed(err)
			return
		}
	}
	left := d.Remaining
	if d.ResetAfter <= 0 { // every share admits something
		left = max(left, 1)
	}
	c.five(false, r, left, -1, seconds(d.ResetAfter))
}

// giveBack gives back a quantity, which is negative, as of the look d.
func (c *conn) giveBack(key string, r *rate, quantity int64, d *tidegate.Decision) error {
	back := tidegate.Check{Key: key, Limit: r.limit, Cost: max(quantity, -2*tidegate.MaxCount)}
	return c.srv.o.Store.Adjust(c.srv.ctx, d.Receipt, []tidegate.Check{back})
}

// fits returns how many events are regained in a time, which a store may have rounded by a
// nanosecond.
func (r *rate) fits(ns float64) int64 {
	return int64(min(max(math.Floor((ns+1)/r.em), math.MinInt64/2), math.MaxInt64/2))
}

func duration(ns float64) time.Duration {
	return time.Duration(min(max(ns, math.MinInt64/2), math.MaxInt64/2))
}

// watch tells the observers of a decision.
func (c *conn) watch(key string, l *tidegate.Limit, cost int64, d *tidegate.Decision) {
	if c.srv.o.Observe != nil {
		c.checks[0] = tidegate.Check{Key: key, Limit: l, Cost: cost}
		c.srv.o.Observe(nil, c.checks[:], *d)
	}
	if c.srv.o.Counted != nil {
		c.noted(d)
	}
	c.decided(d)
}

// decided notes a decision for the access log.
func (c *conn) decided(d *tidegate.Decision) {
	if c.srv.o.Access != nil {
		c.access.Command, c.access.Decision = "?", *d
	}
}

func (c *conn) failed(err error) { c.error("ERR the counters cannot be asked: " + err.Error()) }

// keyOf returns the key of the counter for a key of a command, with the prefix of the user. It is
// valid until the next call of keyOf.
func (c *conn) keyOf(key []byte) string {
	prefix := ""
	if c.account != nil {
		prefix = c.account.Prefix
	}
	if len(prefix)+len(key) >= tidegate.MaxKey {
		return tidegate.Key(prefix + string(key))
	}
	b := append(c.key[:0], '=')
	b = append(b, prefix...)
	b = append(b, key...)
	c.key = b
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// anyRate is for what is the same under every triple.
var anyRate = triple{0, 1, 1}

// del implements DEL key [key ...]. It answers how many of the keys had something to forget.
func (c *conn) del(args [][]byte) {
	store, ok := c.srv.o.Store.(tidegate.Resetter)
	if !ok {
		c.failed(tidegate.ErrUnsupported)
		return
	}
	r, wrong := c.srv.rates.get(anyRate)
	if wrong != "" {
		c.error(wrong)
		return
	}
	var gone int64
	for _, a := range args[1:] {
		key := c.keyOf(a)
		check := []tidegate.Check{{Key: key, Limit: r.limit}}
		d, err := c.srv.o.Store.Take(c.srv.ctx, check, 1)
		if err == nil && d.ResetAfter > 0 {
			gone++
			err = store.Reset(c.srv.ctx, check)
		}
		if err != nil {
			c.failed(err)
			return
		}
	}
	c.int(gone)
}

// integer reads a number as redis-cell does: a sign, which may be missing, and digits.
func integer(b []byte) (int64, bool) {
	if len(b) > 0 && len(b) < 19 && b[0]-'0' <= 9 { // mostly
		var n int64
		for _, c := range b {
			if c-'0' > 9 {
				return 0, false
			}
			n = n*10 + int64(c-'0')
		}
		return n, true
	}
	minus := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b, minus = b[1:], b[0] == '-'
	}
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c-'0' > 9 || n > math.MaxInt64/10+1 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case minus && n <= 1<<63:
		return -int64(n), true
	case minus || n > math.MaxInt64:
		return 0, false
	}
	return int64(n), true
}
