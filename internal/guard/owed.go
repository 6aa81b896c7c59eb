package guard

import (
	"context"
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// owed is what was admitted locally and is to be charged to the inner store, by
// counter.
type owed struct {
	byID     map[who]*debt
	pressing []who         // those of used up keys come first; some may be paid
	swept    time.Duration // when what has faded was last dropped
}

// who names a counter.
type who struct{ identity, key string }

// debt is what was admitted and still counts: a long outage leaves no more than the
// key has used of its limit in the end. That is what was used here, less what the
// inner store knows itself, by this node's share. Both are in events of the fleet.
type debt struct {
	limit    *tidegate.Limit
	nodes    int64
	admitted int64
	used     float64       // by the local store's reckoning
	last     time.Duration // when that was
	known    float64       // in the inner store
	when     time.Duration // when that was
	tries    int           // how often it could not be paid
	pressing bool
}

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

// maxOwed bounds how many counters something is owed to. What is admitted beyond is
// counted as lost.
const maxOwed = 1 << 16

// localUse is how much of l the local store says is used.
func (g *Guard) localUse(l *tidegate.Limit, key string) (int64, error) {
	one := []tidegate.Check{{Key: key, Limit: l}}
	d, err := g.local.Take(context.Background(), one, 1)
	if err != nil {
		return 0, err
	}
	return usedOf(&d), nil
}

// owe writes down what the checks of p were charged locally.
func (g *Guard) owe(checks []tidegate.Check, p *part, copies, nodes int64, now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, at := range p.from {
		c := &checks[at]
		if c.Cost == 0 || c.Advisory && p.checks[i].Over || c.Limit.Algorithm == tidegate.Concurrency {
			continue
		}
		g.oweLocked(c, c.Cost*copies, p.checks[i].Cost*copies, nodes, now)
	}
	if len(g.owed.byID) > 0 {
		g.keepLocked()
	}
}

// oweLocked adds what was admitted for c, and charged to the local store for it.
// Both are negative when it was returned.
func (g *Guard) oweLocked(c *tidegate.Check, admitted, charged, nodes int64, now time.Duration) {
	id := who{c.Limit.Identity(), c.Key}
	d := g.owed.byID[id]
	if d == nil {
		if admitted <= 0 {
			return
		}
		// What was used here before is used there as well: debts have been paid.
		used, _ := g.localUse(c.Limit, c.Key)
		d = &debt{known: float64(max(0, used-charged)), when: now, last: now}
		d.used = d.known
		id.key = strings.Clone(c.Key) // it may lie in memory of the request
		if !g.enterLocked(id, d, now) {
			return
		}
	}
	d.limit, d.nodes = c.Limit, nodes
	d.used = max(0, d.usedAt(g.start, now)+float64(charged))
	d.admitted = max(0, d.admitted+admitted)
	d.last = now
	g.pressLocked(id, d)
}

// enterLocked writes a new debt into the book, if there is room.
func (g *Guard) enterLocked(id who, d *debt, now time.Duration) bool {
	if len(g.owed.byID) >= maxOwed && !g.sweptLocked(now) {
		g.count.lost.Add(1)
		return false
	}
	if g.owed.byID == nil {
		g.owed.byID = make(map[who]*debt)
	}
	g.owed.byID[id] = d
	return true
}

// pressLocked puts the debt of a key that is used up in the first line.
func (g *Guard) pressLocked(id who, d *debt) {
	if !d.pressing && d.used+float64(d.nodes) > float64(d.limit.Capacity()) {
		d.pressing = true
		g.owed.pressing = append(g.owed.pressing, id)
	}
}

// atLocked is when a debt is reckoned: what fades during an outage does not fade any
// more once the inner store is asked again, since that is used by others by then.
func (g *Guard) atLocked(d *debt, now time.Duration) time.Duration {
	if g.breaker.state == Degraded {
		return now
	}
	return max(d.last, min(now, g.reachable))
}

// reconcile reckons anew with a counter of which known events turned out to be used
// in the inner store. It returns what is used in all.
func (g *Guard) reconcile(c *tidegate.Check, known float64, nodes int64, now time.Duration) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.owed.byID[who{c.Limit.Identity(), c.Key}]
	if d == nil {
		return known
	}
	d.admitted = max(0, d.amount(g.start, g.atLocked(d, now)))
	d.used = known + float64(d.admitted*nodes)
	d.known, d.when, d.last = known, now, now
	return d.used
}

// sweptLocked drops what has faded, now and then, and reports whether there is room.
func (g *Guard) sweptLocked(now time.Duration) bool {
	if now-g.owed.swept > time.Second {
		g.owed.swept = now
		for id, d := range g.owed.byID {
			if d.gone(g.start, now) {
				delete(g.owed.byID, id)
			}
		}
	}
	return len(g.owed.byID) < maxOwed
}

// payment is a debt that is being paid.
type payment struct {
	id     who
	debt   *debt
	amount int64
}

// dueLocked takes up to most debts out of the book, the pressing ones first.
func (g *Guard) dueLocked(most int, now time.Duration) []payment {
	var due []payment
	take := func(id who) {
		d := g.owed.byID[id]
		if d == nil {
			return
		}
		delete(g.owed.byID, id)
		d.pressing = false
		if amount := d.amount(g.start, g.atLocked(d, now)); amount > 0 && !d.gone(g.start, now) {
			due = append(due, payment{id, d, amount})
		}
	}
	for len(due) < most && len(g.owed.pressing) > 0 {
		take(g.owed.pressing[0])
		g.owed.pressing = g.owed.pressing[1:]
	}
	if len(g.owed.pressing) == 0 {
		g.owed.pressing = nil
	}
	for id := range g.owed.byID {
		if len(due) >= most {
			break
		}
		take(id)
	}
	return due
}

// oweAgain puts what could not be paid back into the book.
func (g *Guard) oweAgain(due []payment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range due {
		d := g.owed.byID[p.id]
		if d == nil {
			if d = p.debt; !g.enterLocked(p.id, d, g.now()) {
				continue
			}
		} else { // more was admitted meanwhile
			d.admitted += p.debt.admitted
			d.known, d.when, d.tries = p.debt.known, p.debt.when, p.debt.tries
		}
		g.pressLocked(p.id, d)
	}
}
