package rlqs

import (
	"context"
	"sync"
	"time"
)

// run sends assignments until Close.
func (s *Server) run() {
	defer close(s.ended)
	tick := time.NewTicker(max(s.o.Times.Renewal()/4, time.Millisecond))
	defer tick.Stop()
	swept := s.now()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		s.followRules()
		s.settleAll()
		s.sendBlankets()
		if now := s.now(); now-swept >= time.Second {
			swept = now
			s.sweep(now)
		}
	}
}

// atOnce is how many accounts use the store at the same time.
const atOnce = 64

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
	work := make(chan *account)
	var workers sync.WaitGroup
	for range min(atOnce, len(all)) {
		workers.Go(func() {
			for a := range work {
				s.settle(a)
			}
		})
	}
	for _, a := range all {
		work <- a
	}
	close(work)
	workers.Wait()
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
		sub.send(update{action: abandon(sub.id), at: now})
	}
}

// maxRefresh is how many buckets the native rules are asked about per tick.
const maxRefresh = 64

// followRules looks up the rules again: those of files after a change, native ones from time to
// time.
func (s *Server) followRules() {
	rules := s.o.Domains()
	now := s.now()
	s.mu.Lock()
	changed := rules != s.rules
	s.rules = rules
	var due []*subscription
	native := 0
	for st := range s.streams {
		for _, sub := range st.subs {
			if !changed {
				if !sub.subject.native || now-sub.found < refresh || native >= maxRefresh {
					continue
				}
				native++
			}
			due = append(due, sub)
		}
	}
	s.mu.Unlock()
	for _, sub := range due {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Times.Delivery)
		s.refind(ctx, sub)
		cancel()
	}
}
