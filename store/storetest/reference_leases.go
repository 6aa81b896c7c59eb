package storetest

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// leases is the list of slots in use.
type leases struct {
	held []lease
}

type lease struct {
	name int64
	ends time.Time
}

// settle forgets what has ended, and cuts what ends later than any lease can.
func (s *leases) settle(l *tidegate.Limit, now time.Time) {
	s.held = slices.DeleteFunc(s.held, func(h lease) bool { return !h.ends.After(now) })
	for i := range s.held {
		if longest := now.Add(l.Period); s.held[i].ends.After(longest) {
			s.held[i].ends = longest
		}
	}
	slices.SortStableFunc(s.held, func(a, b lease) int { return a.ends.Compare(b.ends) })
}

func (s *leases) ask(l *tidegate.Limit, now time.Time, q question) answer {
	s.settle(l, now)
	free := l.Events - int64(len(s.held))
	a := answer{ok: q.need() <= free, remaining: max(0, free-q.floor)}
	if n := len(s.held); n > 0 {
		a.reset = s.held[n-1].ends.Sub(now)
	}
	if !a.ok && q.need() <= l.Events {
		a.retry = s.held[q.need()-free-1].ends.Sub(now)
	}
	return a
}

func (s *leases) charge(l *tidegate.Limit, now time.Time, r receipt, cost int64) {
	for range cost {
		s.held = append(s.held, lease{r.copy, now.Add(l.Period)})
	}
}

func (s *leases) giveBack(l *tidegate.Limit, now time.Time, name, cost int64) {
	s.settle(l, now)
	s.held = slices.DeleteFunc(s.held, func(h lease) bool {
		if h.name != name || cost == 0 {
			return false
		}
		cost--
		return true
	})
}

// force does nothing: nobody would hold the slot.
func (s *leases) force(*tidegate.Limit, time.Time, int64) {}

func (s *leases) renew(l *tidegate.Limit, now time.Time, name int64) bool {
	s.settle(l, now)
	found := false
	for i := range s.held {
		if s.held[i].name == name {
			s.held[i].ends, found = now.Add(l.Period), true
		}
	}
	return found
}
