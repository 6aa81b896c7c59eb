package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// reshard is a change of shards: stores with the list before it, during it and after it.
type reshard struct{ before, during, after *Store }

func openReshard(t *testing.T, from, to []Shard, c Config) reshard {
	t.Helper()
	c.Deadline = patient
	c.Prefix = fmt.Sprint("t", opened.Add(1))
	open := func(shards, was []Shard) *Store {
		c := c
		if len(shards) == 1 { // before there were several
			c.URL = shards[0].URL
		} else {
			c.Shards, c.Was = shards, was
		}
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return reshard{open(from, nil), open(to, from), open(to, nil)}
}

var movable = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Quota, tidegate.Concurrency,
}

// limitOf is five events that are not refilled while the test runs.
func limitOf(a tidegate.Algorithm) *tidegate.Limit {
	spec := tidegate.Spec{Name: "each " + a.String(), Scope: "user", Events: 5, Period: 60 * 24 * time.Hour, Algorithm: a}
	if a == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Year
	}
	return tidegate.MustLimit(spec)
}

// Whoever has used up a budget finds it used up while shards are changed, by every algorithm.
// Without the former list, those who moved have one more, and nobody else.
func TestReshardRefillsNobody(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c", "d")
	for name, lists := range map[string][2][]Shard{
		"added":    {shards[:3], shards},
		"removed":  {shards, shards[1:]},
		"replaced": {shards[:3], shards[1:]},
		"from one": {shards[:1], shards[:3]},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReshard(t, lists[0], lists[1], Config{GoneAfter: patient})
			const users = 60
			for _, a := range movable {
				l := limitOf(a)
				moved := 0
				for i := range users {
					c := tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1}
					if d := mustTake(t, s.before, 3, c); d.Granted != 3 {
						t.Fatalf("%s: %+v", l, d)
					}
					if d := mustTake(t, s.during, 1, c); d.Granted != 1 {
						t.Fatalf("%s: the last but one is refused: %+v", l, d)
					}
					if d := mustTake(t, s.during, 4, c); d.Granted != 1 {
						t.Errorf("%s: %d of 4 granted where 1 is left", l, d.Granted)
					}
					for _, store := range []*Store{s.before, s.during} {
						if d := mustTake(t, store, 1, c); d.OK {
							t.Errorf("%s: a sixth event is granted", l)
						}
					}
					// The new owner knows of two, and a copy more than fits there was given back.
					if d := mustTake(t, s.after, 9, c); d.Granted == 3 {
						moved++
					} else if d.OK {
						t.Errorf("%s: %d granted without the former owner", l, d.Granted)
					}
				}
				if moved == 0 || name != "from one" && moved > 3*users/4 || moved == users {
					t.Errorf("%s: %d of %d keys have moved", l, moved, users)
				}
			}
		})
	}
}

// Stores with the old list and with the new one share the limit at every moment of a rollout,
// there and on: in any period no more passes than the limit, nor is anybody refused that has
// used less than half of it.
func TestReshardRollout(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c", "d")
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	const period, limit = 100 * time.Second, 20
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.FixedWindow} {
		t.Run(a.String(), func(t *testing.T) {
			s := openReshard(t, shards[:3], shards, Config{GoneAfter: patient, pretend: func() time.Time { return now }})
			l := tidegate.MustLimit(tidegate.Spec{Name: "roll", Scope: "user", Events: limit, Period: period, Algorithm: a})
			r := rand.New(rand.NewPCG(1, uint64(a)))
			const users = 12
			passed := make([][]time.Time, users)
			// Of ten stores, more and more have the next list; each list is everywhere for a period.
			for step := range 800 {
				now = now.Add(time.Second)
				for u := range users {
					store, node := s.before, r.IntN(10)
					switch phase := step - 100; {
					case phase > 250+25*node:
						store = s.after
					case phase > 0 && phase > 10*node:
						store = s.during
					}
					if d := mustTake(t, store, 1, tidegate.Check{Key: fmt.Sprint(u), Limit: l, Cost: 1}); d.OK {
						passed[u] = append(passed[u], now)
					}
				}
			}
			for u, times := range passed {
				for i, at := range times {
					begin := at.Add(-period)
					if a == tidegate.FixedWindow {
						begin = at.Truncate(period).Add(-1)
					}
					n := 0
					for _, before := range times[:i+1] {
						if before.After(begin) {
							n++
						}
					}
					if n > limit {
						t.Fatalf("user %d: %d passed in the period to %s, want %d", u, n, at, limit)
					}
				}
				if len(times) < 7*limit { // of the 8 periods that it took
					t.Errorf("user %d: only %d passed", u, len(times))
				}
			}
		})
	}
}

