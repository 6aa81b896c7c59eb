package node

import (
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// backlog is what was admitted locally and is still to be charged to the backend, by
// counter. It is a state machine: its methods are what happens to it, take the time, and
// read no clock; whoever has it sees to locks and calls.
type backlog struct {
	start    time.Time // of all times
	debts    map[counterID]*debt
	pressing []counterID   // those of used up keys come first; some may be posted
	swept    time.Duration // when what has faded was last dropped
	lost     int64         // amounts that will never be charged
}

// counterID names a counter.
type counterID struct{ identity, key string }

func counterOf(c *tidegate.Check) counterID { return counterID{c.Limit.Identity(), c.Key} }

// debt is what was admitted and still counts: a long outage leaves no more than the
// key has used of its limit in the end. That is what was used here, less what the
// backend knows itself, by this node's share. Both are in events of the fleet.
type debt struct {
	limit    *tidegate.Limit
	nodes    int64
	admitted int64
	used     float64       // by the local store's reckoning
	last     time.Duration // when that was
	known    float64       // in the backend
	when     time.Duration // when that was
	tries    int           // how often it could not be posted
	pressing bool
}

// maxDebts bounds how many counters something is owed to. What is admitted beyond is
// lost.
const maxDebts = 1 << 16

// amount is how much is to be charged, at a time from last on.
func (d *debt) amount(start time.Time, at time.Duration) int64 {
	more := d.usedAt(start, at) - d.fade(d.known, start, d.when, at)
	return min(d.admitted, int64(math.Ceil(more/float64(d.nodes))))
}

func (d *debt) usedAt(start time.Time, at time.Duration) float64 {
	return d.fade(d.used, start, d.last, at)
}

func (d *debt) fade(used float64, start time.Time, from, to time.Duration) float64 {
	return fade(d.limit, used, start.Add(from), start.Add(to))
}

// gone reports whether nothing of d can count any more.
func (d *debt) gone(start time.Time, now time.Duration) bool {
	return d.fade(float64(d.limit.Capacity()), start, d.last, now) == 0
}

// reckoned is when a debt is reckoned: what fades during an outage does not fade any
// more once the backend is asked again, since others use that by then. reachable is when
// that was; now, if it is not.
func (d *debt) reckoned(now, reachable time.Duration) time.Duration {
	return max(d.last, min(now, reachable))
}

// owe adds what was admitted for c, of which charged was charged to the local store. Both
// are negative when it was returned. used is what the local store says is used, with it.
func (b *backlog) owe(c *tidegate.Check, admitted, charged, used, nodes int64, now time.Duration) {
	id := counterOf(c)
	d := b.debts[id]
	if d == nil {
		if admitted <= 0 {
			return
		}
		// What was used here before is used there as well: debts have been posted.
		d = &debt{known: float64(max(0, used-charged)), when: now, last: now}
		d.used = d.known
		id.key = strings.Clone(c.Key) // it may lie in memory of the request
		if !b.enter(id, d, now) {
			return
		}
	}
	d.limit, d.nodes = c.Limit, nodes
	d.used = max(0, d.usedAt(b.start, now)+float64(charged))
	d.admitted = max(0, d.admitted+admitted)
	d.last = now
	b.press(id, d)
}

// enter adds a new debt, if there is room.
func (b *backlog) enter(id counterID, d *debt, now time.Duration) bool {
	if len(b.debts) >= maxDebts && !b.sweep(now) {
		b.lost++
		return false
	}
	if b.debts == nil {
		b.debts = make(map[counterID]*debt)
	}
	b.debts[id] = d
	return true
}

// press has the debt of a key that is used up posted before others.
func (b *backlog) press(id counterID, d *debt) {
	if !d.pressing && d.used+float64(d.nodes) > float64(d.limit.Capacity()) {
		d.pressing = true
		b.pressing = append(b.pressing, id)
	}
}

// reconcile reckons anew with a counter of which known events turned out to be used in
// the backend. It returns what is used in all.
func (b *backlog) reconcile(id counterID, known float64, nodes int64, now, reachable time.Duration) float64 {
	d := b.debts[id]
	if d == nil {
		return known
	}
	d.admitted = max(0, d.amount(b.start, d.reckoned(now, reachable)))
	d.used = known + float64(d.admitted*nodes)
	d.known, d.when, d.last = known, now, now
	return d.used
}

// sweep drops what has faded, now and then, and reports whether there is room.
func (b *backlog) sweep(now time.Duration) bool {
	if now-b.swept > time.Second {
		b.swept = now
		for id, d := range b.debts {
			if d.gone(b.start, now) {
				delete(b.debts, id)
			}
		}
	}
	return len(b.debts) < maxDebts
}

// forget drops what is owed to counters.
func (b *backlog) forget(checks []tidegate.Check) {
	for i := range checks {
		delete(b.debts, counterOf(&checks[i]))
	}
}

// post is a debt that is about to be charged.
type post struct {
	id     counterID
	debt   *debt
	amount int64
}

// take takes up to most debts out: pressing ones, or others if there are none.
func (b *backlog) take(most int, now, reachable time.Duration) []post {
	var posts []post
	one := func(id counterID) {
		d := b.debts[id]
		if d == nil {
			return
		}
		delete(b.debts, id)
		d.pressing = false
		amount := d.amount(b.start, d.reckoned(now, reachable))
		if most := d.limit.Capacity(); amount > most { // no store charges more unasked
			amount = most
			b.lost++
		}
		if amount > 0 && !d.gone(b.start, now) {
			posts = append(posts, post{id, d, amount})
		}
	}
	for len(posts) < most && len(b.pressing) > 0 {
		one(b.pressing[0])
		b.pressing = b.pressing[1:]
	}
	if len(b.pressing) == 0 {
		b.pressing = nil
	}
	if len(posts) > 0 {
		return posts
	}
	for id := range b.debts {
		if len(posts) >= most {
			break
		}
		one(id)
	}
	return posts
}

// putBack takes posts that could not be charged back in, except those that were tried
// too often: they are lost.
func (b *backlog) putBack(posts []post, now time.Duration) {
	for _, p := range posts {
		if p.debt.tries > maxTries {
			b.lost++
			continue
		}
		d := b.debts[p.id]
		if d == nil {
			if d = p.debt; !b.enter(p.id, d, now) {
				continue
			}
		} else { // more was admitted meanwhile
			d.admitted += p.debt.admitted
			d.known, d.when, d.tries = p.debt.known, p.debt.when, p.debt.tries
		}
		b.press(p.id, d)
	}
}
