package chain

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Adapt returns s as a Backend: as it is if it is one already. What s lacks is filled in:
// TakeBatch calls Take once per ask, s counts as a single server, and all other abilities
// return [tidegate.ErrUnsupported].
func Adapt(s tidegate.Store) Backend {
	if b, ok := s.(Backend); ok {
		return b
	}
	if b, ok := AsShared(s); ok {
		return b
	}
	a := adapted{Store: s, Renewer: lacking{}, Reserver: lacking{}, Resetter: lacking{}, batcher: oneByOne{s}, servers: alone{}, poster: lacking{}}
	if r, ok := s.(tidegate.Renewer); ok {
		a.Renewer = r
	}
	if r, ok := s.(tidegate.Reserver); ok {
		a.Reserver = r
	}
	if r, ok := s.(tidegate.Resetter); ok {
		a.Resetter = r
	}
	if b, ok := s.(batcher); ok {
		a.batcher = b
	}
	if p, ok := s.(servers); ok {
		a.servers = p
	}
	if p, ok := s.(poster); ok {
		a.poster = p
	}
	return a
}

type batcher interface {
	MaxBatch() int
	TakeBatch(ctx context.Context, asks []Ask) error
}

type servers interface {
	Server(l *tidegate.Limit, key string) int
	Servers() []string
	Heard(server int) (heard, asked time.Time)
}

type poster interface {
	Post(ctx context.Context, p Post) error
}

type adapted struct {
	tidegate.Store
	tidegate.Renewer
	tidegate.Reserver
	tidegate.Resetter
	batcher
	servers
	poster
}

// lacking stands in for abilities that a store lacks.
type lacking struct{}

func (lacking) Renew(context.Context, tidegate.Receipt, []tidegate.Check) error {
	return tidegate.ErrUnsupported
}

func (lacking) Reserve(context.Context, []tidegate.Check, time.Duration) (tidegate.Decision, error) {
	return tidegate.Decision{}, tidegate.ErrUnsupported
}

func (lacking) Settle(context.Context, tidegate.Receipt, int64) error {
	return tidegate.ErrUnsupported
}

func (lacking) Reset(context.Context, []tidegate.Check) error { return tidegate.ErrUnsupported }

func (lacking) Post(context.Context, Post) error { return tidegate.ErrUnsupported }

// alone describes a store that is a single server.
type alone struct{}

func (alone) Server(*tidegate.Limit, string) int { return 0 }

func (alone) Servers() []string { return theStore }

func (alone) Heard(int) (heard, asked time.Time) { return time.Time{}, time.Time{} }

var theStore = []string{"the store"}

// oneByOne decides the asks of a batch with one call of Take each.
type oneByOne struct{ store tidegate.Store }

func (oneByOne) MaxBatch() int { return 1 }

func (o oneByOne) TakeBatch(ctx context.Context, asks []Ask) error {
	return TakeEach(ctx, o.store, asks)
}

// TakeEach decides the asks of a batch with one call of Take each. It is the TakeBatch of layers that do
// not batch.
func TakeEach(ctx context.Context, store tidegate.Store, asks []Ask) error {
	for i := range asks {
		a := &asks[i]
		a.Rest = tidegate.Decision{}
		a.Granted, a.Err = store.Take(ctx, a.Checks, a.Copies)
	}
	return nil
}