// Slots that were taken before the change are renewed and released after it, and estimates
// settled, at both owners.
func TestReshardSlotsAndEstimates(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c", "d")
	s := openReshard(t, shards[:3], shards, Config{GoneAfter: patient})
	ctx := t.Context()
	slots, estimate := limitOf(tidegate.Concurrency), limitOf(tidegate.SlidingWindow)
	for i := range 60 {
		key := fmt.Sprint(i)
		c := tidegate.Check{Key: key, Limit: slots, Cost: 1}
		back := c
		back.Cost = -1
		held := []tidegate.Decision{mustTake(t, s.before, 1, c), mustTake(t, s.during, 1, c)}
		for j, d := range held {
			if err := s.during.Renew(ctx, d.Receipt, []tidegate.Check{c}); err != nil {
				t.Errorf("user %d: renew slot %d: %v", i, j, err)
			}
			if err := s.during.Adjust(ctx, d.Receipt, []tidegate.Check{back}); err != nil {
				t.Errorf("user %d: release slot %d: %v", i, j, err)
			}
			if err := s.during.Renew(ctx, d.Receipt, []tidegate.Check{c}); err != tidegate.ErrLeaseLost {
				t.Errorf("user %d: renew slot %d after its release: %v", i, j, err)
			}
		}
		checks := []tidegate.Check{
			{Key: key, Limit: estimate, Cost: 4, Estimate: true},
			{Key: "one of them " + key, Limit: estimate, Cost: 4, Estimate: true},
		}
		for _, store := range []*Store{s.before, s.during} {
			d, err := store.Reserve(ctx, checks, time.Hour)
			if err != nil || !d.OK {
				t.Fatalf("user %d: %+v, %v", i, d, err)
			}
			if err := s.during.Settle(ctx, d.Receipt, 1); err != nil {
				t.Errorf("user %d: settle: %v", i, err)
			}
			if err := s.during.Settle(ctx, d.Receipt, 1); err != tidegate.ErrSettled {
				t.Errorf("user %d: settled twice: %v", i, err)
			}
		}
		for _, c := range checks {
			for name, store := range map[string]*Store{"before": s.before, "during": s.during} {
				if got := left(t, store, c); got != 3 {
					t.Errorf("user %d: %d left for the store %s, want 3", i, got, name)
				}
			}
		}
		if err := s.during.Reset(ctx, checks[:1]); err != nil {
			t.Error(err)
		}
		for _, store := range []*Store{s.before, s.during, s.after} {
			if got := left(t, store, checks[0]); got != 5 {
				t.Errorf("user %d: %d left after a reset", i, got)
			}
		}
		for _, store := range []*Store{s.before, s.during, s.after} {
			if got := left(t, store, c); got != 5 {
				t.Errorf("user %d: %d slots free after all were released", i, got)
			}
		}
	}
}

