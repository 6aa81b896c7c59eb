package tallytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Store is one that does what regions need.
type Store interface {
	chain.Tallies
	chain.Regions
}

// RunRegions tests stores of several regions. Each call of open returns another one that is empty.
func RunRegions(t *testing.T, open func(t *testing.T) Store) {
	t.Run("Totals", func(t *testing.T) { regionTotals(t, open) })
	t.Run("Copies", func(t *testing.T) { regionCopies(t, open) })
	t.Run("Everything", func(t *testing.T) { regionEverything(t, open) })
	t.Run("Reset", func(t *testing.T) { regionReset(t, open) })
	t.Run("Pages", func(t *testing.T) { regionPages(t, open) })
	t.Run("Holder", func(t *testing.T) { regionHolder(t, open(t)) })
	t.Run("Heard", func(t *testing.T) { regionHeard(t, open(t)) })
	t.Run("Random", func(t *testing.T) { regionRandom(t, open) })
}

// place is a region with its store.
type place struct {
	*bench
	store  Store
	name   string
	since  map[string]int64 // told to others
	all    map[string]bool  // and whether everything is
	holder [2]uint64
}

var regional = tidegate.MustLimit(tidegate.Spec{
	Name: "regional", Scope: "user", Events: 100, Period: time.Hour, Algorithm: tidegate.FixedWindow,
	Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: tidegate.PartitionContinue}},
})

// places are regions that have the counter of a test.
func places(t *testing.T, open func(t *testing.T) Store, names ...string) (all []*place) {
	for _, name := range names {
		s := open(t)
		p := &place{bench: newBench(t, s), store: s, name: name, since: map[string]int64{}, all: map[string]bool{}, holder: [2]uint64{1, uint64(len(all))}}
		if len(all) > 0 {
			p.key, p.start = all[0].key, all[0].start
		}
		all = append(all, p)
	}
	return all
}

// tallies returns what an instance of the region says.
func (p *place) tallies(instance, number uint64, counts ...int64) chain.Tally {
	one := p.tally(instance, number, counts...)
	one.Limit, one.Region = regional, chain.RegionNumber(p.name)
	return one
}

// wants looks at the totals, and how much of them is of other regions.
func (p *place) wants(total, abroad int64) {
	p.t.Helper()
	all := []chain.Tally{p.tallies(99, 1)}
	if err := p.store.Exchange(context.Background(), all); err != nil || all[0].Err != nil {
		p.t.Fatal(err, all[0].Err)
	}
	var sum, far int64
	for _, part := range all[0].Answer.Totals {
		sum, far = sum+part.Count, far+part.Abroad
	}
	if sum != total || far != abroad {
		p.t.Errorf("%s has %d, of which %d are of others, want %d and %d", p.name, sum, far, total, abroad)
	}
}

// feed asks for what another region is to be told.
func (p *place) feed(to *place) chain.Feed {
	p.t.Helper()
	since, told := p.since[to.name]
	all := p.all[to.name] || !told
	f, err := p.store.Feed(context.Background(), chain.FeedQuery{
		To: to.name, Holder: p.holder, Hold: time.Minute, Own: chain.RegionNumber(p.name), Since: since, All: all,
	})
	if err != nil || !f.Held {
		p.t.Fatal(err, f.Held)
	}
	return f
}

// tells tells another region all that has changed. It returns how many counters that are.
func (p *place) tells(to *place) (counters int) {
	p.t.Helper()
	for more := true; more; {
		f := p.feed(to)
		to.merge(p, f.Counters)
		p.all[to.name] = f.More && (p.all[to.name] || p.since[to.name] == 0)
		p.since[to.name], more = f.Last, f.More
		counters += len(f.Counters)
	}
	return counters
}

func (p *place) merge(from *place, counters []chain.Replica) chain.Welcome {
	p.t.Helper()
	w, err := p.store.Merge(context.Background(), chain.Greeting{From: from.name, To: chain.RegionNumber(p.name), Age: -1}, counters)
	if err != nil {
		p.t.Fatal(err)
	}
	return w
}

// says has an instance tell what it has counted.
func (p *place) says(instance, number uint64, counts ...int64) {
	p.t.Helper()
	all := []chain.Tally{p.tallies(instance, number, counts...)}
	if err := p.store.Exchange(context.Background(), all); err != nil || all[0].Err != nil {
		p.t.Fatal(err, all[0].Err)
	}
}

