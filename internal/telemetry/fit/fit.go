// Package fit finds out whether the number of a limit suits the callers that it refuses: whether
// they want slightly more than the limit or many times that, in bursts or all the time. It looks
// only at refusals, so that admitted requests cost nothing, and at a sample of the keys if there
// are many, so that its memory is bounded.
//
// It does not change limits, and proves nothing: it sees one process, and only keys that were
// refused. Start with [New].
package fit

import (
	"hash/maphash"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

const (
	// maxLimits is how many limits are observed, and maxKeys how many keys of each.
	maxLimits = 1000
	maxKeys   = 256
	// ShortClump is the longest duration of a clump, a burst of refusals, that a larger burst could
	// have admitted.
	ShortClump = 2 * time.Second
	// clumpGap is how long a key has to be quiet for the next refusal to begin a new clump.
	clumpGap = 2 * time.Second
	// maxClumps is how many of the last short clumps of a limit are remembered.
	maxClumps = 512
)

// Fit observes refusals. It is safe for concurrent use.
type Fit struct {
	seed  maphash.Seed
	began time.Time

	mu     sync.RWMutex
	limits map[number]*seen // under mu
}

// number identifies a limit of a rule including its numbers: what was seen under one number says
// little about another.
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

// New returns a Fit that begins to observe now.
func New(now time.Time) *Fit {
	return &Fit{seed: maphash.MakeSeed(), began: now, limits: make(map[number]*seen)}
}

// seen is what was observed of a limit.
type seen struct {
	limit *tidegate.Limit

	mu       sync.Mutex
	last     time.Time // last refusal; under mu, like all below
	refusals int64
	zeros    uint            // keys are sampled whose hashes end in that many zero bits
	keys     map[uint64]*key // by hash
	sampled  sample
}

// sample is what was observed of the sampled keys.
type sample struct {
	clumps    int64
	short     int64 // refusals in clumps that have ended and were short
	ended     int64 // refusals in clumps that have ended
	sizes     [maxClumps]uint32
	sizesSeen int64
}

// key is a key that was refused.
type key struct {
	window  int64 // the period of its last refusal
	refused int64 // refusals in that period
	most    float64
	from    time.Time // start of the clump
	last    time.Time
	clump   int64 // refusals in the clump
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

// Refused records a refusal d with the checks of its request. It keeps neither.
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

// counted reports whether a limit allows a number of events per time.
func counted(l *tidegate.Limit) bool {
	switch l.Algorithm {
	case tidegate.Deny, tidegate.Concurrency, tidegate.Quota:
		return false
	}
	return l.Period > 0 && (l.Terms == nil || l.Terms.Role != tidegate.Blocks)
}

// of returns what was observed of a limit; nil if there are too many limits.
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

// add counts a refusal of a key with that hash.
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

// thin halves the sample from now on.
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
	// The limit is used up, so about as much as it allows was admitted in the same period.
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

// endClump counts the clump of a key that has become quiet.
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
