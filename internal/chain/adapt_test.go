package chain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// Adapted, a store answers what it did before.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return chain.Adapt(memory.Open(memory.Config{Now: now}))
	}, storetest.Brief())
}

// What a store lacks is said to be lacking, and what it has is kept.
func TestAdaptFillsIn(t *testing.T) {
	ctx := context.Background()
	f := func(s tidegate.Store, want error) {
		t.Helper()
		b := chain.Adapt(s)
		_, reserve := b.Reserve(ctx, nil, time.Hour)
		for i, err := range []error{reserve, b.Renew(ctx, tidegate.Receipt{}, nil), b.Reset(ctx, nil)} {
			if !errors.Is(err, want) {
				t.Errorf("%d: %v, want %v", i, err, want)
			}
		}
		if chain.Adapt(b) != b || b.MaxBatch() != 1 {
			t.Errorf("a Backend was adapted, or takes %d at once", b.MaxBatch())
		}
		l := tidegate.PerMinute(2)
		asks := []chain.Ask{
			{Checks: []tidegate.Check{{Key: "a", Limit: l, Cost: 1}}, Copies: 3},
			{Checks: []tidegate.Check{{Key: "b", Limit: l, Cost: -1}}, Copies: 1},
			{Checks: []tidegate.Check{{Key: "b", Limit: l, Cost: 1}}, Copies: 1},
		}
		if err := b.TakeBatch(ctx, asks); err != nil || asks[0].Granted.Granted != 2 || asks[1].Err == nil || asks[2].Granted.Granted != 1 {
			t.Errorf("%+v, %v", asks, err)
		}
	}
	f(struct{ tidegate.Store }{memory.New()}, tidegate.ErrUnsupported)
	f(memory.New(), nil)
	bare := chain.Adapt(struct{ tidegate.Store }{memory.New()})
	if err := bare.Settle(ctx, tidegate.Receipt{}, 1); !errors.Is(err, tidegate.ErrUnsupported) {
		t.Errorf("Settle: %v", err)
	}
	if err := bare.Post(ctx, chain.Post{}); !errors.Is(err, tidegate.ErrUnsupported) {
		t.Errorf("Post: %v", err)
	}
}

// A layer that embeds a Backend keeps every ability of it, batches included: none is
// found by a type assertion that a wrapper could hide.
func TestLayersKeepAbilities(t *testing.T) {
	inner := &batching{Backend: chain.Adapt(memory.New())}
	layer := chain.Adapt(struct{ chain.Backend }{struct{ chain.Backend }{inner}})
	if err := layer.TakeBatch(context.Background(), make([]chain.Ask, 3)); err != nil || inner.batches != 1 || layer.MaxBatch() != 32 {
		t.Errorf("%d batches of %d, %v", inner.batches, layer.MaxBatch(), err)
	}
}

type batching struct {
	chain.Backend
	batches int
}

func (b *batching) MaxBatch() int { return 32 }

func (b *batching) TakeBatch(context.Context, []chain.Ask) error {
	b.batches++
	return nil
}
