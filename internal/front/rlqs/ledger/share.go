package ledger

import "time"

// share is what one node has been assigned.
type share struct {
	node   Node
	closed bool // the node is gone, and its assignments may still be in use
	demand demand
	next   time.Duration // when its next assignment is due

	assigned bool
	changed  time.Duration // when the last epoch began
	now      epoch         // the last one
	old      []epoch       // earlier ones that may still be in use
	paid     coverage      // for limits that are paid ahead
}

// epoch is the time in which a node keeps one strategy.
type epoch struct {
	Strategy
	until time.Duration // it is outstanding until then
	free  time.Duration // sending it again before then extends it
	pace  float64       // for limits that are paid ahead: the rate that is paid, per second
}

// perSecond returns the outstanding rate, the highest of all epochs: the node uses one at a time.
func (s *share) perSecond() float64 {
	most := s.now.perSecond()
	for i := range s.old {
		most = max(most, s.old[i].perSecond())
	}
	return most
}

// tokens returns the sum of the sizes of all outstanding buckets.
func (s *share) tokens() int64 {
	all := s.now.Max
	for i := range s.old {
		all += s.old[i].Max
	}
	return all
}

// expire drops epochs that are no longer in use.
func (s *share) expire(now time.Duration) {
	kept := s.old[:0]
	for _, e := range s.old {
		if e.until > now {
			kept = append(kept, e)
		}
	}
	s.old = kept
	if s.now.until <= now {
		s.now = epoch{}
	}
}

// begin starts a new epoch.
func (s *share) begin(e epoch) {
	if !s.now.Denies() {
		s.old = append(s.old, s.now)
	}
	s.now, s.assigned = e, true
}

// empty reports whether nothing is outstanding.
func (s *share) empty() bool { return s.now.Denies() && len(s.old) == 0 }
