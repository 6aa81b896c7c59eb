package lease

import (
	"context"
	"math"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// ask takes a portion for so many copies of a request with this cost, and adds it to sup. It runs
// on a goroutine of its own: no request waits for it.
func (s *Store) ask(sh *shard, sup *supply, copies, cost int64) {
	checks := slices.Clone(sup.unit)
	for i := range checks {
		checks[i].Cost = cost
	}
	sent := s.now()
	granted, rest, err := s.lender.TakeAhead(context.Background(), checks, int(copies), sup.life)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	if err != nil {
		sup.fail(now)
		return
	}
	p := portion{sent: sent}
	if granted.OK {
		p.number, p.size, p.granted = s.nextLease(), granted.Granted*cost, granted
		p.left = p.size
		p.until = sent + sup.life - sup.life/waste
		if len(sup.returns) > 0 { // events of a window are of no use in the next
			for _, c := range sup.returns {
				at := granted.Receipt.At
				p.until = min(p.until, sent+algo.Duration(algo.SpanAt(c.Limit, at).End*algo.Micro-at))
			}
			time.AfterFunc(p.until-now, func() {
				sh.mu.Lock()
				defer sh.mu.Unlock()
				sup.expire(s.now())
				s.settleLocked(sh, sup)
			})
		}
	}
	if sup.grant(p, copies*cost, rest, now); s.closed.Load() {
		sup.expire(math.MaxInt64)
	} else if sup.scarce {
		time.AfterFunc(sup.before-now, func() { s.askAgain(sh, sup, now) })
	}
	s.settleLocked(sh, sup)
}

// askAgain asks for a portion again after too little was granted, if requests have come after since.
// Until the answer comes, further requests can be refused without asking.
func (s *Store) askAgain(sh *shard, sup *supply, since time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sup.asked > since && !sup.reset {
		s.askLocked(sh, sup, s.now())
	}
}

// askLocked starts a call for a portion if one is wanted.
func (s *Store) askLocked(sh *shard, sup *supply, now time.Duration) {
	copies, cost := sup.wants(now)
	if copies == 0 {
		return
	}
	life := s.life(sup.unit)
	if life == 0 { // there are more instances now: the limit has become strict
		sup.scarce, sup.before = false, now+maxPause
		return
	}
	sup.life = life
	if s.closed.Load() {
		return
	}
	sup.inFlight = true
	s.calls.Go(func() { s.ask(sh, sup, copies, cost) })
}

// nextLease returns the number of the next portion; it is never 0.
func (s *Store) nextLease() uint32 {
	for {
		if n := s.lastLease.Add(1); n != 0 {
			return n
		}
	}
}

// settleLocked starts giving back to windows what was not used of portions that are over.
func (s *Store) settleLocked(sh *shard, sup *supply) {
	for _, p := range sup.over {
		s.calls.Go(func() { s.giveBack(sh, sup, &p) })
	}
	sup.over = nil
}

// giveBack gives what is left of a portion back to the windows in the store.
func (s *Store) giveBack(sh *shard, sup *supply, p *portion) {
	back := make([]tidegate.Check, len(sup.returns))
	for i, c := range sup.returns {
		c.Cost = -p.left
		back[i] = c
	}
	_ = s.Backend.Adjust(context.Background(), p.granted.Receipt, back) // if it fails, the events are lost with their window
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sup.returned(s.now())
}
