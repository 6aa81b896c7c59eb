// Package fit finds out whether the number of a limit fits those who are refused: whether they
// ask for a little more than the limit or for many times that, in clumps or all the time. It
// looks at refusals alone, so that whoever is admitted pays nothing, and at a sample of the keys
// if they are many, so that its memory is bounded.
//
// It does not change limits, and it is no proof: it is of one process, and of keys that were
// refused. Start with [New].
package fit

import (
	"hash/maphash"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

const (
	// maxLimits is how many limits are looked at, and maxKeys how many keys of each.
	maxLimits = 1000
	maxKeys   = 256
	// ShortClump is how long a clump lasts at most that a larger burst can be meant for.
	ShortClump = 2 * time.Second
	// clumpGap is how long a key has to be quiet for the next refusal to begin another clump.
	clumpGap = 2 * time.Second
	// maxClumps is how many of the last short clumps of a rule are remembered.
	maxClumps = 512
)

// Fit watches refusals. It may be used by many goroutines at once.
type Fit struct {
	seed  maphash.Seed
	began time.Time

	mu     sync.RWMutex
	limits map[number]*seen // under mu
}

// number is a limit of a rule with its number. Another number is another limit: what was seen of
// one says little about the other.
type number struct {
	rule, identity string
	events, most   int64
}

func numberOf(l *tidegate.Limit) number {
	name := l.Name
	if l.Terms != nil && l.Terms.Rule != "" {
		name = l.Terms.Rule
	}
	return number{name, l.Identity(), l.Events, l.Capacity()}
}

// New returns a Fit that has seen nothing before now.
func New(now time.Time) *Fit {
	return &Fit{seed: maphash.MakeSeed(), began: now, limits: make(map[number]*seen)}
}

// seen is what was seen of a limit.
type seen struct {
	limit *tidegate.Limit

	mu       sync.Mutex
	last     time.Time // refusal; under mu, as all that follows
	refusals int64
	zeros    uint            // keys are those whose hashes end in so many zeros
	keys     map[uint64]*key // by their hashes
	sampled  sample
}

// sample is what was seen of the keys that are looked at.
type sample struct {
	clumps    int64
	short     int64 // refusals in clumps that have ended and were short
	ended     int64 // refusals in clumps that have ended
	sizes     [maxClumps]uint32
	sizesSeen int64
}

// key is one that was refused.
type key struct {
	window  int64 // the period that it was last refused in
	refused int64 // in that
	most    float64
	from    time.Time // of the clump
	last    time.Time
	clump   int64 // refusals in it
}

// SetLimits forgets limits that are not among those in force.
func (f *Fit) SetLimits(limits []*tidegate.Limit) {
	kept := make(map[number]bool, len(limits))
	for _, l := range limits {
		kept[numberOf(l)] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.limits {
		if !kept[n] {
			delete(f.limits, n)
		}
	}
}

// Refused is told of a refusal by d, of a request that checks were found for. It keeps none of
// them.
func (f *Fit) Refused(checks []tidegate.Check, d *tidegate.Decision, now time.Time) {
	l := d.Limit
	if d.OK || d.Never || d.Err != nil || l == nil || !counted(l) {
		return
	}
	for i := range checks {
		if c := &checks[i]; c.Limit == l || c.Limit != nil && c.Limit.Identity() == l.Identity() {
			if r := f.of(l); r != nil {
				r.add(maphash.String(f.seed, c.Key), c.Cost, now)
			}
			return
		}
	}
}

// counted reports whether a limit has a number of events in a time.
func counted(l *tidegate.Limit) bool {
	switch l.Algorithm {
	case tidegate.Deny, tidegate.Concurrency, tidegate.Quota:
		return false
	}
	return l.Period > 0 && (l.Terms == nil || l.Terms.Role != tidegate.Blocks)
}

// of returns what was seen of a limit; nil if there are too many.
func (f *Fit) of(l *tidegate.Limit) *seen {
	n := numberOf(l)
	f.mu.RLock()
	s := f.limits[n]
	f.mu.RUnlock()
	if s != nil {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s = f.limits[n]; s == nil && len(f.limits) < maxLimits {
		s = &seen{limit: l, keys: make(map[uint64]*key)}
		f.limits[n] = s
	}
	return s
}

// add counts a refusal of a key, by its hash.
func (s *seen) add(hash uint64, cost int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
	s.refusals++
	if !s.looksAt(hash) {
		return
	}
	k := s.keys[hash]
	if k == nil {
		if len(s.keys) >= maxKeys {
			s.thin()
			if !s.looksAt(hash) {
				return
			}
		}
		k = &key{window: -1}
		s.keys[hash] = k
	}
	k.add(s, max(cost, 1), now)
}

func (s *seen) looksAt(hash uint64) bool { return hash&(1<<s.zeros-1) == 0 }

// thin looks at half as many keys from now on.
func (s *seen) thin() {
	for len(s.keys) >= maxKeys {
		s.zeros++
		for hash := range s.keys {
			if !s.looksAt(hash) {
				delete(s.keys, hash)
			}
		}
	}
}

func (k *key) add(s *seen, cost int64, now time.Time) {
	if window := now.UnixNano() / int64(s.limit.Period); window != k.window {
		k.window, k.refused = window, 0
	}
	k.refused += cost
	// What was admitted in the same time is about what the limit allows: it is used up.
	k.most = max(k.most, float64(s.limit.Events+k.refused)/float64(s.limit.Events))
	if k.clump > 0 && now.Sub(k.last) > clumpGap {
		s.sampled.endClump(k)
	}
	if k.clump == 0 {
		k.from = now
	}
	k.last = now
	k.clump += cost
}

// endClump counts the clump of a key that is quiet.
func (s *sample) endClump(k *key) {
	s.clumps++
	s.ended += k.clump
	if k.last.Sub(k.from) < ShortClump {
		s.short += k.clump
		s.sizes[s.sizesSeen%maxClumps] = uint32(min(k.clump, 1<<32-1))
		s.sizesSeen++
	}
	k.clump = 0
}
