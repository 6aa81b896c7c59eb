package redis

import "sync"

// receipts remembers, for requests over several slots of a cluster, when each of their
// subjects was charged: by clocks of different machines, while a Decision has room for
// one time. It is asked when something is given back or renewed, by the process that
// took it; where nothing is known, the time of the Decision is as good as any.
type receipts struct {
	mu   sync.Mutex
	held map[int64][]taken // by Receipt.At
	ring []int64           // in the order they were kept; the oldest go first
	next int
}

type taken struct {
	tag string
	at  int64
}

const (
	maxReceipts = 1 << 14
	// maxNamed is how many copies of one grant are remembered one by one.
	maxNamed = 64
)

// keep remembers a grant of subjects, the last of which gives it its time, and
// returns the time by which it is known. The ticks beyond a µs make that unique.
func (r *receipts) keep(subjects []*subject, copies int64) int64 {
	last := subjects[len(subjects)-1].grant
	at := last.at
	if at%1024 == 0 {
		at += int64(last.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range min(copies, maxNamed) {
		all := make([]taken, len(subjects))
		for j, sub := range subjects {
			all[j] = taken{sub.tag, sub.grant.at}
			if sub.named {
				all[j].at += i
			}
		}
		r.keepLocked(at+i, all)
	}
	return at
}

func (r *receipts) keepLocked(at int64, all []taken) {
	if r.held == nil {
		r.held = make(map[int64][]taken)
		r.ring = make([]int64, maxReceipts)
	}
	delete(r.held, r.ring[r.next])
	r.held[at] = all
	r.ring[r.next] = at
	r.next = (r.next + 1) % maxReceipts
}

// at is when the subject of a key was charged for the Decision that says at.
func (r *receipts) at(at int64, key string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) == 0 {
		return at
	}
	tag := tagOf(key)
	for _, t := range r.held[at] {
		if t.tag == tag {
			return t.at
		}
	}
	return at
}
