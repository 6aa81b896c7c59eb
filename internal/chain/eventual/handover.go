package eventual

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// handed is a counter as it is handed over. The successor goes on counting under the same Instance, so
// that nothing is counted twice.
type handed struct {
	Spec tidegate.Spec // of the counter
	chain.HandedKey
	Instance   [2]uint64
	Number     uint64
	Generation int64
	Counts     []handedCount
}

type handedCount struct{ Start, End, Over, Own, Sent, Others int64 }

// HandOver sends what is counted, unless the store did not answer lately, and writes all counts to a
// file for the successor of this process. From then on these counts are the successor's, and this
// process counts under new names.
func (s *Store) HandOver(file string) error {
	if !s.queue.isAway(s.elapsed(), s.o.Interval) { // otherwise clients would wait in vain: nobody accepts them meanwhile
		s.Flush()
	}
	var all []handed
	us := s.clock.now().UnixMicro()
	s.table.each(func(c *counter) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dropLocked(us)
		if len(c.counts) == 0 {
			return
		}
		h := handed{Spec: c.limit.CounterSpec(), HandedKey: chain.HandKey(c.name.key), Instance: c.instance, Number: c.number, Generation: c.generation}
		for _, one := range c.counts {
			h.Counts = append(h.Counts, handedCount{one.start, one.end, one.over, one.own, one.sent, one.others})
		}
		all = append(all, h)
		for i := range c.counts {
			c.counts[i].sent = c.counts[i].own
		}
		c.beginAnewLocked()
	})
	s.handed.Store(&all)
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("hand over what is counted of eventual limits: %w", err)
	}
	return nil
}

// Resume undoes HandOver: no successor has taken over.
func (s *Store) Resume() {
	all := s.handed.Swap(nil)
	if all == nil {
		return
	}
	for _, h := range *all {
		limit, err := tidegate.NewLimit(h.Spec)
		if err != nil {
			continue // cannot happen: the Spec is that of a Limit
		}
		c, _ := s.find(&tidegate.Check{Key: h.Is(), Limit: limit})
		if c == nil {
			continue
		}
		for _, one := range h.Counts {
			if unsent := one.Own - one.Sent; unsent > 0 {
				now := c.atLocked(window{one.Start, one.End, one.Over})
				now.own += unsent
				now.others = max(now.others-unsent, 0)
			}
		}
		s.enqueueLocked(c, inTime)
		c.mu.Unlock()
	}
}

// TakeOver reads the file of a predecessor, if it exists, and removes it. Call it before the first
// request.
func (s *Store) TakeOver(file string) error {
	defer os.Remove(file)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var all []handed
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	for i := range all {
		err = errors.Join(err, s.takeOver(&all[i]))
	}
	if err != nil {
		return fmt.Errorf("take over what was counted of eventual limits: %w", err)
	}
	return nil
}

func (s *Store) takeOver(h *handed) error {
	limit, err := tidegate.NewLimit(h.Spec)
	if err != nil {
		return err
	}
	c, full := s.find(&tidegate.Check{Key: h.Is(), Limit: limit})
	if c == nil {
		return full.Err
	}
	defer c.mu.Unlock()
	c.instance, c.number, c.generation = h.Instance, h.Number, h.Generation
	for _, one := range h.Counts {
		*c.atLocked(window{one.Start, one.End, one.Over}) = count{window: window{one.Start, one.End, one.Over}, own: one.Own, sent: one.Sent, others: one.Others}
	}
	us := s.clock.now().UnixMicro()
	if c.unsentLocked(us) > 0 {
		s.enqueueLocked(c, inTime)
	}
	return s.local.Recount(c.name.key, c.limit, c.knownLocked(us))
}
