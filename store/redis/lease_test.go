package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// leaseHistory is requests of some nodes to one bucket, of which some take events ahead and
// use them up to a life later, and others take and use them at once.
type leaseHistory struct {
	*testing.T
	rand  *rand.Rand
	store fleetStore
	now   time.Time
	limit *tidegate.Limit
	cost  int64 // of a request; 0 means 1
	floor int64 // what a request has to leave for others
	key   string
	uses  []use
}

type use struct {
	at     time.Time
	events int64
}

// take asks in one of the ways that there are: a script for one check, for several that are
// decided together, or for a batch.
func (h *leaseHistory) take(copies int, lease time.Duration) tidegate.Decision {
	check := tidegate.Check{Key: h.key, Limit: h.limit, Cost: max(h.cost, 1), Floor: h.floor}
	asks := []chain.Ask{{Checks: []tidegate.Check{check}, Copies: copies, Lease: lease}}
	wide := tidegate.Check{Key: h.key, Cost: check.Cost, Limit: tidegate.MustLimit(tidegate.Spec{
		Name: h.limit.Name, Events: 100_000_000, Period: time.Hour, Algorithm: tidegate.TokenBucket,
	})}
	switch h.rand.IntN(3) {
	case 1:
		asks[0].Checks = append(asks[0].Checks, wide)
	case 2:
		wide.Key = "somebody else"
		asks = append(asks, chain.Ask{Checks: []tidegate.Check{wide}, Copies: 1})
	}
	if err := h.store.TakeBatch(h.Context(), asks); err != nil || asks[0].Err != nil {
		h.Fatal(err, asks[0].Err)
	}
	return asks[0].Granted
}

// play has every step ask for a lease or for something to be used at once. guarded false is
// what happens if the store is not told of leases.
func (h *leaseHistory) play(life time.Duration, guarded bool) {
	told := life
	if !guarded {
		told = 0
	}
	busy := h.rand.IntN(4)
	for range 120 {
		h.now = h.now.Add(time.Duration(h.rand.Int64N(int64(life)/2 + 1)))
		if h.rand.IntN(40) == 0 {
			h.now = h.now.Add(time.Duration(h.rand.Int64N(int64(20 * life))))
		}
		h.cost = pick(h.rand, int64(1), 1, 2, 7)
		n := 1 + h.rand.IntN(int(h.limit.Burst/h.cost)+1)
		if h.rand.IntN(4) < busy {
			d := h.take(n, told)
			for left := d.Granted * h.cost; left > 0; {
				some := 1 + h.rand.Int64N(left)
				wait := time.Duration(h.rand.Int64N(int64(life) + 1))
				if h.rand.IntN(2) == 0 {
					wait = life
				}
				h.uses = append(h.uses, use{h.now.Add(wait), some})
				left -= some
			}
		} else if d := h.take(n, 0); d.OK {
			h.uses = append(h.uses, use{h.now, d.Granted * h.cost})
		}
	}
}

// excess is by how many events the worst stretch of time is over burst + rate × time.
func (h *leaseHistory) excess() (worst int64) {
	slices.SortFunc(h.uses, func(a, b use) int { return a.at.Compare(b.at) })
	emission := h.limit.Period / time.Duration(h.limit.Events)
	var drained time.Time
	for _, u := range h.uses {
		if drained.Before(u.at) {
			drained = u.at
		}
		drained = drained.Add(time.Duration(u.events) * emission)
		over := drained.Sub(u.at) - time.Duration(h.limit.Burst)*emission
		worst = max(worst, int64(over/emission))
	}
	return worst
}

