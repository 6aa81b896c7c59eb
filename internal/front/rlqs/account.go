package rlqs

import (
	"context"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// account is one counter, a limit and a key, divided among its subscribers.
type account struct {
	name string // in Server.accounts
	key  string
	refs int // subscriptions; under Server.mu

	mu     sync.Mutex
	limit  *tidegate.Limit
	ahead  *ledger.Ahead
	ledger *ledger.Ledger
	subs   map[ledger.Node]*subscription
}

// nameOf returns the name of a subject's counter in Server.accounts.
func nameOf(sub *subject) string { return sub.limit.Identity() + "\x00" + sub.key }

func (s *Server) newAccount(sub *subject, now time.Duration) *account {
	a := &account{name: nameOf(sub), key: sub.key, limit: sub.limit, ahead: sub.ahead, subs: make(map[ledger.Node]*subscription)}
	a.ledger = ledger.New(numbers(sub.limit), s.o.Times, sub.ahead, now)
	if s.o.Successor && sub.ahead == nil && now < s.o.Times.Out() {
		a.ledger.OpenAt(s.o.Times.Out())
	}
	return a
}

// join adds a subscription, if it is new. The limit of with replaces that of the account.
func (a *account) join(sub *subscription, with *subject, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if numbers(with.limit) != numbers(a.limit) {
		a.ledger.Change(numbers(with.limit), with.ahead, now)
	}
	a.limit, a.ahead = with.limit, with.ahead
	if a.subs[sub.node] == nil {
		a.subs[sub.node] = sub
		a.ledger.Report(now, sub.node, 0)
	}
}

// leave removes a subscription. Its assignments stay outstanding.
func (a *account) leave(sub *subscription, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.subs, sub.node)
	a.ledger.Close(now, sub.node)
}

// lost tells the ledger that an assignment was not sent.
func (a *account) lost(sub *subscription, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ledger.Lost(now, sub.node)
}

// report adds the requests of a subscription, unless it has left.
func (a *account) report(sub *subscription, n uint64, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.subs[sub.node] != nil {
		a.ledger.Report(now, sub.node, n)
	}
}

// settle sends the assignments of an account that are due.
func (s *Server) settle(a *account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := s.now()
	var ctx context.Context
	cancel := func() {}
	defer func() { cancel() }()
	for _, due := range a.ledger.Tick(now, func(tokens, spare int64) (int64, bool) {
		if ctx == nil {
			ctx, cancel = context.WithTimeout(context.Background(), s.o.Times.Delivery/4)
		}
		return s.pay(ctx, a, tokens, spare)
	}) {
		sub := a.subs[due.Node]
		if sub == nil {
			continue
		}
		u := update{action: assign(sub.id, strategyOf(due.Strategy), s.o.Times.TTL), at: now, kind: bucket}
		switch {
		case due.Denies():
			u.kind = always
			s.counts.denied.Add(1)
		case due.New:
			s.counts.changed.Add(1)
		default:
			u.kind = extension
			s.counts.extended.Add(1)
		}
		sub.send(u)
	}
}

// pay takes tokens from the counter that the fleet shares; see [ledger.Pay].
func (s *Server) pay(ctx context.Context, a *account, tokens, spare int64) (left int64, enough bool) {
	checks := [1]tidegate.Check{{Key: a.key, Limit: a.limit, Cost: tokens, Floor: a.ahead.Floor + spare, Unattended: true}}
	d, err := s.o.Store.Take(ctx, checks[:], 1)
	switch {
	case err != nil:
		return ledger.Away, false
	case d.Err != nil || d.Receipt.Origin == tidegate.OriginLocal:
		return ledger.Away, d.OK
	case d.Receipt.Origin == tidegate.OriginRemembered, !d.OK && d.Remaining == 0 && spare > 0:
		return ledger.Unknown, d.OK // a refusal hides what is left below the floor
	}
	return d.Remaining + spare, d.OK
}
