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
	entries  map[counterID]*backlogEntry
	urgent   []counterID        // those of used up keys come first; some may be posted
	doubtful map[counterID]post // sent, and nobody knows whether they arrived
	sending  []post             // that are out just now; others write only doubt and tries
	reset    map[counterID]bool // counters of sending that were reset meanwhile
	boot     [2]uint64          // of posts
	number   uint64             // of the last post
	swept    time.Duration      // when what has faded was last dropped
	lost     int64              // amounts that will never be charged
}

// counterID names a counter.
type counterID struct{ identity, key string }

func counterOf(c *tidegate.Check) counterID { return counterID{c.Limit.Identity(), c.Key} }

// backlogEntry is what was admitted and still counts: a long outage leaves no more than the
// key has used of its limit in the end. That is what was used here, less what the
// backend knows itself, by this node's share. Both are in events of the fleet.
type backlogEntry struct {
	limit    *tidegate.Limit
	nodes    int64
	admitted int64
	used     float64       // by the local store's reckoning
	last     time.Duration // when that was
	known    float64       // in the backend
	when     time.Duration // when that was
	tries    int           // how often it could not be posted
	urgent   bool
}

// maxEntries bounds how many counters are in the backlog. What is admitted beyond is lost.
const maxEntries = 1 << 16

// amount is how much is to be charged, at a time from last on.
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

// faded reports whether nothing of d can count any more.
func (d *backlogEntry) faded(start time.Time, now time.Duration) bool {
	return d.fade(float64(d.limit.Capacity()), start, d.last, now) == 0
}

// reckoned is the time as of which d counts: what fades during an outage does not fade any
// more once the backend is asked again, since others use that by then. reachable is when
// that was; now, if it is not.
func (d *backlogEntry) reckoned(now, reachable time.Duration) time.Duration {
	return max(d.last, min(now, reachable))
}

// add notes what was admitted for c, of which charged was charged to the local store. Both
// are negative when it was returned. used is what the local store says is used, with it.
func (b *backlog) add(c *tidegate.Check, admitted, charged, used, nodes int64, now time.Duration) {
	id := counterOf(c)
	d := b.entries[id]
	if d == nil {
		if admitted <= 0 {
			return
		}
		// What was used here before is used there as well: earlier backlogs have been posted.
		d = &backlogEntry{known: float64(max(0, used-charged)), when: now, last: now}
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
	b.markUrgent(id, d)
}

// enter adds a new entry, if there is room.
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

// markUrgent has the backlog of a key that is used up posted before the rest.
func (b *backlog) markUrgent(id counterID, d *backlogEntry) {
	if d.urgent || d.used+float64(d.nodes) <= float64(d.limit.Capacity()) {
		return
	}
	if len(b.urgent) >= maxUrgent { // those of entries that have gone stay until they are taken
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

// maxUrgent bounds how many counters wait to be posted first, those included that
// have faded since: during an outage nobody takes them out.
const maxUrgent = 2 * maxEntries

// reconcile reckons anew with a counter of which known events turned out to be used in
// the backend. It returns what is used in all.
func (b *backlog) reconcile(id counterID, known float64, nodes int64, now, reachable time.Duration) float64 {
	sent := float64(b.doubtful[id].amount * nodes) // which the backend may not know of
	d := b.entries[id]
	if d == nil {
		return known + sent
	}
	d.admitted = max(0, d.amount(b.start, d.reckoned(now, reachable)))
	d.used = known + sent + float64(d.admitted*nodes)
	d.known, d.when, d.last = known, now, now
	return d.used
}

// sweep drops what has faded, now and then, and reports whether there is room.
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

// forget drops the entries of counters. Their posts that are out may arrive, and are not sent again.
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

// some reports whether something is still to be charged.
func (b *backlog) some() bool { return len(b.entries)+len(b.doubtful) > 0 }

// counters is how many counters something is still to be charged to.
func (b *backlog) counters() int {
	n := len(b.entries)
	for id := range b.doubtful {
		if b.entries[id] == nil {
			n++
		}
	}
	return n
}
