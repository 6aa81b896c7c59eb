package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// postLimits are one of each algorithm that can be charged unasked, of 1000 events.
func postLimits() (all []*tidegate.Limit) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: a.String(), Scope: "user", Algorithm: a, Events: 1000, Period: 300 * 24 * time.Hour}
		if a == tidegate.Quota {
			spec.Period, spec.Calendar = 0, tidegate.Year
		}
		if a == tidegate.LeakyBucket {
			spec.Burst = 999
		}
		all = append(all, tidegate.MustLimit(spec))
	}
	return all
}

// usedOf is how many events of l are, of a limit that takes days for one.
func usedOf(t *testing.T, s *Store, l *tidegate.Limit, key string) int64 {
	t.Helper()
	d := mustTake(t, s, 1, tidegate.Check{Key: key, Limit: l, MaxWait: l.Period})
	if l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket {
		return int64((d.ResetAfter*time.Duration(l.Events) + l.Period - 1) / l.Period)
	}
	return l.Capacity() - d.Remaining
}

// Posts count once, however often and in whatever order their copies arrive, and those of
// other processes and counters count beside them.
func TestPostsCountOnce(t *testing.T) {
	f := func(t *testing.T, s *Store) {
		ctx := context.Background()
		r := rand.New(rand.NewPCG(3, 4))
		boots := [][2]uint64{{r.Uint64(), r.Uint64()}, {r.Uint64(), r.Uint64()}}
		for _, l := range postLimits() {
			for _, key := range []string{"a", "b"} {
				var want int64
				for number := uint64(1); number <= 4; number++ {
					for i, boot := range boots {
						p := chain.Post{Boot: boot, Number: number*10 + uint64(i), Check: tidegate.Check{Key: key, Limit: l, Cost: 1 + r.Int64N(50)}}
						want += p.Check.Cost
						var copies sync.WaitGroup
						for range 5 {
							copies.Go(func() {
								if err := in(s).Post(ctx, p); err != nil {
									t.Error(err)
								}
							})
						}
						copies.Wait()
						if number > 1 {
							p.Number -= 10 // an old copy, which was under way for long
							if err := in(s).Post(ctx, p); err != nil {
								t.Error(err)
							}
						}
					}
				}
				if got := usedOf(t, s, l, key); got != want {
					t.Errorf("%s: %d charged to %s, want %d", l, got, key, want)
				}
			}
		}
	}
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		f(t, openTest(t, Config{Addrs: []string{testdep.Redis(t).Addr}}))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		f(t, openTest(t, clusterOf(testdep.RedisCluster(t, 3, 0))))
	})
}

// What is remembered of posts ends with what they charged, and after an hour at the latest.
func TestPostsAreForgotten(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := openTest(t, Config{Addrs: []string{server.Addr}})
	f := func(spec tidegate.Spec, want time.Duration) {
		t.Helper()
		l := tidegate.MustLimit(spec)
		server.Do("FLUSHALL")
		for number := range 3 {
			p := chain.Post{Boot: [2]uint64{1, 2}, Number: uint64(number + 1), Check: tidegate.Check{Key: "k", Limit: l, Cost: 1}}
			if err := in(s).Post(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}
		marks := strings.Fields(server.Do("KEYS", s.prefix+":posted:*"))
		if len(marks) != 1 {
			t.Fatalf("%s: %q", l, marks)
		}
		seconds, err := strconv.Atoi(strings.TrimSpace(server.Do("TTL", marks[0])))
		if left := time.Duration(seconds) * time.Second; err != nil || left > want || left < want-time.Minute {
			t.Errorf("%s: a post is remembered for %s, want %s: %v", l, left, want, err)
		}
		for k := range s.Keys(context.Background(), "") {
			if strings.Contains(k.Name, ":posted:") {
				t.Errorf("a mark is taken for a counter: %+v", k)
			}
		}
	}
	f(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 10, Period: time.Second}, 62*time.Second)
	f(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 10, Burst: 100, Period: time.Second}, 80*time.Second)
	f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 10, Period: 10 * time.Minute}, 21*time.Minute)
	f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 10, Period: 24 * time.Hour}, 61*time.Minute)
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 10, Calendar: tidegate.Month}, 61*time.Minute)
}

// A post that cannot be one is said to be wrong, and one of nothing is nothing.
func TestPostsThatAreNone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Addr}})
	l := tidegate.PerHour(10)
	for i, c := range []struct {
		post chain.Post
		ok   bool
	}{
		{chain.Post{Number: 1, Check: tidegate.Check{Key: "k", Limit: l}}, true},
		{chain.Post{Number: 1, Check: tidegate.Check{Key: "k", Limit: l, Cost: -1}}, false},
		{chain.Post{Number: 1 << 53, Check: tidegate.Check{Key: "k", Limit: l, Cost: 1}}, false},
		{chain.Post{Number: 1, Check: tidegate.Check{Key: "k"}}, false},
	} {
		if err := in(s).Post(context.Background(), c.post); (err == nil) != c.ok {
			t.Error(i, fmt.Sprint(err))
		}
	}
}
