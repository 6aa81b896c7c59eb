package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// distant is a shared counter that is a round trip away. It decides half way, and heeds
// its context as a client of Redis does.
type distant struct {
	*memory.Store
	trip func() time.Duration
	most int
}

func (d *distant) MaxBatch() int { return d.most }

func (d *distant) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	trip := d.trip()
	time.Sleep(trip / 2)
	for i := range asks {
		a := &asks[i]
		a.Granted, a.Err = d.Store.Take(ctx, a.Checks, a.Copies)
		if a.Err == nil && a.Granted.OK && a.Granted.Granted < int64(a.Copies) {
			a.Rest, a.Err = d.Store.Take(ctx, a.Checks, 1)
		}
	}
	time.Sleep(trip - trip/2)
	return ctx.Err()
}

// band is three nodes that share a counter which is so far away, under a steady load.
type band struct {
	limit   *tidegate.Limit
	trip    func() time.Duration
	most    int
	offered int  // a second, in all
	even    bool // on all nodes; otherwise on the first
	keys    int
	// by is how long every second caller waits for an answer; 0 means as long as the nodes do.
	by time.Duration
}

// run returns what was admitted, and which share of the requests was decided locally.
func (b band) run(t *testing.T, d time.Duration) (admitted int, local float64) {
	shared := memory.New()
	var nodes []*Node
	for range 3 {
		nodes = append(nodes, newNode(&distant{shared, b.trip, b.most}, forFew(Options{Instances: func() int { return 3 }})))
	}
	answers := make(chan bool, 1<<16)
	var alarms chain.Alarms
	every := time.Second / time.Duration(b.offered)
	asked := 0
	// What is sent at the very end is decided after it.
	for start := time.Now(); time.Since(start) < d-50*time.Millisecond; asked++ {
		n := nodes[0]
		if b.even {
			n = nodes[asked%3]
		}
		key, within := fmt.Sprint("k", asked/3%b.keys), DefaultDeadline
		ctx, stop := context.Background(), func() {}
		if b.by > 0 && asked%2 == 0 {
			within = b.by
			by := chain.NewAnswerBy(ctx, time.Now().Add(within), &alarms)
			ctx, stop = by, by.Stop
		}
		go func() {
			defer stop()
			began := time.Now()
			got, err := n.Take(ctx, []tidegate.Check{{Key: key, Limit: b.limit, Cost: 1}}, 1)
			if err != nil || time.Since(began) > within+time.Millisecond {
				t.Errorf("%+v, %v after %s", got, err, time.Since(began))
			}
			answers <- got.OK
		}()
		time.Sleep(every)
	}
	time.Sleep(100 * time.Millisecond)
	for range asked {
		if <-answers {
			admitted++
		}
	}
	var decided int64
	for i, n := range nodes {
		h := n.Health()
		if decided += h.Admitted + h.Refused; h.State != OK {
			t.Errorf("node %d: %+v", i, h)
		}
		_ = n.Close()
	}
	time.Sleep(2 * time.Second)
	return admitted, float64(decided) / float64(asked)
}

// bandStep is how many milliseconds are between two round trips that are tried.
var bandStep = 1

func init() {
	if testdep.RaceEnabled && !testdep.Long() { // it takes its time, and looks for something else
		bandStep = 12
	}
}

// Whatever the round trip below the deadline, three nodes admit what one counter would,
// and the counter decides.
func TestLatencyBand(t *testing.T) {
	const lasts = 15 * time.Second
	bucket := tidegate.MustLimit(tidegate.Spec{Name: "bucket", Events: 100, Period: time.Second, Burst: 10, Algorithm: tidegate.TokenBucket})
	window := tidegate.MustLimit(tidegate.Spec{Name: "window", Events: 100, Period: time.Second, Algorithm: tidegate.FixedWindow})
	for _, l := range []*tidegate.Limit{bucket, window} {
		for _, offered := range []int{120, 360, 1000} {
			for _, even := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%d/even=%t", l.Name, offered, even), func(t *testing.T) {
					t.Parallel()
					for ms := 0; ms < 25; ms += bandStep {
						trip := time.Duration(ms) * time.Millisecond
						synctest.Test(t, func(t *testing.T) {
							b := band{limit: l, offered: offered, even: even, keys: 1, most: 32, trip: func() time.Duration { return trip }}
							admitted, local := b.run(t, lasts)
							due := 100*int(lasts/time.Second) + int(l.Burst)/2 // it ends a little earlier
							t.Logf("round trip %2d ms: %d admitted, %d are due, %.2f %% decided locally", ms, admitted, due, 100*local)
							if off := admitted - due; off > due/100 || off < -due/100 || local > 0.01 {
								t.Errorf("round trip %d ms: %d admitted, want %d ± 1 %%; %.2f %% decided locally", ms, admitted, due, 100*local)
							}
						})
					}
				})
			}
		}
	}
}

