package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// arrivals is a Poisson process: each request comes to one of so many instances.
func arrivals(rnd *rand.Rand, perSecond float64, lasts time.Duration, arrive func(at time.Duration)) {
	for start := time.Now(); ; {
		time.Sleep(time.Duration(rnd.ExpFloat64() / perSecond * float64(time.Second)))
		if at := time.Since(start); at < lasts {
			arrive(at)
		} else {
			return
		}
	}
}

// What is taken ahead is used: whatever is asked for is admitted as far as the limit goes, by any
// number of instances, at any load around the limit, and at every cost, also if costs differ.
func TestLittleIsTakenInVain(t *testing.T) {
	const rate, lasts, from = 1000, 5 * time.Second, time.Second
	for _, costs := range [][]int64{{1}, {3}, {1, 4}, {3, 5}} {
		for _, instances := range []int{1, 3, 10, 30} {
			for _, load := range []float64{0.9, 1.1, 3} {
				t.Run(fmt.Sprint(costs, " on ", instances, " at ", load), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBank()
						fleet := make([]*Store, instances)
						for i := range fleet {
							fleet[i] = open(t, b)
							fleet[i].instances = func() int { return instances }
						}
						l := tidegate.MustLimit(tidegate.Spec{
							Name: "api", Events: rate, Period: time.Second, Burst: rate / 2, Algorithm: tidegate.TokenBucket,
							Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
						})
						mean := 0.0
						for _, c := range costs {
							mean += float64(c) / float64(len(costs))
						}
						var (
							mu             sync.Mutex
							all            sync.WaitGroup
							asked, granted int64
						)
						rnd := rand.New(rand.NewPCG(uint64(instances), uint64(load*100)))
						arrivals(rnd, load*rate/mean, lasts, func(at time.Duration) {
							s, cost := fleet[rnd.IntN(instances)], costs[rnd.IntN(len(costs))]
							all.Go(func() {
								d, err := s.Take(context.Background(), []tidegate.Check{check(l, cost)}, 1)
								mu.Lock()
								defer mu.Unlock()
								if err != nil {
									t.Error(err)
								}
								if at >= from {
									asked += cost
									if d.OK {
										granted += cost
									}
								}
							})
						})
						all.Wait()
						could := min(asked, int64(rate*(lasts-from).Seconds()))
						if granted*100 < could*97 {
							t.Errorf("%d of %d are admitted, and the limit has room for %.0f", granted, asked, rate*(lasts-from).Seconds())
						}
					})
				})
			}
		}
	}
}

// A request that has waited, to be served at all, for longer than a portion lives is not decided
// from that: the process may have been stopped meanwhile.
func TestStoppedForLongerThanAPortionLives(t *testing.T) {
	b := newBank()
	s := open(t, b)
	l := limit("api", tidegate.TokenBucket, 1000, time.Second)
	heatUp(t, s, check(l, 1))
	sh := s.shard(s.hash([]tidegate.Check{check(l, 1)}))
	sh.mu.Lock()
	decided := make(chan tidegate.Decision, 50)
	for range cap(decided) {
		go func() {
			d, _ := s.Take(context.Background(), []tidegate.Check{check(l, 1)}, 1)
			decided <- d
		}()
	}
	time.Sleep(3 * maxLife) // in real time: no virtual time passes while somebody waits for a mutex
	for _, sup := range sh.supplies {
		sup.before = s.now() + time.Minute // no other portion comes
	}
	sh.mu.Unlock()
	for range cap(decided) {
		if d := <-decided; d.Receipt.Origin == tidegate.OriginLeased && d.OK {
			t.Fatal("decided from a portion that was over")
		}
	}
}

