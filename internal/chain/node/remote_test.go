package node

import (
	"context"
	"fmt"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// send has do done at a server, and waits for the answer as long as ctx lasts. What has arrived is
// done, whether somebody still waits for it or not. there and back wait for as long as a message
// takes, and report whether it arrives.
func send(ctx context.Context, there, back func() bool, do func()) error {
	answered := make(chan struct{})
	go func() {
		if !there() {
			return
		}
		if do(); back() {
			close(answered)
		}
	}()
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remote is a server with counters, and the way to it.
type remote struct {
	chain.Backend // for what is not below
	store         *memory.Store
	there, back   func() bool
	most          int // in a batch

	mu     sync.Mutex
	posted map[string]uint64 // the last number of each process
	doubt  map[string]int64  // what calls without an answer were about, by counter
}

// newRemote returns a server to which no message gets lost.
func newRemote(most int, there, back func()) *remote {
	arrives := func(wait func()) func() bool { return func() bool { wait(); return true } }
	store := memory.New()
	return &remote{
		Backend: chain.Adapt(store), store: store, there: arrives(there), back: arrives(back), most: most,
		posted: map[string]uint64{}, doubt: map[string]int64{},
	}
}

// unanswered notes that nobody can know what became of checks.
func (r *remote) unanswered(checks []tidegate.Check, copies int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range checks {
		r.doubt[counterName(&checks[i])] += max(checks[i].Cost, -checks[i].Cost) * int64(copies)
	}
}

// used is what the server says is used, and what calls without an answer were about.
func (r *remote) used(c tidegate.Check) (used, doubt int64) {
	d, _ := r.store.Take(context.Background(), []tidegate.Check{{Key: c.Key, Limit: c.Limit}}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.Limit.Capacity() - d.Remaining, r.doubt[counterName(&c)]
}

func (r *remote) MaxBatch() int { return r.most }

func (r *remote) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	own := make([]chain.Ask, len(asks))
	for i := range asks {
		own[i] = chain.Ask{Checks: copied(asks[i].Checks), Copies: asks[i].Copies}
	}
	err := send(ctx, r.there, r.back, func() {
		for i := range own {
			a := &own[i]
			a.Granted, a.Err = r.store.Take(context.Background(), a.Checks, a.Copies)
			if a.Err == nil && a.Granted.OK && a.Granted.Granted < int64(a.Copies) {
				a.Rest, a.Err = r.store.Take(context.Background(), a.Checks, 1)
			}
		}
	})
	for i := range own {
		if err != nil {
			r.unanswered(own[i].Checks, own[i].Copies)
			continue
		}
		asks[i].Granted, asks[i].Rest, asks[i].Err = own[i].Granted, own[i].Rest, own[i].Err
	}
	return err
}

func (r *remote) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	asks := []chain.Ask{{Checks: checks, Copies: n}}
	if err := r.TakeBatch(ctx, asks); err != nil {
		return tidegate.Decision{}, err
	}
	return asks[0].Granted, asks[0].Err
}

func (r *remote) Adjust(ctx context.Context, receipt tidegate.Receipt, checks []tidegate.Check) error {
	checks = copied(checks)
	err := send(ctx, r.there, r.back, func() { _ = r.store.Adjust(context.Background(), receipt, checks) })
	if err != nil {
		r.unanswered(checks, 1)
	}
	return err
}

func (r *remote) Post(ctx context.Context, p chain.Post) error {
	checks := copied([]tidegate.Check{p.Check})
	return send(ctx, r.there, r.back, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if name := fmt.Sprint(p.Boot, counterName(&checks[0])); r.posted[name] < p.Number {
			r.posted[name] = p.Number
			_ = r.store.Adjust(context.Background(), tidegate.Receipt{}, checks)
		}
	})
}
