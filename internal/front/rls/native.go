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
	defer s.putQuestions(c)
	for i := range c.descriptors { // all are read before one is charged
		if err := s.question(c, &c.descriptors[i]); err != nil {
			return invalid("descriptor %d: %v", i, err)
		}
	}
	if !s.o.Far || len(c.descriptors) == 1 {
		for i := range c.descriptors {
			s.native(ctx, &c.descriptors[i])
		}
		return nil
	}
	var all sync.WaitGroup
	for i := range c.descriptors {
		d := &c.descriptors[i]
		all.Go(func() {
			defer s.recovered(func(err error) { d.err = err })
			s.native(ctx, d)
		})
	}
	all.Wait()
	return nil
}

// question makes a request of a descriptor; none if no rule can match it. The error is a mistake in what
// the descriptor says.
func (s *Server) question(c *call, d *descriptor) error {
	d.cost = c.costOf(d)
	d.question = s.questions.Get().(*question.Question)
	c.describe(d.question, d)
	r, problem, err := d.question.Request(s.o.Paths)
	if problem == nil {
		d.request = r
	}
	return err
}

// native puts one descriptor to the native rules.
func (s *Server) native(ctx context.Context, d *descriptor) {
	switch {
	case d.request == nil: // no rule can tell what it asks for
		d.decision = tidegate.Decision{Never: true}
	case d.cost == 0:
		d.decision = s.o.Desk.Peek(ctx, d.request)
	default:
		d.decision = s.o.Desk.Check(ctx, d.request)
	}
	d.asked = d.decision.Limit != nil
	if d.over = !d.decision.OK; d.over && d.request != nil {
		d.slip = s.o.Desk.Slip(d.request, &d.decision)
	}
}

// putQuestions returns the questions of a call to their pool.
func (s *Server) putQuestions(c *call) {
	for i := range c.descriptors {
		d := &c.descriptors[i]
		if q := d.question; q != nil {
			d.question, d.request = nil, nil
			q.Reset()
			s.questions.Put(q)
		}
	}
}

// describe fills an empty question with a descriptor.
func (c *call) describe(q *question.Question, d *descriptor) {
	q.Cost = d.cost
	for _, e := range d.entries {
		q.AddEntry(e.Key, e.Value)
	}
	q.AddDomain(c.domain)
}
