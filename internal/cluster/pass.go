package cluster

import (
	"context"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// pass has do call the inner store, and waits for it as long as the caller does.
func (s *Store) pass(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.begin() {
		return ErrBusy
	}
	var err error
	done := make(chan struct{}, 1)
	s.hands.run(func() {
		err = safely(s.deadline(), do)
		s.flying.Add(-1)
		done <- struct{}{}
	})
	if left := s.patient(ctx, done); left != nil {
		return left
	}
	return err
}

// patient waits for done, and returns why it no longer does.
func (s *Store) patient(ctx context.Context, done <-chan struct{}) error {
	if _, ok := ctx.Deadline(); ok {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-done:
		return nil
	case <-s.deadline().Done():
		return s.late
	case <-ctx.Done():
		return ctx.Err()
	}
}

func safely(ctx context.Context, do func(context.Context) error) (err error) {
	defer recovered(&err)
	return do(ctx)
}

// copied is checks in memory of their own.
func copied(checks []tidegate.Check) []tidegate.Check {
	var v vector
	v.copy(checks)
	return v.checks
}

// Adjust implements tidegate.Store.
func (s *Store) Adjust(ctx context.Context, at int64, checks []tidegate.Check) error {
	checks = copied(checks)
	return s.pass(ctx, func(ctx context.Context) error {
		defer s.returned(checks)
		return s.inner.Adjust(ctx, at, checks)
	})
}

// returned forgets the refusals of those that got something back.
func (s *Store) returned(checks []tidegate.Check) {
	for i := range checks {
		if c := &checks[i]; c.Cost < 0 && c.Limit != nil {
			s.deny.drop(s.deny.counter(c.Limit, c.Key), s.clock())
		}
	}
}

// Renew implements tidegate.Renewer.
func (s *Store) Renew(ctx context.Context, at int64, checks []tidegate.Check) error {
	r, ok := s.inner.(tidegate.Renewer)
	if !ok {
		return tidegate.ErrUnsupported
	}
	checks = copied(checks)
	return s.pass(ctx, func(ctx context.Context) error { return r.Renew(ctx, at, checks) })
}

// Reserve implements tidegate.Reserver. It is always asked for by itself.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, string, error) {
	r, ok := s.inner.(tidegate.Reserver)
	if !ok {
		return tidegate.Decision{}, "", tidegate.ErrUnsupported
	}
	type answer struct {
		d  tidegate.Decision
		id string
	}
	a, own := new(answer), copied(checks)
	err := s.pass(ctx, func(ctx context.Context) (err error) {
		a.d, a.id, err = r.Reserve(ctx, own, ttl)
		return err
	})
	if err != nil {
		return tidegate.Decision{}, "", err
	}
	for i := range checks {
		checks[i].Over = own[i].Over
	}
	return a.d, a.id, nil
}

// Settle implements tidegate.Reserver. Whose it is only the inner store knows; what it
// gives back may be refused for up to a second more.
func (s *Store) Settle(ctx context.Context, id string, actual int64) error {
	r, ok := s.inner.(tidegate.Reserver)
	if !ok {
		return tidegate.ErrUnsupported
	}
	id = strings.Clone(id)
	return s.pass(ctx, func(ctx context.Context) error { return r.Settle(ctx, id, actual) })
}

// Reset implements tidegate.Resetter. Every refusal is forgotten, those of calls that
// are under way included.
func (s *Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	r, ok := s.inner.(tidegate.Resetter)
	if !ok {
		return tidegate.ErrUnsupported
	}
	checks = copied(checks)
	return s.pass(ctx, func(ctx context.Context) error {
		defer s.Forget()
		return r.Reset(ctx, checks)
	})
}
