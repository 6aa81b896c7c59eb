package fleet

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/split"
	"tidegate.dev/tidegate/store/memory"
)

// Split returns a store for programs that run as several instances and have no Redis. A limit
// whose terms say [tidegate.Split] is divided by the number of instances, and this instance has
// one share; every other limit is counted whole in this process. The counters are in store.
//
// instances is called for every decision. It may return another number at any time; that refills
// nobody.
//
//	store := fleet.Split(memory.New(), func() int { return 5 })
//	lim := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{
//		Events: 1000, Period: time.Second,
//		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Split}},
//	}))
//
// A Store of [Open] divides such limits by itself, by the instances that it counts by heartbeats.
func Split(store *memory.Store, instances func() int) *SplitStore {
	return &SplitStore{queue.New(split.New(chain.Adapt(store), split.Options{
		Members: func() (int, int) { return instances(), -1 }, Local: store, Whole: true,
	}))}
}

// SplitStore is a [tidegate.Store] that counts the shares of one instance, also a Renewer,
// Reserver and Resetter. Use [Split]. Its methods may be called from any number of goroutines.
// A check with a MaxWait, or with a queue in its terms, returns when its turn has come.
type SplitStore struct{ abilities }

var _ tidegate.LocalFallback = (*SplitStore)(nil)

// LocalFallback implements [tidegate.LocalFallback]: the counters are in this process anyway.
func (s *SplitStore) LocalFallback() {}

type abilities interface {
	tidegate.Store
	tidegate.Renewer
	tidegate.Reserver
	tidegate.Resetter
}