// Regions have the sum of what all have counted, and none passes on what it was told by others.
func regionTotals(t *testing.T, open func(t *testing.T) Store) {
	all := places(t, open, "eu", "us", "ap")
	eu, us, ap := all[0], all[1], all[2]
	eu.says(1, 1, 3)
	eu.says(2, 1, 4, 1)
	us.says(3, 1, 10)
	ap.says(4, 1, 20)
	for _, from := range all {
		for _, to := range all {
			if from != to {
				from.tells(to)
			}
		}
	}
	eu.wants(38, 30)
	us.wants(38, 28)
	ap.wants(38, 18)
	if n := eu.tells(us) + us.tells(ap) + ap.tells(eu); n != 0 {
		t.Errorf("%d counters are told although nothing has changed", n)
	}
	us.says(3, 2, 11)
	if n := us.tells(eu); n != 1 {
		t.Errorf("%d counters have changed, want 1", n)
	}
	eu.wants(39, 31)
	us.says(3, 3, 9) // something was given back
	us.tells(eu)
	eu.wants(37, 29)
}

// The same may be told any number of times and in any order.
func regionCopies(t *testing.T, open func(t *testing.T) Store) {
	all := places(t, open, "eu", "us")
	eu, us := all[0], all[1]
	eu.says(1, 1, 3)
	old := eu.feed(us).Counters
	eu.says(1, 2, 8)
	eu.tells(us)
	us.wants(8, 8)
	us.merge(eu, old)
	us.merge(eu, old)
	us.wants(8, 8)
	delete(eu.since, "us")
	eu.tells(us)
	us.wants(8, 8)
	us.says(5, 1, 2)
	us.wants(10, 8)
}

// A store that has lost everything gets it back, what its own instances had counted as well, and
// these do not count twice.
func regionEverything(t *testing.T, open func(t *testing.T) Store) {
	all := places(t, open, "eu", "us", "ap")
	eu, us, ap := all[0], all[1], all[2]
	eu.says(1, 1, 3)
	eu.says(2, 1, 4)
	us.says(3, 1, 10)
	eu.tells(us)
	us.tells(eu)
	empty := places(t, open, "eu")[0]
	empty.key, empty.start = eu.key, eu.start
	before, after := eu.merge(us, nil), empty.merge(us, nil)
	if before.DataSet == after.DataSet {
		t.Errorf("both data sets are called %q", after.DataSet)
	}
	empty.says(1, 2, 5) // it is still there, and the other one is not
	delete(us.since, "eu")
	us.tells(empty)
	empty.wants(19, 10)
	empty.tells(ap) // which had not heard of them
	ap.wants(19, 19)
	delete(us.since, "ap")
	us.tells(ap)
	ap.wants(19, 19)
}

// A reset holds in all regions.
func regionReset(t *testing.T, open func(t *testing.T) Store) {
	all := places(t, open, "eu", "us")
	eu, us := all[0], all[1]
	eu.says(1, 1, 3)
	us.says(3, 1, 10)
	eu.tells(us)
	us.tells(eu)
	forget := eu.tallies(9, 0)
	forget.Reset = true
	if err := eu.store.Exchange(context.Background(), []chain.Tally{forget}); err != nil {
		t.Fatal(err)
	}
	us.says(3, 2, 12)
	us.tells(eu) // of before the reset
	eu.wants(0, 0)
	eu.tells(us)
	us.wants(0, 0)
	later := us.tallies(4, 1, 2)
	later.Generation = 1
	if err := us.store.Exchange(context.Background(), []chain.Tally{later}); err != nil {
		t.Fatal(err)
	}
	us.tells(eu)
	eu.wants(2, 2)
}