// Whatever is taken ahead, and whenever it is used within its life, no stretch of time has
// more than burst + rate × time, those included who take for themselves.
func TestLeasesNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	over := 0
	for seed := range uint64(120) {
		h := &leaseHistory{T: t, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0)}
		h.key = fmt.Sprint("k", seed)
		h.store = fleetStore{openTest(t, Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return h.now }})}
		life := pick(h.rand, 20*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond)
		events := pick(h.rand, int64(100), 200, 1000, 20_000)
		inLife := events * int64(life) / int64(time.Second)
		h.limit = tidegate.MustLimit(tidegate.Spec{
			Name: h.key, Events: events, Period: time.Second, Algorithm: tidegate.TokenBucket,
			Burst: pick(h.rand, 2*inLife, 3*inLife, events+2*inLife),
		})
		guarded := seed%4 != 0
		h.play(life, guarded)
		switch worst := h.excess(); {
		case guarded && worst > 0:
			t.Errorf("seed %d: %s on leases of %s is over by %d", seed, h.limit, life, worst)
		case !guarded && worst > 0:
			over++
		}
	}
	if over < 10 {
		t.Errorf("only %d of 30 histories are over without the guard: the test has lost its point", over)
	}
}

// What is held back for a lease is there again once the bucket has been full for a life, and
// a cost above what is left meanwhile is told to come back then, not never.
func TestLeaseHoldsBackForAWhile(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	const life = 100 * time.Millisecond
	h := &leaseHistory{T: t, rand: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1_800_000_000, 0), key: "ann"}
	h.store = fleetStore{openTest(t, Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return h.now }})}
	h.limit = tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 1000, Period: time.Second, Burst: 500, Algorithm: tidegate.TokenBucket})
	if d := h.take(1000, life); d.Granted != 400 {
		t.Fatalf("%d of 500 are leased; want all but the 100 that refill in %s", d.Granted, life)
	}
	h.now = h.now.Add(400*time.Millisecond + life - time.Millisecond) // full for a little less
	whole := []tidegate.Check{{Key: "ann", Limit: h.limit, Cost: 500}}
	d, err := h.store.Take(t.Context(), whole, 1)
	if err != nil || d.OK || d.Never || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Millisecond {
		t.Fatalf("the whole burst: %+v, %v; want a refusal for about a millisecond", d, err)
	}
	h.now = h.now.Add(d.RetryAfter)
	if d, err := h.store.Take(t.Context(), whole, 1); err != nil || !d.OK {
		t.Errorf("the whole burst after that: %+v, %v", d, err)
	}
}

// Charges and returns keep what a bucket knows of its leases.
func TestLeaseSurvivesChanges(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	const life = 100 * time.Millisecond
	h := &leaseHistory{T: t, rand: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1_800_000_000, 0), key: "ann"}
	h.store = fleetStore{openTest(t, Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return h.now }})}
	h.limit = tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 1000, Period: time.Second, Burst: 500, Algorithm: tidegate.TokenBucket})
	d := h.take(300, life)
	for _, cost := range []int64{50, -50, -300} { // the last leaves nothing charged
		if err := h.store.Adjust(t.Context(), d.Receipt, []tidegate.Check{{Key: "ann", Limit: h.limit, Cost: cost}}); err != nil {
			t.Fatal(err)
		}
		if got := h.take(1, 0); got.Remaining > 400 {
			t.Errorf("after a charge of %d, %d remain to others: what is held back was forgotten", cost, got.Remaining)
		}
	}
}

// Versions of a limit go by the quickest of them that has leases out, and none is kept out by
// what another holds back.
func TestLeasesOfTwoVersions(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	h := &leaseHistory{T: t, rand: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1_800_000_000, 0), key: "ann"}
	h.store = fleetStore{openTest(t, Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return h.now }})}
	version := func(name string, events, burst int64) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: name, Events: events, Period: time.Second, Burst: burst, Algorithm: tidegate.TokenBucket})
	}
	take := func(l *tidegate.Limit, n int, life time.Duration) int64 {
		h.limit = l
		return h.take(n, life).Granted
	}
	const life = 100 * time.Millisecond
	slow, quick := version("rates", 1000, 1000), version("rates", 5000, 1000)
	sum := take(quick, 1000, life)
	h.now = h.now.Add(life - time.Millisecond)
	sum += take(quick, 1000, life)
	if sum += take(slow, 1000, 0); sum > 1000 {
		t.Errorf("%d can be used at one instant, of a burst of 1000", sum)
	}
	large, small := version("bursts", 1000, 1000), version("bursts", 1000, 50)
	refused := 0
	for range 200 {
		take(large, 5, life)
		h.now = h.now.Add(50 * time.Millisecond)
		if take(small, 1, 0) == 0 {
			refused++
		}
	}
	if refused > 10 {
		t.Errorf("a small burst is refused %d of 200 times beside leases of a large one, at a tenth of the rate", refused)
	}
}