// Costs that do not divide a portion use it up nevertheless, and what is given back is never more
// than was taken, nor used for longer.
func TestMixedCostsUsePortionsUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := &supply{life: maxLife, most: 1000}
		var now time.Duration
		type taken struct {
			number uint32
			cost   int64
		}
		var (
			held        []taken
			granted, in int64
			number      uint32
		)
		ends := map[uint32]time.Duration{}
		for range 30 {
			now += time.Duration(rnd.Int64N(int64(maxLife) / 8))
			switch rnd.IntN(4) {
			case 0:
				number++
				size := 1 + rnd.Int64N(20)
				p := portion{number: number, size: size, left: size, sent: now, until: now + maxLife}
				ends[number] = p.until
				s.grant(p, size, tidegate.Decision{}, now)
				granted += size
			case 1:
				if len(held) > 0 {
					i := rnd.IntN(len(held))
					if s.putBack(held[i].number, held[i].cost, now) {
						in -= held[i].cost
						if ends[held[i].number] <= now {
							t.Fatal("put back to a portion that is over")
						}
					}
					held = append(held[:i], held[i+1:]...)
				}
			default:
				s.expire(now)
				var left int64
				for i := range s.held {
					left += s.held[i].left
				}
				cost := 1 + rnd.Int64N(12)
				p, a := s.use(cost, now)
				if (a == used) != (left >= cost) {
					t.Fatalf("a cost of %d with %d left: %v", cost, left, a)
				}
				if a == used {
					held = append(held, taken{p.number, cost})
					in += cost
				}
			}
			var left int64
			for i := range s.held {
				p := &s.held[i]
				if left += p.left; p.left < 0 || p.left > p.size {
					t.Fatalf("%d left of %d", p.left, p.size)
				}
			}
			if in+left > granted {
				t.Fatalf("%d used and %d left of %d", in, left, granted)
			}
		}
	}
}

// What cannot be leased any more is strict, also if there was not enough when that began: as
// more instances have come, or as the store is too far away.
func TestShortageEndsWithLeases(t *testing.T) {
	for name, change := range map[string]func(b *bank, s *Store){
		"more instances": func(_ *bank, s *Store) { s.instances = func() int { return 60 } },
		"far away":       func(b *bank, _ *Store) { b.takes = 110 * time.Millisecond },
	} {
		for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
			t.Run(fmt.Sprint(name, " ", a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBank()
					s := open(t, b)
					l := limit("api", a, 1000, time.Second)
					var (
						mu       sync.Mutex
						all      sync.WaitGroup
						admitted int
					)
					rnd := rand.New(rand.NewPCG(1, 1))
					press := func(lasts time.Duration) int {
						admitted = 0
						arrivals(rnd, 3000, lasts, func(time.Duration) {
							all.Go(func() {
								d, err := s.Take(context.Background(), []tidegate.Check{check(l, 1)}, 1)
								mu.Lock()
								defer mu.Unlock()
								if err != nil {
									t.Error(err)
								}
								admitted += int(d.Granted)
							})
						})
						all.Wait()
						return admitted
					}
					press(3 * time.Second)
					synctest.Wait()
					change(b, s)
					press(2 * time.Second) // what was out is over
					if n := press(6 * time.Second); n < 5500 {
						t.Errorf("%d of 6,000 are admitted", n)
					}
				})
			})
		}
	}
}

// One answer that takes long, as when the process was stopped meanwhile, does not end the leases.
func TestLeasesComeBackAfterASlowAnswer(t *testing.T) {
	for _, slow := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 90 * time.Millisecond, 3 * time.Second} {
		for _, every := range []time.Duration{200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
			t.Run(fmt.Sprint(slow, " ", every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBank()
					s := open(t, b)
					l := limit("api", tidegate.TokenBucket, 10_000, time.Second)
					leased := 0
					press := func(lasts time.Duration) {
						leased = 0
						for start := time.Now(); time.Since(start) < lasts; time.Sleep(every) {
							if take(t, s, check(l, 1)).Receipt.Origin == tidegate.OriginLeased {
								leased++
							}
						}
					}
					press(time.Second)
					time.Sleep(2 * maxLife)
					synctest.Wait()
					b.takes = slow
					press(2*slow + maxLife)
					synctest.Wait()
					b.takes = time.Millisecond
					press(5 * time.Second) // what is slow is over
					if press(time.Second); leased < int(time.Second/every)/2 {
						t.Errorf("%d of %d are leased", leased, time.Second/every)
					}
				})
			})
		}
	}
}