// However many counters have changed, all are told.
func regionPages(t *testing.T, open func(t *testing.T) Store) {
	all := places(t, open, "eu", "us")
	eu, us := all[0], all[1]
	const counters = 1300
	var some []chain.Tally
	for i := range counters {
		one := eu.tallies(1, 1, int64(i+1))
		one.Key += fmt.Sprint(" ", i)
		some = append(some, one)
	}
	for len(some) > 0 {
		n := min(len(some), chain.MaxTallies)
		if err := eu.store.Exchange(context.Background(), some[:n]); err != nil {
			t.Fatal(err)
		}
		some = some[n:]
	}
	if n := eu.tells(us); n != counters {
		t.Errorf("%d counters are told, want %d", n, counters)
	}
	for _, i := range []int{0, 511, 512, 513, 1299} {
		one := []chain.Tally{us.tallies(7, 1)}
		one[0].Key += fmt.Sprint(" ", i)
		if err := us.store.Exchange(context.Background(), one); err != nil || len(one[0].Answer.Totals) != 1 || one[0].Answer.Totals[0].Count != int64(i+1) {
			t.Errorf("%d: %+v, %v", i, one[0].Answer, err)
		}
	}
}

// One at a time tells a region, and the next one goes on where it ended.
func regionHolder(t *testing.T, s Store) {
	ask := func(holder uint64, to, save string, hold time.Duration) chain.Feed {
		t.Helper()
		f, err := s.Feed(t.Context(), chain.FeedQuery{To: to, Holder: [2]uint64{holder, 1}, Hold: hold, Own: 1, Since: 0, Save: save})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := ask(1, "us", "", time.Minute); !f.Held || f.Saved != "" {
		t.Errorf("%+v", f)
	}
	if f := ask(2, "us", "no", time.Minute); f.Held {
		t.Error("two hold it")
	}
	if f := ask(2, "ap", "other", time.Minute); !f.Held {
		t.Error("another region is held as well")
	}
	if f := ask(1, "us", "here", time.Second); !f.Held || f.Saved != "here" {
		t.Errorf("%+v", f)
	}
	deadline := time.Now().Add(30 * time.Second)
	for !ask(2, "us", "", time.Minute).Held { // until it has ended
		if time.Now().After(deadline) {
			t.Fatal("it is held for ever")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if f := ask(2, "us", "", time.Minute); f.Saved != "here" {
		t.Errorf("%+v", f)
	}
}

// A store knows when it was told everything.
func regionHeard(t *testing.T, s Store) {
	greet := func(name string, age time.Duration) {
		t.Helper()
		if _, err := s.Merge(t.Context(), chain.Greeting{From: name, To: 5, Age: age}, nil); err != nil {
			t.Fatal(err)
		}
	}
	greet("us", -1)
	if at, _, err := s.Heard(t.Context()); err != nil || len(at) != 0 {
		t.Errorf("%v, %v", at, err)
	}
	greet("us", time.Minute)
	greet("ap", time.Hour)
	at, now, err := s.Heard(t.Context())
	if err != nil || len(at) != 2 || time.Since(now).Abs() > time.Minute {
		t.Fatalf("%v, %v, %v", at, now, err)
	}
	for name, age := range map[string]time.Duration{"us": time.Minute, "ap": time.Hour} {
		if got := now.Sub(at[name]); got < age || got > age+time.Minute {
			t.Errorf("%s was heard of %s ago, want %s", name, got, age)
		}
	}
}

// Whatever instances count, whoever tells whom, and whichever store loses everything while it is known
// elsewhere: when all have told each other, all have the sum of the last tallies.
func regionRandom(t *testing.T, open func(t *testing.T) Store) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		all := places(t, open, "eu", "us", "ap")
		last := map[uint64]int64{} // by instance, which is of region instance % 3
		for step := range uint64(60) {
			p := all[rnd.IntN(3)]
			switch to := all[rnd.IntN(3)]; {
			case rnd.IntN(2) == 0:
				instance := uint64(3*rnd.IntN(3)) + uint64(indexOf(all, p)) + 3
				last[instance] = rnd.Int64N(1000)
				p.says(instance, step+1, last[instance])
			case p == to:
			case rnd.IntN(8) == 0:
				delete(p.since, to.name)
				fallthrough
			default:
				p.tells(to)
			}
		}
		want := int64(0)
		for _, n := range last {
			want += n
		}
		for range 2 {
			for _, from := range all {
				for _, to := range all {
					if from != to {
						from.tells(to)
					}
				}
			}
		}
		for i, p := range all {
			far := int64(0)
			for instance, n := range last {
				if instance%3 != uint64(i) {
					far += n
				}
			}
			p.wants(want, far)
		}
	}
}

func indexOf(all []*place, p *place) int {
	for i := range all {
		if all[i] == p {
			return i
		}
	}
	return -1
}
