package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// cluster is a node's way to servers that fail one by one. A request over several of them
// is decided by one after the other, and what was charged for one that is refused in the
// end is given back.
type cluster struct {
	servers []*faulty

	mu    sync.Mutex
	homes map[string]int // by key; the default is 0
	names []string
}

func newCluster(names ...string) *cluster {
	c := &cluster{homes: map[string]int{}, names: names}
	for range names {
		c.servers = append(c.servers, &faulty{})
	}
	return c
}

// move has a key live on a server.
func (c *cluster) move(server int, keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		c.homes[k] = server
	}
	c.names = slices.Clone(c.names)
}

func (c *cluster) Server(l *tidegate.Limit, key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.Name == probing.Name { // one of each is found
		return int(key[len(key)-1]-'0') % len(c.servers)
	}
	return c.homes[key]
}

func (c *cluster) Servers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names
}

// Heard says that those that nothing is the matter with are never silent.
func (c *cluster) Heard(i int) (heard, asked time.Time) {
	s := c.servers[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != none {
		return time.Time{}, time.Time{}
	}
	return time.Now(), time.Time{}
}

// each calls do with the checks of each server, until there is an error.
func (c *cluster) each(checks []tidegate.Check, do func(s *faulty, part []tidegate.Check, from []int) error) error {
	for i, s := range c.servers {
		var part []tidegate.Check
		var from []int
		for j := range checks {
			if c.Server(checks[j].Limit, checks[j].Key) == i {
				part, from = append(part, checks[j]), append(from, j)
			}
		}
		if len(part) > 0 {
			if err := do(s, part, from); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cluster) Take(ctx context.Context, checks []tidegate.Check, n int) (told tidegate.Decision, err error) {
	type charge struct {
		s    *faulty
		r    tidegate.Receipt
		back []tidegate.Check
	}
	var charges []charge
	refused := errors.New("refused")
	err = c.each(checks, func(s *faulty, part []tidegate.Check, from []int) error {
		d, err := s.Take(ctx, part, n)
		if err != nil {
			return err
		}
		for i, at := range from {
			checks[at].Over = part[i].Over
		}
		if !d.OK || d.Granted < int64(n) || told.Limit == nil || d.Outranks(&told) {
			told = d
		}
		if d.OK {
			for i := range part {
				part[i].Cost = -part[i].Cost
			}
			charges = append(charges, charge{s, d.Receipt, part})
		}
		if !d.OK {
			return refused
		}
		return nil
	})
	if err != nil {
		for _, ch := range charges {
			_ = ch.s.Adjust(context.Background(), ch.r, ch.back)
		}
	}
	if errors.Is(err, refused) {
		err = nil
	}
	return told, err
}

func (c *cluster) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	return c.each(checks, func(s *faulty, part []tidegate.Check, _ []int) error { return s.Adjust(ctx, r, part) })
}

func (c *cluster) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	return c.each(checks, func(s *faulty, part []tidegate.Check, _ []int) error { return s.Renew(ctx, r, part) })
}

var _ chain.Backend = chain.Adapt(&cluster{})
