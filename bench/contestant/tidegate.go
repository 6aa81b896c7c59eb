package contestant

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// roomy is a bound that no rig of this module reaches: here the cost of a
// decision is measured, and the bound has a rig of its own.
const roomy = 8 << 30

// Tidegate returns the ways to ask Tidegate's memory store, one check at a time:
// the store itself by each algorithm, and the Limiter most callers use.
func Tidegate() []Contestant {
	all := []Contestant{Take(tidegate.TokenBucket), Allow()}
	for _, a := range []tidegate.Algorithm{
		tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog,
	} {
		all = append(all, Take(a))
	}
	return all
}

// Take is Store.Take with one check of the given algorithm.
func Take(a tidegate.Algorithm) Contestant {
	c := Contestant{
		Name: "Tidegate Store.Take, " + a.String(),
		Make: func(q Quota) func() Run {
			store := memory.Open(memory.Config{MaxBytes: roomy})
			limit := limitOf(a, q)
			return func() Run { return takeOne(store, limit) }
		},
	}
	if a == tidegate.SlidingLog {
		c.MaxEvents = tidegate.MaxLogEvents
	}
	return c
}

func takeOne(store tidegate.Store, limit *tidegate.Limit) Run {
	ctx := context.Background()
	checks := []tidegate.Check{{Limit: limit, Cost: 1}}
	return func(keys []string) (admitted int) {
		for _, key := range keys {
			checks[0].Key = key
			d, err := store.Take(ctx, checks, 1)
			if err == nil && d.OK {
				admitted++
			}
		}
		return admitted
	}
}

// Default is Store.Take by the algorithm that a user gets who names none.
func Default() Contestant {
	return Contestant{
		Name: "Tidegate Store.Take, the default algorithm",
		Make: func(q Quota) func() Run {
			store := memory.Open(memory.Config{MaxBytes: roomy})
			limit := tidegate.MustLimit(tidegate.Spec{Name: "bench", Events: q.Events, Period: q.Period})
			return func() Run { return takeOne(store, limit) }
		},
	}
}

// OfMany is Store.Take with one check of a token bucket, by each of n limits in turn.
func OfMany(n int) Contestant {
	return Contestant{
		Name: fmt.Sprintf("Tidegate Store.Take, %d limits in turn", n),
		Make: func(q Quota) func() Run {
			store := memory.Open(memory.Config{MaxBytes: roomy})
			limits := namedLimits(n, q)
			return func() Run { return takeInTurn(store, limits) }
		},
	}
}

func takeInTurn(store tidegate.Store, limits []*tidegate.Limit) Run {
	ctx := context.Background()
	checks := make([]tidegate.Check, 1)
	next := 0
	return func(keys []string) (admitted int) {
		for _, key := range keys {
			checks[0] = tidegate.Check{Key: key, Limit: limits[next], Cost: 1}
			if next++; next == len(limits) {
				next = 0
			}
			d, err := store.Take(ctx, checks, 1)
			if err == nil && d.OK {
				admitted++
			}
		}
		return admitted
	}
}

// Multi is Store.Take with a check of each of n token buckets for every key. If refused is set, the
// last of them is used up after one request.
func Multi(n int, refused bool) Contestant {
	name := fmt.Sprintf("Tidegate Store.Take, %d limits at once", n)
	if refused {
		name += ", refused"
	}
	return Contestant{
		Name: name,
		Make: func(q Quota) func() Run {
			store := memory.Open(memory.Config{MaxBytes: roomy})
			limits := namedLimits(n, q)
			if refused {
				limits[n-1] = limitOf(tidegate.TokenBucket, Quota{Events: 1, Period: 24 * time.Hour, Burst: 1})
			}
			return func() Run { return takeAll(store, limits) }
		},
	}
}

func takeAll(store tidegate.Store, limits []*tidegate.Limit) Run {
	ctx := context.Background()
	checks := make([]tidegate.Check, len(limits))
	for i, l := range limits {
		checks[i] = tidegate.Check{Limit: l, Cost: 1}
	}
	return func(keys []string) (admitted int) {
		for _, key := range keys {
			for i := range checks {
				checks[i].Key = key
			}
			d, err := store.Take(ctx, checks, 1)
			if err == nil && d.OK {
				admitted++
			}
		}
		return admitted
	}
}

func namedLimits(n int, q Quota) []*tidegate.Limit {
	limits := make([]*tidegate.Limit, n)
	for i := range limits {
		limits[i] = tidegate.MustLimit(tidegate.Spec{Name: fmt.Sprint("bench ", i), Events: q.Events, Period: q.Period, Burst: q.Burst, Algorithm: tidegate.TokenBucket})
	}
	return limits
}

// Allow is Limiter.Allow on a token bucket.
func Allow() Contestant {
	return Contestant{
		Name: "Tidegate Limiter.Allow, token_bucket",
		Make: func(q Quota) func() Run {
			lim := tidegate.New(memory.Open(memory.Config{MaxBytes: roomy}), limitOf(tidegate.TokenBucket, q))
			ctx := context.Background()
			return shared(func(keys []string) (admitted int) {
				for _, key := range keys {
					if lim.Allow(ctx, key).OK {
						admitted++
					}
				}
				return admitted
			})
		},
	}
}

// Batch is Store.Take with n checks of different keys at once, all charged or
// none; Run wants a multiple of n keys.
func Batch(n int) Contestant {
	return Contestant{
		Name: fmt.Sprintf("Tidegate Store.Take, %d checks at once", n),
		Make: func(q Quota) func() Run {
			store := memory.Open(memory.Config{MaxBytes: roomy})
			limit := limitOf(tidegate.TokenBucket, q)
			return func() Run { return takeMany(store, limit, n) }
		},
	}
}

func takeMany(store tidegate.Store, limit *tidegate.Limit, n int) Run {
	ctx := context.Background()
	checks := make([]tidegate.Check, n)
	for i := range checks {
		checks[i] = tidegate.Check{Limit: limit, Cost: 1}
	}
	return func(keys []string) (admitted int) {
		for len(keys) >= n {
			for i := range checks {
				checks[i].Key = keys[i]
			}
			keys = keys[n:]
			d, err := store.Take(ctx, checks, 1)
			if err == nil && d.OK {
				admitted += n
			}
		}
		return admitted
	}
}

func limitOf(a tidegate.Algorithm, q Quota) *tidegate.Limit {
	spec := tidegate.Spec{Name: "bench", Events: q.Events, Period: q.Period, Algorithm: a}
	if a == tidegate.TokenBucket {
		spec.Burst = q.Burst
	}
	return tidegate.MustLimit(spec)
}
