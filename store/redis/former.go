package redis

import (
	"context"
	"sync"
)

// While shards are being added or removed, a key that moves is decided by its former owner as
// well as by its present one, and charged to both. So gateways with the old list and with the
// new one share a counter at every moment, and whoever had used up a budget finds it used up:
// by the former owner at first, and by the present one when a period is over.
//
// A former owner that does not answer is left out: it may be the server that is to go.

// owners has the former endpoint of every slot that has moved; nil for one that has not.
type owners [slotCount]*endpoint

// formerOwners compares a topology with what it would be of former shards.
func formerOwners(now *topology, former []*endpoint) *owners {
	before := shardTopology(former)
	moved := new(owners)
	for slot, m := range before.owners {
		if m.endpoint != now.owners[slot].endpoint {
			moved[slot] = m.endpoint
		}
	}
	return moved
}

// formerOf returns the endpoint that a key lived on before; nil if it has not moved.
func (s *Store) formerOf(key string) *endpoint {
	if s.former == nil {
		return nil
	}
	return s.former[slotOfKey(key)]
}

// withFormer returns subjects and, before each one that has moved, a copy of it for its former owner,
// unless that owner is left out.
func (s *Store) withFormer(subjects []*subject) []*subject {
	if s.former == nil {
		return subjects
	}
	all := make([]*subject, 0, 2*len(subjects))
	for _, sub := range subjects {
		if at := s.formerOf(sub.pending[0].key); at != nil && !at.leftOut() {
			copies := make([]pendingCheck, len(sub.pending))
			old := &subject{tag: sub.tag, former: at, of: sub}
			for i, p := range sub.pending {
				copies[i] = *p
				old.pending = append(old.pending, &copies[i])
			}
			all = append(all, old)
		}
		all = append(all, sub)
	}
	return all
}

// askSubject asks the server that sub is for: its owner, or a former owner, but the latter only until it
// is gone. If a former owner does not answer, slots that it may have taken are given back.
func (s *Store) askSubject(ctx context.Context, sub *subject, o takeParams) (grant, error) {
	if sub.former == nil {
		return s.ask(ctx, sub.pending, o)
	}
	own, end := sub.former.untilGone(ctx)
	defer end()
	o.at = sub.former
	g, err := s.ask(own, sub.pending, o)
	if err != nil {
		s.abandon(ctx, sub.pending, o)
	}
	return g, err
}

// formerTag returns the key in Apart.At for what was charged to the former owner of a tag. No tag
// begins with ~.
func formerTag(tag string) string { return "~" + tag }

// besides calls do, which makes changes at the present owners. At the same time it makes those of
// counters that have moved at their former owners as well, and ignores what fails there. It returns the
// error of do.
func (s *Store) besides(ctx context.Context, changes []change, do func() error) error {
	var former []change
	for _, c := range changes {
		if at := s.formerOf(c.key); at != nil && !at.leftOut() {
			c.former = true
			former = append(former, c)
		}
	}
	if len(former) == 0 {
		return do()
	}
	var both sync.WaitGroup
	for _, some := range byPlace(former) {
		both.Go(func() {
			ctx, end := s.whereOf(&some[0]).untilGone(ctx)
			defer end()
			_, _, _ = s.apply(ctx, some, recordAction{})
		})
	}
	err := do()
	both.Wait()
	return err
}
