package lease

import (
	"math"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// supply holds the portions of one group, and decides when to ask for more. Its methods read no
// clock.
type supply struct {
	unit  []tidegate.Check // the checks of the group at a cost of 1, with a copy of the key
	life  time.Duration
	most  int64     // the most events in a portion
	held  []portion // the oldest first
	meter meter

	inFlight bool          // a call for a portion is under way
	trip     time.Duration // how long the last answer took
	came     time.Duration // when the last answer came
	before   time.Duration // no call for a portion before this
	// scarce is true if the last call granted less than it asked for; refusal says why.
	// Requests that no portion answers are then refused until the next call.
	scarce  bool
	refusal tidegate.Decision
	told    time.Duration // when the call was sent to which refusal is the answer
	asked   time.Duration // when a request last came
	reset   bool          // its counters were reset: what a call under way grants is void

	returns []tidegate.Check // the windows of unit, which get back what was not used
	over    []portion        // portions that have ended, to be given back
}

// portion is events that were taken ahead.
type portion struct {
	number uint32 // names it in receipts; never 0
	size   int64  // events when it was granted
	left   int64
	until  time.Duration
	// sent is when the call for it was sent, and granted the answer.
	sent    time.Duration
	granted tidegate.Decision
}

// answer is how a supply answers a request.
type answer uint8

const (
	unknown answer = iota // ask the layer below
	used                  // admitted from a portion
	refused               // the store has just said that too little is left
)

// waste is the part of its life, 1/waste, by which a portion ends early, in case clocks do not run
// at the same speed.
const waste = 64

// use takes the cost of a request from the portions, and returns the first that it was taken from.
func (s *supply) use(cost int64, now time.Duration) (from *portion, a answer) {
	s.asked = now
	if cost > s.largest() { // it must not count as demand: portions would be taken that it does not fit into
		return nil, unknown
	}
	s.meter.add(cost, now, s.life)
	s.expire(now)
	if from = s.spend(cost); from != nil {
		return from, used
	}
	// The refusal holds until shortly after the next call is due, and while that is under way, but
	// not for long.
	if s.scarce && (now < s.before+pause || s.inFlight && now < s.before+s.life/2) {
		return nil, refused
	}
	return nil, unknown
}

// spend takes events from the portions, the oldest first, and returns the first portion that it
// took some from, or nil if all together have too few. What the request puts back goes to that
// portion: it ends first, so no event is used after its life.
func (s *supply) spend(cost int64) (from *portion) {
	var left int64
	for i := range s.held {
		left += s.held[i].left
	}
	if left < cost {
		return nil
	}
	for i := range s.held {
		p := &s.held[i]
		some := min(p.left, cost)
		if p.left -= some; some > 0 && from == nil {
			from = p
		}
		if cost -= some; cost == 0 {
			break
		}
	}
	return from
}

// largest returns the highest cost that is decided from portions.
func (s *supply) largest() int64 { return max(1, s.most/16) }

// expire drops the portions that have ended; those with events for windows go to over.
func (s *supply) expire(now time.Duration) {
	s.held = slices.DeleteFunc(s.held, func(p portion) bool {
		if p.until <= now && p.left > 0 && len(s.returns) > 0 {
			s.over = append(s.over, p)
		}
		return p.until <= now
	})
}

// wants returns for how many requests, of which cost, to take a portion now; 0 means none. Events
// that are taken and not used are lost to all instances, so it returns no more than will almost
// surely be used: the demand of the last life, scaled to the part of a life that remains when the
// answer comes, less what demand may vary by.
func (s *supply) wants(now time.Duration) (copies, cost int64) {
	if s.inFlight || now < s.before {
		return 0, 0
	}
	cost = s.meter.largest()
	comes := float64(s.meter.expect())
	trip := s.trip
	if now-s.came > maxPause { // that is too long ago to go by
		trip = 0
	}
	want := comes * float64(s.life-s.life/waste-trip) / float64(s.life)
	want = min(want-deviations*math.Sqrt(max(want, 0)*float64(cost)), float64(s.most))
	if want < float64(max(least, cost)) {
		return 0, 0
	}
	var usable float64 // how much of what is held will be used before it ends
	for i := range s.held {
		p := &s.held[i]
		usable += min(float64(p.left), 1+comes*float64(p.until-now)/float64(s.life))
	}
	if usable > want/2 {
		return 0, 0
	}
	return max(1, int64(want-usable)/cost), cost
}

// deviations is how many standard deviations are deducted from the expected demand: less than
// the rest comes about once in a hundred lives.
const deviations = 2.5

// Pauses between two calls for a portion. A supply that got less than it asked for pauses for
// longer; otherwise it would ask for each event that refills.
const (
	pause     = 2 * time.Millisecond
	maxPause  = time.Second // so that what others give back is noticed
	shortPart = 4           // 1/shortPart of a life is the least pause after too little was granted
)

// grant adds portion p, the answer to a call for n events; p is empty if the call was refused. rest
// is the refusal of what was not granted. It does nothing after a reset.
func (s *supply) grant(p portion, n int64, rest tidegate.Decision, now time.Duration) {
	if s.reset {
		return
	}
	s.trip, s.came = now-p.sent, now
	s.inFlight, s.scarce, s.before = false, false, p.sent+pause
	s.expire(now)
	if p.left < n {
		s.scarce, s.refusal, s.told = true, rest, p.sent
		s.before = now + max(pause, s.life/shortPart, min(rest.RetryAfter, maxPause))
	}
	if s.trip >= s.life-s.life/waste { // it came too late, and so would the next: decide as if strict for a while
		s.scarce, s.before = false, now+maxPause
	}
	if p.left == 0 {
		return
	}
	if p.until <= now {
		if len(s.returns) > 0 {
			s.over = append(s.over, p)
		}
		return
	}
	if len(s.held) >= maxHeld { // drop an empty one: nothing can be put back to it any more
		if i := slices.IndexFunc(s.held, func(p portion) bool { return p.left == 0 }); i >= 0 {
			s.held = slices.Delete(s.held, i, i+1)
		}
	}
	s.held = append(s.held, p)
}

// maxHeld is how many portions are held before an empty one is dropped. Until then events can be
// put back to it.
const maxHeld = 8

// fail notes that a call for a portion had no answer: for a life, no other is made.
func (s *supply) fail(now time.Duration) {
	s.inFlight, s.scarce, s.before = false, false, now+s.life
}

// returned notes that a window got events back: if they were scarce, it is worth asking again now.
func (s *supply) returned(now time.Duration) {
	if s.scarce {
		s.scarce, s.before = false, now
	}
}

// putBack returns events to the portion they came from, and reports whether they can still
// be used there.
func (s *supply) putBack(number uint32, cost int64, now time.Duration) bool {
	s.expire(now)
	for i := range s.held {
		if p := &s.held[i]; p.number == number {
			p.left += min(cost, p.size-p.left) // no more than was taken from it
			return true
		}
	}
	return false
}

// admitted returns the decision for a request that was admitted from p.
func (p *portion) admitted(now time.Duration) tidegate.Decision {
	d := p.granted
	d.Granted, d.Remaining = 1, d.Remaining+p.left
	d.ResetAfter = max(d.ResetAfter-(now-p.sent), 0)
	d.Receipt.Origin, d.Receipt.Lease = tidegate.OriginLeased, p.number
	return d
}

// refuse returns the decision for a request that is refused, as events are scarce.
func (s *supply) refuse(cost int64, now time.Duration) tidegate.Decision {
	d := s.refusal
	since := now - s.told
	d.RetryAfter = max(d.RetryAfter-since, s.before-now, time.Microsecond)
	d.ResetAfter = max(d.ResetAfter-since, 0)
	d.Remaining = min(d.Remaining, cost-1)
	d.Receipt = tidegate.Receipt{Origin: tidegate.OriginLeased}
	return d
}

// meter measures demand, in events per life of a portion.
type meter struct {
	since time.Duration // when this life began
	count int64         // events in this life
	last  int64         // events in the life before, smoothed after a drop
	// highest costs of a request, in this life and in the one before
	cost, lastCost int64
}

// add counts a request of a cost. If a life has passed, it begins the next one.
func (m *meter) add(cost int64, now, life time.Duration) {
	if passed := now - m.since; passed >= life {
		rate := int64(float64(m.count) * float64(life) / float64(passed))
		if m.last = max(rate, (m.last+3*rate)/4); passed > 2*life {
			m.last = rate
		}
		m.lastCost, m.cost = m.cost, 0
		m.since, m.count = now, 0
	}
	m.count += cost
	m.cost = max(m.cost, cost)
}

// expect estimates how many events the next life will bring.
func (m *meter) expect() int64 { return max(m.last, m.count) }

// largest returns the highest recent cost of a request. Portions are whole multiples of it, so that
// no remainder is lost.
func (m *meter) largest() int64 { return max(m.cost, m.lastCost, 1) }
