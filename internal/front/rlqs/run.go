package rlqs

import (
	"context"
	"sync"
	"time"
)

// run sends assignments and follows the rules until Close. Lookups may take long, where the store does, and
// assignments must not wait for them.
func (s *Server) run() {
	defer close(s.ended)
	var follows sync.WaitGroup
	follows.Go(func() { s.often(s.followRules) })
	swept := s.now()
	s.often(func() {
		s.settleAll()
		s.sendBlankets()
		if now := s.now(); now-swept >= time.Second {
			swept = now
			s.sweep(now)
		}
	})
	follows.Wait()
}

// often calls do several times per Renewal until Close.
func (s *Server) often(do func()) {
	tick := time.NewTicker(max(s.o.Times.Renewal()/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
			do()
		}
	}
}

// atOnce is how many accounts or lookups use the store at the same time.
const atOnce = 64

// inParallel calls do for each of all, atOnce at a time.
func inParallel[T any](all []T, do func(T)) {
	work := make(chan T)
	var workers sync.WaitGroup
	for range min(atOnce, len(all)) {
		workers.Go(func() {
			for one := range work {
				do(one)
			}
		})
	}
	for _, one := range all {
		work <- one
	}
	close(work)
	workers.Wait()
}

// settleAll sends what is due for all accounts.
func (s *Server) settleAll() {
	s.mu.Lock()
	all := make([]*account, 0, len(s.accounts))
	for _, a := range s.accounts {
		all = append(all, a)
	}
	s.mu.Unlock()
	if s.o.Store == nil {
		for _, a := range all {
			s.settle(a)
		}
		return
	}
	inParallel(all, s.settle)
}

// sendBlankets renews the assignments of buckets that have no part of a limit.
func (s *Server) sendBlankets() {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		for _, sub := range st.subs {
			if sub.account == nil && sub.next <= now {
				s.sendBlanketLocked(sub, now)
			}
		}
	}
}

// sweep abandons unused buckets and forgets idle accounts.
func (s *Server) sweep(now time.Duration) {
	var unused []*subscription
	s.mu.Lock()
	for st := range s.streams {
		for _, sub := range st.subs {
			if now-sub.heard > silent || now-sub.active > idle {
				unused = append(unused, sub)
			}
		}
	}
	for name, a := range s.accounts {
		if !a.mu.TryLock() { // busy, so not idle
			continue
		}
		if a.refs == 0 && a.ledger.Idle(now) {
			delete(s.accounts, name)
		}
		a.mu.Unlock()
	}
	s.mu.Unlock()
	for _, sub := range unused {
		s.unsubscribe(sub)
		s.sayAbandoned(sub, now)
	}
}

// sayAbandoned makes the proxy forget a bucket, unless it has subscribed to it again: a proxy that has
// forgotten a bucket takes an extension for a full one.
func (s *Server) sayAbandoned(sub *subscription, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub.stream.subs[sub.name] == nil {
		sub.send(update{action: abandon(sub.id), at: now})
	}
}

// maxRefresh is how many buckets whose rules have not changed are looked up per tick.
const maxRefresh = 64

// followRules looks up again what buckets are held to: after a change of the files, and by native
// rules from time to time.
func (s *Server) followRules() {
	rules := s.o.Domains()
	now := s.now()
	s.mu.Lock()
	var due, native []*subscription
	for st := range s.streams {
		for _, sub := range st.subs {
			changed := sub.subject.rules != rules
			switch {
			case !sub.subject.native && changed:
				due = append(due, sub)
			case sub.subject.native && (changed || now-sub.found >= refresh && len(native) < maxRefresh):
				native = append(native, sub)
			}
		}
	}
	s.mu.Unlock()
	refind := func(sub *subscription) {
		select {
		case <-s.closing:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Times.Delivery)
		defer cancel()
		s.refind(ctx, sub)
	}
	for _, sub := range due {
		refind(sub)
	}
	inParallel(native, refind)
}
