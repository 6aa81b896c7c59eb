package chain

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Adapt makes a Backend of a store and fills in what that lacks: batches are taken one
// by one, it is one server, other abilities answer [tidegate.ErrUnsupported]. A Backend stays what it is.
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

// lacking has no ability.
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

// alone is one server.
type alone struct{}

func (alone) Server(*tidegate.Limit, string) int { return 0 }

func (alone) Servers() []string { return theStore }

func (alone) Heard(int) (heard, asked time.Time) { return time.Time{}, time.Time{} }

var theStore = []string{"the store"}

// oneByOne takes a batch one after the other.
type oneByOne struct{ store tidegate.Store }

func (oneByOne) MaxBatch() int { return 1 }

func (o oneByOne) TakeBatch(ctx context.Context, asks []Ask) error {
	for i := range asks {
		a := &asks[i]
		a.Rest = tidegate.Decision{}
		a.Granted, a.Err = o.store.Take(ctx, a.Checks, a.Copies)
	}
	return nil
}
