package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// remembered is the data that [Live.Remember] returns.
type remembered struct {
	Ledger ledger                  `json:"ledger"`
	Before []rememberedPredecessor `json:"before,omitempty"`
}

// rememberedPredecessor is a predecessor of the limits with the identity Of.
type rememberedPredecessor struct {
	Of      string           `json:"of"`
	Counter counter          `json:"counter"`
	Tiers   []rememberedTier `json:"tiers,omitempty"` // those of which it was another limit
	Until   time.Time        `json:"until"`
}

// rememberedTier is what a predecessor was for the limit that has these numbers now.
type rememberedTier struct {
	Events   int64   `json:"events"`
	Capacity int64   `json:"capacity"`
	Counter  counter `json:"counter"`
}

func (p *predecessor) remembered(of string) rememberedPredecessor {
	b := rememberedPredecessor{Of: of, Counter: counter{limit: p.limit}, Until: p.until}
	for n, was := range p.tiers {
		if was != p.limit {
			b.Tiers = append(b.Tiers, rememberedTier{n.events, n.capacity, counter{limit: was}})
		}
	}
	return b
}

// predecessor returns nil if b names no limit.
func (b *rememberedPredecessor) predecessor() *predecessor {
	if b.Counter.limit == nil {
		return nil
	}
	p := &predecessor{limit: b.Counter.limit, until: b.Until, tiers: make(map[numbers]*tidegate.Limit)}
	for _, t := range b.Tiers {
		if was := t.Counter.limit; was != nil && was.Identity() == p.limit.Identity() {
			p.tiers[numbers{t.Events, t.Capacity}] = was
		}
	}
	return p
}

// maxRemembered bounds the counters that Remember records, and maxRememberedBytes the data that Recall
// reads.
const (
	maxRemembered      = 20_000
	maxRememberedBytes = 64 << 20
)

// ErrTooManyLimits is returned by [Live.Remember] for rules with more counters than it can record.
var ErrTooManyLimits = errors.New("the rules make too many limits to be remembered")

// Remember records which counters the rules in force use, for [Live.Recall] in a process that
// continues with them.
func (l *Live) Remember() ([]byte, error) {
	f := l.force.Load()
	m := remembered{Ledger: f.set.ledger()}
	n := 0
	for _, a := range m.Ledger {
		for i := range a.Plans {
			for _, all := range a.Plans[i].By {
				n += len(all)
			}
		}
	}
	if n > maxRemembered {
		return nil, ErrTooManyLimits
	}
	if f.before != nil {
		for identity, all := range f.before.of {
			for _, p := range all {
				m.Before = append(m.Before, p.remembered(identity))
			}
		}
	}
	return json.Marshal(m)
}

// Recall treats the rules that another process had in force, as recorded by its [Live.Remember], as
// the predecessors of the current ones, like those that Swap replaces. It returns which counters do
// not simply continue.
func (l *Live) Recall(data []byte) ([]Change, error) {
	var m remembered
	if len(data) > maxRememberedBytes {
		return nil, fmt.Errorf("recall rules: %d bytes are too many", len(data))
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("recall rules: %w", err)
	}
	var had predecessors
	for _, b := range m.Before {
		if p := b.predecessor(); p != nil {
			had.add(b.Of, p)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.force.Load()
	s := newSuccession(m.Ledger, f.set.ledger(), &had, f.set.config.now())
	if f.before != nil {
		for identity, all := range f.before.of {
			for _, p := range all {
				s.before.add(identity, p)
			}
		}
	}
	next := *f
	next.before = s.before.end()
	l.force.Store(&next)
	return s.changes, nil
}
