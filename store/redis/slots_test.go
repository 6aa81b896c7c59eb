package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// takeSlots asks for copies of a cost under a name.
func takeSlots(t *testing.T, s *Store, l *tidegate.Limit, cost int64, copies int, name tidegate.Handle) tidegate.Decision {
	t.Helper()
	asks := []chain.Ask{{Checks: []tidegate.Check{{Key: "k", Limit: l, Cost: cost}}, Copies: copies, Handle: name}}
	if err := in(s).TakeBatch(t.Context(), asks); err != nil || asks[0].Err != nil {
		t.Fatal(err, asks[0].Err)
	}
	return asks[0].Granted
}

// A slot has the name that whoever asks has chosen, each copy its own, and is found by it
// without an answer. What is given back before it is taken cannot be taken any more.
func TestSlotsHaveTheNameTheyWereAskedBy(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Addr}})
	ctx := context.Background()
	l := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 100, Period: time.Minute, Algorithm: tidegate.Concurrency})
	back := func(name tidegate.Handle, cost int64) {
		t.Helper()
		for range 2 { // a release can be repeated
			if err := s.Adjust(ctx, tidegate.Receipt{Handle: name}, []tidegate.Check{{Key: "k", Limit: l, Cost: -cost}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	inUse := func(want int64) {
		t.Helper()
		if got := 100 - left(t, s, tidegate.Check{Key: "k", Limit: l}); got != want {
			t.Errorf("%d in use, want %d", got, want)
		}
	}
	// The last copies of these carry over into the upper half of their number, and over it.
	for _, name := range []tidegate.Handle{tidegate.NewHandle(), {7, 1<<32 - 3}, {8, 1<<64 - 3}, {9, 1<<63 - 3}} {
		if d := takeSlots(t, s, l, 2, 5, name); d.Granted != 5 || d.Receipt.Handle != name {
			t.Fatalf("%+v", d)
		}
		inUse(10)
		for i := range int64(5) {
			if err := s.Renew(ctx, tidegate.Receipt{Handle: name.Copy(i)}, []tidegate.Check{{Key: "k", Limit: l, Cost: 2}}); err != nil {
				t.Errorf("copy %d of %s: %v", i, name, err)
			}
			back(name.Copy(i), 2)
			inUse(10 - 2*(i+1))
		}
	}
	late := tidegate.NewHandle()
	back(late, 1)
	if d := takeSlots(t, s, l, 1, 1, late); d.OK || d.RetryAfter != 0 {
		t.Errorf("%+v, want a refusal of what was overtaken", d)
	}
	back(late.Copy(7), 1)
	if d := takeSlots(t, s, l, 1, 20, late.Copy(3)); d.Granted != 4 { // and not the fifth
		t.Errorf("%+v, want 4", d)
	}
	inUse(4)
	if d := takeSlots(t, s, l, 1, 1, late.Copy(4)); d.OK { // a name is taken once
		t.Errorf("%+v", d)
	}
	if err := s.Renew(ctx, tidegate.Receipt{}, []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}); err != tidegate.ErrLeaseLost {
		t.Errorf("no name is renewed: %v", err)
	}
}

// What is kept of names that were given back too early is bounded, ends with one lease, and
// takes no place.
func TestMarksOfSlotsAreBounded(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	now := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	s := openTest(t, Config{Addrs: []string{server.Addr}, pretend: func() time.Time { return now }})
	l := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 2, Period: time.Minute, Algorithm: tidegate.Concurrency})
	check := []tidegate.Check{{Key: "k", Limit: l, Cost: -1}}
	var names []tidegate.Handle
	for range 1100 {
		names = append(names, tidegate.NewHandle())
		if err := s.Adjust(t.Context(), tidegate.Receipt{Handle: names[len(names)-1]}, check); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Microsecond)
	}
	lim, err := s.compile(l)
	if err != nil {
		t.Fatal(err)
	}
	kept := func() int {
		n, _ := strconv.Atoi(strings.TrimSpace(server.Do("ZCARD", lim.name("k"))))
		return n
	}
	if n := kept(); n != 1024 {
		t.Errorf("%d names are kept, want 1024", n)
	}
	if d := takeSlots(t, s, l, 1, 1, names[1099]); d.OK { // the latest of them
		t.Errorf("%+v", d)
	}
	if ttl, _ := strconv.Atoi(strings.TrimSpace(server.Do("TTL", lim.name("k")))); ttl < 60 || ttl > 3600+62 {
		t.Errorf("the key lives for %d seconds", ttl)
	}
	if d := takeSlots(t, s, l, 1, 2, tidegate.NewHandle()); d.Granted != 2 {
		t.Errorf("%+v, want both slots", d)
	}
	now = now.Add(2 * time.Minute)
	if d := takeSlots(t, s, l, 1, 2, tidegate.NewHandle()); d.Granted != 2 || kept() != 2 {
		t.Errorf("%+v, and %d names are kept", d, kept())
	}
}