// Requests that have to leave something for others go on while events are out on leases, whatever the
// share, and leave that share of what is not held back: leases are not kept from it, and what is admitted
// is within the limit.
func TestLeasesBesideFloors(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	const life = 50 * time.Millisecond
	for _, burst := range []int64{2, 3, 10, 100, 1000} {
		for _, percent := range []int64{1, 20, 50, 60, 90, 99} {
			h := &leaseHistory{T: t, rand: rand.New(rand.NewPCG(uint64(burst), uint64(percent))), now: time.Unix(1_800_000_000, 0)}
			h.key = fmt.Sprint("k", burst, "/", percent)
			h.store = fleetStore{openTest(t, Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return h.now }})}
			// As much is held back as can be: half of the burst refills in a life.
			h.limit = tidegate.MustLimit(tidegate.Spec{Name: h.key, Events: 10 * burst, Period: time.Second, Burst: burst, Algorithm: tidegate.TokenBucket})
			aside := min((burst*percent+99)/100, burst-1)
			ask := func(n int, life time.Duration, floor int64) int64 {
				h.floor = floor
				d := h.take(n, life)
				if d.Never {
					t.Fatalf("%s, leaving %d: %+v", h.limit, floor, d)
				}
				h.uses = append(h.uses, use{h.now.Add(life), d.Granted})
				return d.Granted
			}
			rest, leased := int64(0), int64(0)
			for range 100 { // half of the rate is leased
				leased += ask(1, life, 0)
				h.now = h.now.Add(2 * time.Second / time.Duration(10*burst))
				rest += ask(int(burst), 0, aside)
			}
			if rest == 0 || leased == 0 {
				t.Errorf("%s, leaving %d: %d were leased and %d admitted beside", h.limit, aside, leased, rest)
			}
			// Held back is half, and of the other half the share is there for leases.
			if held := burst / 2; aside >= 2 {
				ask(int(burst), 0, aside)
				if got := ask(int(burst), life, 0); got < (burst-held)*aside/burst-1 {
					t.Errorf("%s, leaving %d: %d are left for leases", h.limit, aside, got)
				}
			}
			if worst := h.excess(); worst > 0 {
				t.Errorf("%s, leaving %d: over by %d", h.limit, aside, worst)
			}
		}
	}
}

// A lease of more than what is not held back for it is refused like any other.
func TestLeaseThatDoesNotFitBesideItself(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	h := &leaseHistory{T: t, rand: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1_800_000_000, 0), cost: 7}
	h.store = fleetStore{openTest(t, Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return h.now }})}
	for i := range 12 { // each way of asking, of fresh buckets and of one that is full again
		h.key = fmt.Sprint("k", i%10)
		h.limit = tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 200, Period: time.Second, Burst: 8, Algorithm: tidegate.TokenBucket})
		if d := h.take(1, 20*time.Millisecond); d.OK || d.Never || d.RetryAfter <= 0 {
			t.Errorf("%+v; want a refusal for a while", d)
		}
		if d := h.take(1, 0); d.OK != (i < 10) {
			t.Errorf("%+v for somebody who takes none ahead", d)
		}
		if i == 9 {
			h.now = h.now.Add(time.Millisecond)
		}
	}
}
