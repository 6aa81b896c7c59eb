package node

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// handedPost is a post that may have arrived. The successor sends it again under its name,
// so that it counts once.
type handedPost struct {
	Entry  handedEntry `json:"Debt"` // the name in files of earlier versions
	Amount int64
	Boot   [2]uint64
	Number uint64
	Sent   time.Time
}

// handPostsLocked returns the posts that may have arrived or not, including those under way.
func (s *server) handPostsLocked() (all []handedPost) {
	n := s.node
	add := func(p *post) {
		all = append(all, handedPost{n.handEntry(p.id, p.entry), p.amount, p.boot, p.number, n.toHandOver(p.sent)})
	}
	for _, p := range s.backlog.doubtful {
		add(&p)
	}
	if n.chargesOnce.Load() {
		for i := range s.backlog.sending {
			if p := &s.backlog.sending[i]; !s.backlog.reset[p.id] {
				add(p)
			}
		}
	}
	return all
}

// takeOverPost adds a post of a predecessor to those to be sent again.
func (n *Node) takeOverPost(h *handedPost) {
	l, err := h.Entry.Limit.limit()
	if err != nil { // of a version that knows more
		n.mu.Lock()
		defer n.mu.Unlock()
		n.server(0).backlog.lost++
		return
	}
	id := counterID{l.Identity(), h.Entry.Is()}
	s := n.serverOf(&tidegate.Check{Limit: l, Key: id.key})
	n.mu.Lock()
	defer n.mu.Unlock()
	p := post{
		id: id, entry: n.entryOf(&h.Entry, l), amount: h.Amount,
		boot: h.Boot, number: h.Number, sent: h.Sent.Sub(n.start), doubt: true,
	}
	s.backlog.putBack([]post{p}, 0)
	s.held.note(n.seen.name(l, id.key))
	s.repayLocked()
}

// handedRelease is slots that are to be given back.
type handedRelease struct {
	At     int64
	Handle [2]uint64
	Slots  []handedSlot
}

type handedSlot struct {
	Limit handedLimit
	chain.HandedKey
	Cost int64
}

// handReleasesLocked returns the slots that are to be given back, including those whose release is
// under way: a release can be repeated.
func (s *server) handReleasesLocked() (all []handedRelease) {
	for _, some := range [][]release{s.releasing, s.releases} {
		for i := range some {
			r := &some[i]
			h := handedRelease{At: r.taken.At, Handle: r.taken.Handle}
			for _, c := range r.checks {
				h.Slots = append(h.Slots, handedSlot{handLimit(c.Limit), chain.HandKey(c.Key), c.Cost})
			}
			all = append(all, h)
		}
	}
	return all
}

// takeOverRelease gives slots back that a predecessor could not.
func (n *Node) takeOverRelease(h *handedRelease) {
	var checks []tidegate.Check
	for i := range h.Slots {
		s := &h.Slots[i]
		if l, err := s.Limit.limit(); err == nil { // else their lease runs out
			checks = append(checks, tidegate.Check{Key: s.Is(), Limit: l, Cost: s.Cost})
		}
	}
	if len(checks) > 0 {
		n.releaseEach(tidegate.Receipt{At: h.At, Handle: h.Handle}, checks)
	}
}