// The same holds for callers that wait for less than the nodes do, whatever the round trip below
// that, and for those who ask about the same key and have more time.
func TestLatencyBandOfShortDeadlines(t *testing.T) {
	const lasts = 10 * time.Second
	bucket := tidegate.MustLimit(tidegate.Spec{Name: "bucket", Events: 100, Period: time.Second, Burst: 10, Algorithm: tidegate.TokenBucket})
	for _, by := range []int{5, 10, 15, 20} {
		for _, offered := range []int{360, 1000} {
			t.Run(fmt.Sprintf("%dms/%d", by, offered), func(t *testing.T) {
				t.Parallel()
				for ms := 0; ms < by; ms += bandStep {
					trip := time.Duration(ms) * time.Millisecond
					synctest.Test(t, func(t *testing.T) {
						b := band{
							limit: bucket, offered: offered, even: true, keys: 1, most: 32, trip: func() time.Duration { return trip },
							by: time.Duration(by) * time.Millisecond,
						}
						admitted, local := b.run(t, lasts)
						due := 100*int(lasts/time.Second) + int(bucket.Burst)/2
						t.Logf("round trip %2d ms: %d admitted, %d are due, %.2f %% decided locally", ms, admitted, due, 100*local)
						if off := admitted - due; off > due/100 || off < -due/100 || local > 0.01 {
							t.Errorf("round trip %d ms: %d admitted, want %d ± 1 %%; %.2f %% decided locally", ms, admitted, due, 100*local)
						}
					})
				}
			})
		}
	}
}

// Round trips that vary, up to the deadline, are allowed for.
func TestLatencyBandWithJitter(t *testing.T) {
	const lasts = 15 * time.Second
	bucket := tidegate.MustLimit(tidegate.Spec{Name: "bucket", Events: 100, Period: time.Second, Burst: 10, Algorithm: tidegate.TokenBucket})
	for i, offered := range []int{120, 1000} {
		for j, keys := range []int{1, 40} {
			for k, span := range [][2]int{{0, 6}, {4, 12}, {8, 20}, {1, 24}, {16, 24}} {
				if testdep.RaceEnabled && !testdep.Long() && 2*i+j != k%4 {
					continue // as bandStep
				}
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, uint64(span[1])))
					from, to := time.Duration(span[0])*time.Millisecond, time.Duration(span[1])*time.Millisecond
					mu := make(chan struct{}, 1)
					b := band{limit: bucket, offered: offered, even: true, keys: keys, most: 32, trip: func() time.Duration {
						mu <- struct{}{}
						defer func() { <-mu }()
						return from + time.Duration(r.Int64N(int64(to-from)))
					}}
					admitted, local := b.run(t, lasts)
					due := min(offered*int(lasts/time.Second)-offered/20, keys*(100*int(lasts/time.Second)+5))
					t.Logf("%d a second on %d keys, round trips of %s to %s: %d admitted, %d are due, %.2f %% decided locally", offered, keys, from, to, admitted, due, 100*local)
					if off := admitted - due; off > due/100 || off < -due/100 || local > 0.01 {
						t.Errorf("%d a second on %d keys, round trips of %s to %s: %d admitted, want %d ± 1 %%; %.2f %% decided locally", offered, keys, from, to, admitted, due, 100*local)
					}
				})
			}
		}
	}
}

// A node with more to ask than one window of calls does not take a distant server for a busy one, neither at first nor after a
// while without requests.
func TestLatencyBandOfABusyNode(t *testing.T) {
	testdep.SkipUnderRace(t)
	l := tidegate.MustLimit(tidegate.Spec{Name: "l", Events: 1_000_000, Period: time.Second, Algorithm: tidegate.TokenBucket})
	for _, deadline := range []time.Duration{25 * time.Millisecond, 100 * time.Millisecond} {
		for _, part := range []time.Duration{4, 8, 9} { // tenths of the deadline
			trip := deadline * part / 10
			for _, most := range []int{leastAlone, 2*leastAlone + 8, 5 * leastAlone} { // calls in flight
				t.Run(fmt.Sprintf("%s of %s/%d", trip, deadline, most), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						n := newNode(&distant{memory.New(), func() time.Duration { return trip }, 32}, forFew(Options{Deadline: deadline}))
						var all sync.WaitGroup
						asked := 0
						for range 2 {
							for end := time.Now().Add(leastSpan); time.Now().Before(end); asked++ {
								checks := []tidegate.Check{{Key: fmt.Sprint("k", asked), Limit: l, Cost: 1}, {Key: "all", Limit: l, Cost: 1}} // sent alone
								all.Go(func() {
									if d, err := n.Take(context.Background(), checks, 1); err != nil || !d.OK {
										t.Errorf("%+v, %v", d, err)
									}
								})
								time.Sleep(trip / time.Duration(most))
							}
							time.Sleep(3 * leastSpan)
						}
						all.Wait()
						h := n.Health()
						if local := float64(h.Admitted+h.Refused) / float64(asked); local > 0.01 || h.State != OK {
							t.Errorf("%.1f %% decided locally: %+v", 100*local, h)
						}
						_ = n.Close()
						time.Sleep(2 * time.Second)
					})
				})
			}
		}
	}
}
