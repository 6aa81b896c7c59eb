package lease

import (
	"math"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// supply is what this instance holds of one group's counters, and when it asks for more. Its
// methods read no clock.
type supply struct {
	unit  []tidegate.Check // the group, at a cost of 1, with a key of its own
	life  time.Duration
	most  int64     // events in a portion
	held  []portion // the oldest first
	meter meter

	asking bool          // for a portion
	trip   time.Duration // how long the last answer took,
	came   time.Duration // and when it came
	before time.Duration // not asked again before this
	// scarce: the last time, less was granted than asked for, as refusal says. Until it is
	// asked again, there is none.
	scarce  bool
	refusal tidegate.Decision
	told    time.Duration // when the refusal was told
	asked   time.Duration // when somebody last came
	reset   bool          // its counters are: what it holds, or is asking for, was of before

	returns []tidegate.Check // the part of unit that takes back what was not used: windows
	over    []portion        // not used in time, to be returned
}

// portion is events that were taken ahead.
type portion struct {
	number uint32 // names it in receipts; never 0
	size   int64  // events, of which so many are left
	left   int64
	until  time.Duration
	// sent is from before it was asked for, granted what was answered then.
	sent    time.Duration
	granted tidegate.Decision
}

// answer is what a supply says to a request.
type answer uint8

const (
	unknown answer = iota // ask the layer below
	used                  // from a portion
	refused               // there is nothing, as was just told
)

// waste is how early a portion ends, so that clocks that do not run alike do not matter.
const waste = 64

// use takes the cost of a request from the portions.
func (s *supply) use(cost int64, now time.Duration) (from *portion, a answer) {
	s.asked = now
	if cost > s.largest() { // portions that it does not fit into would be taken for it
		return nil, unknown
	}
	s.meter.add(cost, now, s.life)
	s.expire(now)
	if from = s.spend(cost); from != nil {
		return from, used
	}
	// It is about to be asked for, or just was; if the answer takes long, that says nothing.
	if s.scarce && (now < s.before+pause || s.asking && now < s.before+s.life/2) {
		return nil, refused
	}
	return nil, unknown
}

// spend takes events from the portions, the oldest first, and returns the first that it took
// some from; nil if there are not enough. That one ends first, so what is put back to it is used
// within the life of each event.
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

// largest is the highest cost of a request that is decided from portions.
func (s *supply) largest() int64 { return max(1, s.most/16) }

// expire drops what may not be used any more.
func (s *supply) expire(now time.Duration) {
	s.held = slices.DeleteFunc(s.held, func(p portion) bool {
		if p.until <= now && p.left > 0 && len(s.returns) > 0 {
			s.over = append(s.over, p)
		}
		return p.until <= now
	})
}

// wants is how many requests of which cost to ask for now; 0 means none. What is taken ahead
// and not used is lost, to everybody. So it is no more than will surely come: as many as in
// the last life without what that may vary by, in the time that is left of a life when the
// answer is there.
func (s *supply) wants(now time.Duration) (copies, cost int64) {
	if s.asking || now < s.before {
		return 0, 0
	}
	cost = s.meter.largest()
	comes := float64(s.meter.expect())
	trip := s.trip
	if now-s.came > maxPause { // which may be otherwise by now
		trip = 0
	}
	want := comes * float64(s.life-s.life/waste-trip) / float64(s.life)
	want = min(want-deviations*math.Sqrt(max(want, 0)*float64(cost)), float64(s.most))
	if want < float64(max(least, cost)) {
		return 0, 0
	}
	var usable float64 // of what is held, by when it ends
	for i := range s.held {
		p := &s.held[i]
		usable += min(float64(p.left), 1+comes*float64(p.until-now)/float64(s.life))
	}
	if usable > want/2 {
		return 0, 0
	}
	return max(1, int64(want-usable)/cost), cost
}

// deviations is how many standard deviations less than expected come, once in a hundred lives.
const deviations = 2.5

// Pauses between two asks. Whoever got less than it asked for waits for more to come, or it
// would ask for each event by itself.
const (
	pause     = 2 * time.Millisecond
	maxPause  = time.Second // what somebody else returned is noticed by then
	shortPart = 4           // of a life
)

// grant notes what was granted of n events that were asked for.
func (s *supply) grant(p portion, n int64, rest tidegate.Decision, now time.Duration) {
	if s.reset {
		return
	}
	s.trip, s.came = now-p.sent, now
	s.asking, s.scarce, s.before = false, false, p.sent+pause
	s.expire(now)
	if p.left < n {
		s.scarce, s.refusal, s.told = true, rest, p.sent
		s.before = now + max(pause, s.life/shortPart, min(rest.RetryAfter, maxPause))
	}
	if s.trip >= s.life-s.life/waste { // it came too late, and so would the next: it is strict
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
	if len(s.held) >= maxHeld { // what is put back to it is lost
		if i := slices.IndexFunc(s.held, func(p portion) bool { return p.left == 0 }); i >= 0 {
			s.held = slices.Delete(s.held, i, i+1)
		}
	}
	s.held = append(s.held, p)
}

// maxHeld is how many portions are held before those go that are used up, and might have got
// something back.
const maxHeld = 8

// fail notes that there was no answer: the layer below is asked about each request for a
// while.
func (s *supply) fail(now time.Duration) {
	s.asking, s.scarce, s.before = false, false, now+s.life
}

// returned notes that a window got something back.
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
			p.left += min(cost, p.size-p.left) // not more than was taken
			return true
		}
	}
	return false
}

// admitted is what a request is told that was admitted from p.
func (p *portion) admitted(now time.Duration) tidegate.Decision {
	d := p.granted
	d.Granted, d.Remaining = 1, d.Remaining+p.left
	d.ResetAfter = max(d.ResetAfter-(now-p.sent), 0)
	d.Receipt.Origin, d.Receipt.Lease = tidegate.OriginLeased, p.number
	return d
}

// refuse is what a request is told that is refused.
func (s *supply) refuse(cost int64, now time.Duration) tidegate.Decision {
	d := s.refusal
	since := now - s.told
	d.RetryAfter = max(d.RetryAfter-since, s.before-now, time.Microsecond)
	d.ResetAfter = max(d.ResetAfter-since, 0)
	d.Remaining = min(d.Remaining, cost-1)
	d.Receipt = tidegate.Receipt{Origin: tidegate.OriginLeased}
	return d
}

// meter measures demand, in events per life.
type meter struct {
	since time.Duration
	count int64
	last  int64 // in the life before
	// largest costs of a request, in this life and in the one before
	cost, lastCost int64
}

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

// expect is how many events the next life will bring.
func (m *meter) expect() int64 { return max(m.last, m.count) }

// largest is the highest cost of a request. Portions are whole multiples of it: what is left of
// them would be lost.
func (m *meter) largest() int64 { return max(m.cost, m.lastCost, 1) }
