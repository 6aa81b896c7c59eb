package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// TestGarbledReplies has a real Redis garbled in every way, for every algorithm. The process
// lives, what is granted is no more than the limit, what is told is possible, and when
// the garbling ends all is well. Without checked connections the client's own goroutine
// panics, or it makes room for a terabyte.
func TestGarbledReplies(t *testing.T) {
	server := testdep.Redis(t)
	for name, garble := range garblings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGarbler(t, server.Addr)
			s := openTest(t, Config{URL: "redis://" + g.Addr().String() + "?prefix=" + strings.ReplaceAll(name, " ", "-")})
			seldom := func(b []byte, r *rand.Rand) []byte {
				if len(b) == 0 || r.IntN(4) > 0 {
					return b
				}
				return garble(b, r)
			}
			for _, alg := range []tidegate.Algorithm{
				tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.Quota,
				tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency,
			} {
				g.garble.Store(&seldom)
				held := tryGarbled(t, s, alg)
				g.garble.Store(nil)
				eventually(t, func() error {
					_, err := s.Take(t.Context(), []tidegate.Check{held}, 1)
					return err
				})
			}
		})
	}
}

// tryGarbled asks for more than there is, from many at once and in every way.
func tryGarbled(t *testing.T, s *Store, alg tidegate.Algorithm) tidegate.Check {
	spec := tidegate.Spec{Name: "garbled", Algorithm: alg, Events: 50, Period: 24 * time.Hour}
	if alg == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Month
	}
	limit := tidegate.MustLimit(spec)
	check := tidegate.Check{Key: "ann", Limit: limit, Cost: 1}
	var granted atomic.Int64
	var all sync.WaitGroup
	note := func(d tidegate.Decision) {
		granted.Add(d.Granted)
		longest := 2 * limit.Period // of what the law can give
		if alg == tidegate.Quota {
			longest = 32 * 24 * time.Hour
		}
		if d.Remaining < 0 || d.Remaining > limit.Capacity() || d.RetryAfter < 0 || d.RetryAfter > longest || d.ResetAfter > longest || d.Wait > longest {
			t.Errorf("%s: %+v cannot be", alg, d)
		}
	}
	for i := range 8 {
		all.Go(func() {
			for j := range 15 {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				checks := []tidegate.Check{check}
				switch way := (i + j) % 4; {
				case way == 0 && alg != tidegate.Concurrency:
					asks := []chain.Ask{{Checks: checks, Copies: 1}, {Checks: []tidegate.Check{check}, Copies: 2}}
					if err := in(s).TakeBatch(ctx, asks); err != nil {
						t.Error(err)
					}
					for _, a := range asks {
						if a.Err == nil {
							note(a.Granted)
						}
					}
				case way == 1:
					if d, _, err := s.takeWithRest(ctx, checks, takeParams{copies: 3}); err == nil {
						note(d)
					}
				case way == 2:
					peek := []tidegate.Check{{Key: "ann", Limit: limit}}
					if d, err := s.Take(ctx, peek, 1); err == nil {
						d.Granted = 0
						note(d)
					}
					_, _ = in(s).Beat(ctx, chain.Heartbeat{ID: "node", TTL: time.Second, About: "{}"})
					// Others leave meanwhile.
					if all, err := in(s).Entries(ctx); err == nil && (len(all) > 1 || len(all) == 1 && (all[0].ID != "node" || all[0].About != "{}" && all[0].About != "")) {
						t.Errorf("garbled entries: %+v", all)
					}
				default:
					if d, err := s.Take(ctx, checks, 1); err == nil {
						note(d)
					}
					if j%3 == 0 {
						aside(ctx, s, limit, note)
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n > limit.Capacity() {
		t.Errorf("%s: %d granted of %d", alg, n, limit.Capacity())
	}
	return tidegate.Check{Key: "bob", Limit: limit, Cost: 1}
}

// aside does with another key what gets replies of other kinds.
func aside(ctx context.Context, s *Store, limit *tidegate.Limit, note func(tidegate.Decision)) {
	checks := []tidegate.Check{{Key: "eve", Limit: limit, Cost: 1}}
	sane := func(d tidegate.Decision, err error) {
		if d.Granted = 0; err == nil {
			note(d)
		}
	}
	d, err := s.Take(ctx, checks, 1)
	sane(d, err)
	if limit.Algorithm == tidegate.Concurrency {
		_ = s.Renew(ctx, d.Receipt, checks)
	} else {
		d, err := s.Reserve(ctx, checks, time.Minute)
		sane(d, err)
		_ = s.Settle(ctx, d.Receipt, 3)
	}
	checks[0].Cost = -1
	_ = s.Adjust(ctx, d.Receipt, checks)
	n := 0
	for range s.Keys(ctx, limit.Name) {
		if n++; n > 10_000 {
			panic("there are not so many keys")
		}
	}
	_ = s.Reset(ctx, checks)
	_ = s.Ping(ctx)
	_ = in(s).Leave(ctx, "node")
}

// eventually wants try to work in a while.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var err error
	if !testdep.Await(30*time.Second, func() bool { err = try(); return err == nil }) {
		t.Errorf("it is not well again: %v", err)
	}
}

// TestSurplusReply says five bytes too many on a connection that is quiet, over and over.
func TestSurplusReply(t *testing.T) {
	server := testdep.Redis(t)
	g := newGarbler(t, server.Addr)
	s := openTest(t, Config{URL: "redis://" + g.Addr().String()})
	for i := range 20 {
		eventually(t, func() error { return s.Ping(t.Context()) })
		for _, serverError := range []string{"+OK\r\n", "-ERR max number of clients reached\r\n", "$3\r\nabc\r\n", "*0\r\n", ">0\r\n"} {
			select {
			case g.extra <- []byte(serverError):
			case <-time.After(time.Millisecond * time.Duration(10+i)):
			}
		}
	}
	eventually(t, func() error { return s.Ping(t.Context()) })
}

// TestGarbledTopology garbles what Sentinels and a node of a cluster say: who is master, who
// has which slot, and the news that Sentinels publish.
func TestGarbledTopology(t *testing.T) {
	_, sentinels := testdep.RedisSentinel(t, 1)
	nodes := testdep.RedisCluster(t, 3, 0)
	for name, garble := range garblings {
		seldom := func(b []byte, r *rand.Rand) []byte {
			if len(b) == 0 || r.IntN(3) > 0 {
				return b
			}
			return garble(b, r)
		}
		for kind, target := range map[string]string{"redis-sentinel://%s/mymaster": sentinels[0].Addr, "redis-cluster://%s": nodes[0].Addr} {
			t.Run(name+" "+kind[:10], func(t *testing.T) {
				t.Parallel()
				g := newGarbler(t, target)
				g.garble.Store(&seldom)
				for range 6 { // each asks for the topology anew
					s := openTest(t, Config{URL: fmt.Sprintf(kind, g.Addr())})
					for i := range 5 {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						_, _ = s.Take(ctx, []tidegate.Check{{Key: fmt.Sprint(i), Limit: one100.Limit, Cost: 1}}, 1)
						cancel()
					}
					_ = s.Close()
				}
				g.garble.Store(nil)
				s := openTest(t, Config{URL: fmt.Sprintf(kind, g.Addr())})
				eventually(t, func() error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, err := s.Take(ctx, []tidegate.Check{one100}, 1)
					return err
				})
			})
		}
	}
}
