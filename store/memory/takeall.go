package memory

import "tidegate.dev/tidegate"

// takeAll decides a vector: all of it or nothing.
func (s *Store) takeAll(checks []tidegate.Check, n int) (tidegate.Decision, error) {
	var one [1]pendingCheck
	var some [8]pendingCheck
	switch len(checks) {
	case 0:
		return tidegate.Decision{OK: true, Granted: int64(n), Receipt: tidegate.Receipt{At: s.clock.now()}}, nil
	case 1:
		return s.decideAll(one[:], checks, n)
	case 2, 3, 4, 5, 6, 7, 8:
		return s.decideAll(some[:len(checks)], checks, n)
	}
	return s.decideAll(make([]pendingCheck, len(checks)), checks, n)
}

// decideAll reads all states and refuses without writing if one of them refuses;
// otherwise it owns all slots, decides again if something has changed, and charges. The clock is
// read after the states, so that nobody is refused for a charge from the future, and again once the
// slots are owned if a state has changed: until then others may have charged at a later time. Unknown
// keys get slots once it is known that there is room for the others: at the memory bound, a refused
// request must not make a key be forgotten.
func (s *Store) decideAll(pending []pendingCheck, checks []tidegate.Check, n int) (d tidegate.Decision, err error) {
	v := vector{checks: checks, pending: pending, copies: int64(n)}
	if err := v.prepare(s, n); err != nil {
		return d, err
	}
	reclaims := 0
	inserts := !v.records || v.countsRejected
	for attempt := 0; ; attempt++ {
		v.find(s)
		origin := s.origin.Load()
		if !v.records {
			v.look()
		}
		if v.now = s.now(); s.origin.Load() != origin { // what was looked at counts from another
			continue
		}
		if !v.records && !v.hasRoom(s) {
			if d = v.refuse(s); !v.confirmed() {
				continue
			}
			v.writeRefused()
			return d, nil
		}
		if inserts {
			if full := v.insertMissing(s); full != nil {
				s.full(&d, full, v.now)
				return d, nil
			}
		}
		if !v.lock(attempt > 0) {
			spin(attempt)
			continue
		}
		if v.changed {
			var failed any
			if v.now, failed = s.clock.tryNow(); failed != nil {
				v.unlock()
				panic(failed)
			}
			if !originCovers(origin, v.now) {
				v.unlock()
				continue
			}
		}
		if !inserts && v.writes && v.unknown() && v.fit(s) > 0 {
			v.unlock()
			inserts = true
			continue
		}
		var short *pendingCheck
		d, short = v.decide(s, reclaims > maxReclaims)
		v.unlock()
		switch {
		case short == nil:
			return d, nil
		case reclaims > maxReclaims:
			s.full(&d, short.lim, v.now)
			return d, nil
		case s.roomForRecord(short.lim, short.old, short.ask, v.now):
			reclaims++
		default:
			reclaims = maxReclaims + 1
		}
	}
}