// A bare store gives slots back that it asked for without an answer.
func TestSlotWithoutAnAnswerIsGivenBack(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	// What gives them back has a second for it.
	testdep.Undisturbed(t, 200*time.Millisecond, func(t testing.TB) {
		s := openTest(t, Config{Addrs: []string{server.Addr}})
		l := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 5, Period: time.Hour, Algorithm: tidegate.Concurrency})
		check := tidegate.Check{Key: "k", Limit: l, Cost: 2}
		mustTake(t, s, 1, tidegate.Check{Key: "other", Limit: l, Cost: 1}) // it is connected
		server.Pause()
		defer server.Resume()
		for _, copies := range []int{1, 2} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if d, err := s.Take(ctx, []tidegate.Check{check}, copies); err == nil {
				t.Errorf("%+v of a server that stands still", d)
			}
			cancel()
		}
		server.Resume()
		lim, err := s.compile(l)
		if err != nil {
			t.Fatal(err)
		}
		testdep.Eventually(t, "all that was asked for was given back", func() bool {
			return left(t, s, check) == 5 && server.Do("EXISTS", lim.name("k")) != "0" // it was there, or is marked
		})
	})
}

// So does a reservation that has no answer.
func TestSlotOfAReservationWithoutAnAnswerIsGivenBack(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	testdep.Undisturbed(t, 200*time.Millisecond, func(t testing.TB) {
		s := openTest(t, Config{Addrs: []string{server.Addr}})
		l := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 5, Period: time.Hour, Algorithm: tidegate.Concurrency})
		slots := tidegate.Check{Key: "k", Limit: l, Cost: 2}
		estimate := tidegate.Check{Key: "k", Limit: tidegate.PerHour(10), Cost: 3, Estimate: true}
		first := []tidegate.Check{{Key: "other", Limit: l, Cost: 2}, {Key: "other", Limit: estimate.Limit, Cost: 3, Estimate: true}}
		if d, err := s.Reserve(t.Context(), first, time.Hour); err != nil || !d.OK { // it is connected, and the server knows the script
			t.Fatalf("%+v, %v", d, err)
		}
		server.Pause()
		defer server.Resume()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if d, err := s.Reserve(ctx, []tidegate.Check{slots, estimate}, time.Hour); err == nil {
			t.Errorf("%+v of a server that stands still", d)
		}
		server.Resume()
		lim, err := s.compile(l)
		if err != nil {
			t.Fatal(err)
		}
		testdep.Eventually(t, "the reservation was made and its slots given back, or was overtaken by that", func() bool {
			overtaken := left(t, s, estimate) == 10 && server.Do("EXISTS", lim.name("k")) != "0" // its name is marked
			return left(t, s, slots) == 5 && (overtaken || left(t, s, estimate) == 7)
		})
	})
}

// However many requests pass between taking slots over three subjects of a cluster and
// giving them back, they are renewed, nobody else is admitted, and they are given back.
// TIDEGATE_LONG=1 lets 100,000 pass.
func TestSlotsOverSubjectsOutliveManyGrants(t *testing.T) {
	t.Parallel()
	where := clusterOf(testdep.RedisCluster(t, 3, 0))
	s, other := openTest(t, where), openTest(t, where)
	other.prefix = s.prefix
	grants := testdep.Longer(20_000, 100_000) // more than were remembered once
	ctx := context.Background()
	slot := func(scope string) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: "streams", Scope: scope, Events: 1, Period: time.Hour, Algorithm: tidegate.Concurrency})
	}
	light := func(scope string) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: "light", Scope: scope, Events: 1 << 24, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	}
	held := []tidegate.Check{{Key: "ann", Limit: slot("user"), Cost: 1}, {Key: "10.0.0.1", Limit: slot("ip"), Cost: 1}, {Limit: slot("everyone"), Cost: 1}}
	d := mustTake(t, s, 1, held...)
	if !d.OK || d.Receipt.Handle.IsZero() {
		t.Fatalf("%+v", d)
	}
	const workers = 64
	done := make(chan error, workers)
	for w := range workers {
		go func() {
			passing := []tidegate.Check{{Key: fmt.Sprint("user", w), Limit: light("user"), Cost: 1}, {Key: fmt.Sprint("10.1.0.", w), Limit: light("ip"), Cost: 1}, {Limit: light("everyone"), Cost: 1}}
			for range (grants + workers - 1) / workers {
				if d, err := s.Take(ctx, passing, 1); err != nil || !d.OK {
					done <- fmt.Errorf("%+v, %w", d, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range workers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Renew(ctx, d.Receipt, held); err != nil {
		t.Errorf("Renew after %d grants: %v", grants, err)
	}
	for _, node := range []*Store{s, other} {
		for i := range held {
			if d := mustTake(t, node, 1, held[i]); d.OK {
				t.Errorf("%s: a second one is admitted after %d grants", held[i].Limit, grants)
			}
		}
	}
	for i := range held {
		held[i].Cost = -1
	}
	if err := s.Adjust(ctx, d.Receipt, held); err != nil {
		t.Fatal(err)
	}
	for i := range held {
		held[i].Cost = 1
		if n := left(t, other, held[i]); n != 1 {
			t.Errorf("%s: %d free after it was given back", held[i].Limit, n)
		}
	}
}
