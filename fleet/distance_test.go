package fleet_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// farAway returns the address of a proxy before target whose round trips take so long.
func farAway(t *testing.T, target string, roundTrip time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			go carry(far, near, roundTrip/2)
			go carry(near, far, roundTrip/2)
		}
	}()
	return l.Addr().String()
}

// carry copies what it reads, each piece after a delay, until either side ends.
func carry(to, from net.Conn, delay time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{b[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	defer to.Close()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			from.Close()
			_, _ = io.Copy(io.Discard, from)
		}
	}
}

// A former shard is asked at every distance that the deadline allows: nobody is refilled while
// shards are changed.
func TestFormerShardsFarAway(t *testing.T) {
	servers, shards := newShards(t, "a", "b", "c")
	const users, budget = 40, 3
	l := tidegate.MustLimit(tidegate.Spec{Name: "each", Scope: "user", Events: budget, Period: 1000 * time.Hour})
	ask := func(t *testing.T, s *fleet.Store, who string, each int) (admitted, locally int64) {
		var ok, local atomic.Int64
		var all sync.WaitGroup
		for user := range users {
			all.Go(func() {
				for range each {
					d, err := s.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(who, user), Limit: l, Cost: 1}}, 1)
					if err != nil {
						t.Error(err)
					}
					if ok.Add(d.Granted); d.Receipt.Origin == tidegate.OriginLocal {
						local.Add(1)
					}
				}
			})
		}
		all.Wait()
		return ok.Load(), local.Load()
	}
	before := open(t, "", fleet.Options{Shards: shards[:2], Deadline: patient})
	if n, local := ask(t, before, "user-", budget+1); n != users*budget || local > 0 {
		t.Fatalf("%d admitted by two shards, want %d; %d decided locally", n, users*budget, local)
	}
	for _, roundTrip := range []time.Duration{0, 40, 120, 200} {
		t.Run(fmt.Sprint(int(roundTrip), " ms"), func(t *testing.T) {
			t.Parallel()
			far := make([]fleet.Shard, len(shards))
			for i, s := range shards {
				far[i] = fleet.Shard{Name: s.Name, URL: "redis://" + farAway(t, servers[i].Addr, roundTrip*time.Millisecond)}
			}
			s := open(t, "", fleet.Options{Shards: far, Was: far[:2], Deadline: patient})
			testdep.Eventually(t, "all shards answer", func() bool { // connecting takes several round trips
				_, local := ask(t, s, "other-", 1)
				return local == 0
			})
			if n, local := ask(t, s, "user-", 2); n != 0 || local > 0 {
				t.Errorf("%d admitted by a third shard with the former list; %d decided locally", n, local)
			}
		})
	}
}
