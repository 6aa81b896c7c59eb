package node

import (
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// backlog holds, by counter, what was admitted locally and is still to be charged to the
// backend. Its methods take the time as an argument and read no clock; locks and calls are up
// to the caller.
type backlog struct {
	start    time.Time // all times count from here
	entries  map[counterID]*backlogEntry
	urgent   []counterID        // used-up counters, which are posted first; some may be posted already
	drained  bool               // the last round took all that were urgent
	doubtful map[counterID]post // posts that were sent and may have arrived or not
	sending  []post             // under way; meanwhile only doubt and tries are written, without the lock
	reset    map[counterID]bool // counters of sending that were reset meanwhile
	boot     [2]uint64          // chain.Post.Boot of all posts
	number   uint64             // of the last post
	swept    time.Duration      // when what has faded was last dropped
	lost     int64              // amounts that will never be charged
}

// counterID names a counter.
type counterID struct{ identity, key string }

func counterOf(c *tidegate.Check) counterID { return counterID{c.Limit.Identity(), c.Key} }

// backlogEntry is what was admitted and still counts: after a long outage that is no more than
// what the key has used of its limit at the end. It is what was used here less what the backend
// knows already, divided by the number of nodes; used and known are in events of the fleet.
type backlogEntry struct {
	limit    *tidegate.Limit
	nodes    int64 // how many there were when used was determined
	admitted int64
	used     float64       // according to the local store, at last
	last     time.Duration // when used was determined
	known    float64       // used in the backend, at when
	when     time.Duration // when known was determined
	tries    int           // how often it could not be posted
	urgent   bool
}

// maxEntries bounds how many counters are in the backlog. What is admitted beyond is lost.
const maxEntries = 1 << 16

// amount returns how many events are to be charged as of the instant at, which is not before last.
func (d *backlogEntry) amount(start time.Time, at time.Duration) int64 {
	more := d.usedAt(start, at) - d.fade(d.known, start, d.when, at)
	return min(d.admitted, int64(math.Ceil(more/float64(d.nodes))))
}

func (d *backlogEntry) usedAt(start time.Time, at time.Duration) float64 {
	return d.fade(d.used, start, d.last, at)
}

func (d *backlogEntry) fade(used float64, start time.Time, from, to time.Duration) float64 {
	return fade(d.limit, used, start.Add(from), start.Add(to))
}

// spread has d divided by another number of nodes from at on, which changes nothing of amount. What is used here is in events of
// the fleet: those of d count as often as there are nodes.
func (d *backlogEntry) spread(nodes int64, start time.Time, at time.Duration) {
	if nodes == d.nodes {
		return
	}
	known := d.fade(d.known, start, d.when, at)
	d.used = known + (d.usedAt(start, at)-known)*float64(nodes)/float64(d.nodes)
	d.nodes, d.last = nodes, at
}

// join adds what was admitted before, which could not be posted, to what was admitted since.
func (d *backlogEntry) join(before *backlogEntry, start time.Time) {
	at := max(d.last, before.last)
	before.spread(d.nodes, start, at)
	since := d.usedAt(start, at) - d.fade(d.known, start, d.when, at)
	d.used, d.last = before.usedAt(start, at)+since, at
	if d.used > float64(d.limit.Capacity()) {
		d.goBy(before.limit, d.used)
	}
	d.admitted += before.admitted
	d.known, d.when, d.tries = before.known, before.when, before.tries
}

// goBy has d posted under another version or tier of its limit, unless that is narrower and does not hold what is used:
// no store charges more unasked than the limit that it is charged under holds.
func (d *backlogEntry) goBy(l *tidegate.Limit, used float64) {
	if d.limit == nil || l.Capacity() >= d.limit.Capacity() || used <= float64(l.Capacity()) {
		d.limit = l
	}
}

// faded reports whether nothing of d can count any more.
func (d *backlogEntry) faded(start time.Time, now time.Duration) bool {
	return d.fade(float64(d.limit.Capacity()), start, d.last, now) == 0
}

// reckoned returns the time as of which to compute amount. Events of d fade during an outage, but
// not after the backend has become reachable again: from then on, others use that room.
// reachable is when that was; now, if it is not reachable.
func (d *backlogEntry) reckoned(now, reachable time.Duration) time.Duration {
	return max(d.last, min(now, reachable))
}

// add adds what was admitted for c, in events of c; charged is the same in events of the fleet, of which
// the local store may have counted fewer. Both are negative if events were returned: these reduce an entry, and
// make none. used is what the local store says is used after that; it matters only for a new entry and for returns.
func (b *backlog) add(c *tidegate.Check, admitted, charged, used, nodes int64, now time.Duration) {
	id := counterOf(c)
	d := b.entries[id]
	if d == nil {
		if admitted <= 0 {
			return
		}
		// The backend knows what was used before: earlier backlogs have been posted.
		d = &backlogEntry{nodes: nodes, known: float64(max(0, used-charged)), when: now, last: now}
		d.used = d.known
		id.key = strings.Clone(c.Key) // it may lie in memory of the request
		if !b.enter(id, d, now) {
			return
		}
	}
	d.goBy(c.Limit, d.used+float64(charged))
	d.spread(nodes, b.start, now)
	was := d.usedAt(b.start, now)
	if d.used = max(0, was+float64(charged)); charged < 0 { // what is returned may have faded already
		d.used = max(d.used, min(was, float64(used)))
	}
	d.admitted = max(0, d.admitted+admitted)
	d.last = now
	b.markUrgent(id, d)
}

// enter adds a new entry. If there is no room, it counts the entry as lost and returns false.
func (b *backlog) enter(id counterID, d *backlogEntry, now time.Duration) bool {
	if len(b.entries) >= maxEntries && !b.sweep(now) {
		b.lost++
		return false
	}
	if b.entries == nil {
		b.entries = make(map[counterID]*backlogEntry)
	}
	b.entries[id] = d
	return true
}

// markUrgent queues an entry to be posted before the rest if its limit is used up.
func (b *backlog) markUrgent(id counterID, d *backlogEntry) {
	if d.urgent || d.used+float64(d.nodes) <= float64(d.limit.Capacity()) {
		return
	}
	if len(b.urgent) >= maxUrgent { // drop the IDs of entries that are gone
		b.urgent = b.urgent[:0]
		for other, entry := range b.entries {
			if entry.urgent {
				b.urgent = append(b.urgent, other)
			}
		}
	}
	d.urgent = true
	id.key = strings.Clone(id.key) // it may lie in memory of the request
	b.urgent = append(b.urgent, id)
}

// maxUrgent bounds how many counters wait to be posted first, including those that have faded
// meanwhile: during an outage nothing takes them out.
const maxUrgent = 2 * maxEntries

// reconcile updates a counter of which known events turned out to be used in the backend. It
// returns how many are used in all, the backlog included.
func (b *backlog) reconcile(id counterID, known float64, nodes int64, now, reachable time.Duration) float64 {
	sent := float64(b.doubtful[id].amount * nodes) // the backend may not have counted these
	d := b.entries[id]
	if d == nil {
		return known + sent
	}
	d.admitted = max(0, d.amount(b.start, d.reckoned(now, reachable)))
	d.used = known + sent + float64(d.admitted*nodes)
	d.nodes, d.known, d.when, d.last = nodes, known, now, now
	return d.used
}

// sweep drops what has faded, at most once a second, and reports whether there is room.
func (b *backlog) sweep(now time.Duration) bool {
	if now-b.swept > time.Second {
		b.swept = now
		for id, d := range b.entries {
			if d.faded(b.start, now) {
				delete(b.entries, id)
			}
		}
	}
	return len(b.entries) < maxEntries
}

// forget drops the entries of counters. Posts that are under way may still arrive, but are not sent again.
func (b *backlog) forget(checks []tidegate.Check) {
	for i := range checks {
		id := counterOf(&checks[i])
		delete(b.entries, id)
		delete(b.doubtful, id)
		if len(b.sending) > 0 {
			if b.reset == nil {
				b.reset = make(map[counterID]bool)
			}
			b.reset[id] = true
		}
	}
}

// some reports whether anything is still to be charged.
func (b *backlog) some() bool { return len(b.entries)+len(b.doubtful) > 0 }

// counters returns how many counters are still to be charged.
func (b *backlog) counters() int {
	n := len(b.entries)
	for id := range b.doubtful {
		if b.entries[id] == nil {
			n++
		}
	}
	return n
}