// A former owner that is gone, as the server that is to be removed may be, holds nobody up for
// long and fails nobody.
func TestReshardFormerOwnerIsGone(t *testing.T) {
	t.Parallel()
	for _, how := range []func(*testdep.RedisServer){(*testdep.RedisServer).Kill, (*testdep.RedisServer).Pause} {
		servers, shards := someShards(t, "a", "b", "c")
		s := openReshard(t, shards, shards[1:], Config{})
		l := limitOf(tidegate.FixedWindow)
		ask := func(i int) tidegate.Decision {
			return mustTake(t, s.during, 1, tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1})
		}
		for i := range 60 {
			ask(i)
		}
		how(servers[0])
		for i := range 60 {
			if d := ask(i); !d.OK {
				t.Errorf("user %d: %+v", i, d)
			}
		}
		testdep.Eventually(t, "the former owner is taken to be gone", s.during.endpoints[2].gone)
	}
}

// Instances with the old list and with the new one exchange counts with each other, of keys that have
// moved and of others, and after a period the new list alone knows all that counts.
func TestReshardTallies(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c", "d")
	for name, lists := range map[string][2][]Shard{
		"added":    {shards[:3], shards},
		"removed":  {shards, shards[1:]},
		"replaced": {shards[:3], shards[1:]},
		"from one": {shards[:1], shards[:3]},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReshard(t, lists[0], lists[1], Config{GoneAfter: patient})
			l := eventualLimit("each", time.Hour)
			now := time.Now().UnixMicro()
			old, fresh := tidegate.NewHandle(), tidegate.NewHandle()
			tell := func(s *Store, from tidegate.Handle, number uint64, count int64) (told []int64) {
				t.Helper()
				var all []chain.Tally
				for i := range 40 {
					all = append(all, chain.Tally{
						Limit: l, Key: fmt.Sprint(i), Instance: from, Number: number,
						Parts: []chain.TallyPart{{Start: now, End: now + 1e9, Count: count}},
					})
				}
				if err := in(s).Tallies().Exchange(t.Context(), all); err != nil {
					t.Fatal(err)
				}
				for _, one := range all {
					if one.Err != nil || len(one.Answer.Totals) != 1 {
						t.Fatalf("%v, %+v", one.Err, one.Answer)
					}
					told = append(told, one.Answer.Totals[0].Count)
				}
				return told
			}
			all := func(when string, got []int64, want int64) {
				t.Helper()
				for key, n := range got {
					if n != want {
						t.Errorf("%s: %d are counted of key %d, want %d", when, n, key, want)
					}
				}
			}
			all("old", tell(s.before, old, 1, 3), 3)
			all("new after old", tell(s.during, fresh, 1, 4), 7)
			all("old after new", tell(s.before, old, 2, 5), 9)
			all("the same again", tell(s.during, fresh, 2, 4), 9)
			moved := 0
			for _, n := range tell(s.after, fresh, 3, 4) {
				switch n {
				case 4: // what the old one told before the move is not there
					moved++
				case 9:
				default:
					t.Errorf("%d are counted by the new list", n)
				}
			}
			if moved == 0 || moved == 40 {
				t.Errorf("%d of 40 keys have moved", moved)
			}
			if clock, err := in(s.during).Tallies().Time(t.Context()); err != nil || time.Since(clock).Abs() > time.Hour {
				t.Errorf("%v, %v", clock, err)
			}
		})
	}
	// A former shard that is gone is left out.
	s := openReshard(t, shards, shards[1:], Config{})
	servers[0].Kill()
	one := []chain.Tally{{Limit: eventualLimit("gone", time.Hour), Instance: tidegate.NewHandle(), Number: 1}}
	for i := range 40 {
		one[0].Key = fmt.Sprint(i)
		if err := in(s.during).Tallies().Exchange(t.Context(), one); err != nil || one[0].Err != nil {
			t.Fatalf("key %d: %v, %v", i, err, one[0].Err)
		}
	}
	if _, err := in(s.during).Tallies().Time(t.Context()); err != nil {
		t.Errorf("the time with a former shard gone: %v", err)
	}
}
