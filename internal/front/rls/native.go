package rls

import (
	"context"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/question"
)

// decideNative puts each descriptor to the native rules, as a request whose attributes are its
// entries.
func (s *Server) decideNative(ctx context.Context, c *call) error {
	if s.o.Desk == nil {
		for i := range c.descriptors {
			c.descriptors[i].decision.OK = true
		}
		return nil
	}
	if err := c.own(); err != nil { // rules and logs may keep what they are told
		return err
	}
	for i := range c.descriptors {
		if c.descriptors[i].negative {
			return invalid("descriptor %d gives hits back, which is for domains of files", i)
		}
	}
	if !s.o.Far || len(c.descriptors) == 1 {
		for i := range c.descriptors {
			s.native(ctx, c, i)
		}
	} else {
		var all sync.WaitGroup
		for i := range c.descriptors {
			all.Go(func() {
				defer s.recovered(func(err error) { c.descriptors[i].err = err })
				s.native(ctx, c, i)
			})
		}
		all.Wait()
	}
	for i := range c.descriptors {
		if err := c.descriptors[i].wrong; err != nil {
			return invalid("descriptor %d: %v", i, err)
		}
	}
	return nil
}

// native puts one descriptor to the native rules.
func (s *Server) native(ctx context.Context, c *call, i int) {
	d := &c.descriptors[i]
	d.cost = c.costOf(d)
	q := s.questions.Get().(*question.Question)
	defer s.putQuestion(q)
	c.describe(q, d)
	r, problem, err := q.Request(s.o.Paths)
	switch {
	case err != nil:
		d.wrong = err
		return
	case problem != nil: // no rule can tell what it asks for
		d.decision = tidegate.Decision{Never: true}
	case d.cost == 0:
		d.decision = s.o.Desk.Peek(ctx, r)
	default:
		d.decision = s.o.Desk.Check(ctx, r)
	}
	d.asked = d.decision.Limit != nil
	if d.over = !d.decision.OK; d.over && problem == nil {
		d.slip = s.o.Desk.Slip(r, &d.decision)
	}
}

func (s *Server) putQuestion(q *question.Question) {
	q.Reset()
	s.questions.Put(q)
}

// describe makes a question of a descriptor. Every entry is an attribute by its key; those that
// Envoy has names for describe the request as well.
func (c *call) describe(q *question.Question, d *descriptor) {
	q.Cost = d.cost
	domain := true
	for _, e := range d.entries {
		switch e.Key {
		case "method":
			q.Method = e.Value
		case "path":
			q.Target = e.Value
		case "host":
			q.Host = e.Value
		case "remote_address":
			q.IP = e.Value
		}
		domain = domain && e.Key != "domain"
		q.As = append(q.As, question.Pair{Name: e.Key, Value: e.Value})
	}
	if domain {
		q.As = append(q.As, question.Pair{Name: "domain", Value: c.domain})
	}
}
