package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/tallytest"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// regionStore is what a Store does for regions.
type regionStore struct {
	chain.Tallies
	chain.Regions
}

func openRegion(t *testing.T, url string) regionStore {
	t.Helper()
	tallies, s := openTallies(t, url)
	return regionStore{tallies, in(s).Regions()}
}

func TestRegions(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	var opened atomic.Int64
	tallytest.RunRegions(t, func(t *testing.T) tallytest.Store {
		return openRegion(t, fmt.Sprintf("redis://%s?prefix=region%d", server.Addr, opened.Add(1)))
	})
}

// Regions need one server, so that a script can note what has changed.
func TestRegionsNeedOneServer(t *testing.T) {
	t.Parallel()
	tallies, s := openTallies(t, "redis-cluster://"+testdep.RedisCluster(t, 3, 0)[0].Addr)
	if in(s).Regions() != nil {
		t.Error("a cluster has regions")
	}
	one := []chain.Tally{{Limit: eventualLimit("api", time.Minute), Key: "a", Region: 5, Instance: [2]uint64{1, 2}, Number: 1}}
	if err := tallies.Exchange(t.Context(), one); err != nil || one[0].Err == nil || !strings.Contains(one[0].Err.Error(), "single Redis") {
		t.Errorf("%v, %v", err, one[0].Err)
	}
}

// Another run of the server is another data set: the last changes may be missing.
func TestRegionDataSet(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t, "--save", "3600 1")
	url := "redis://" + server.Addr
	name := func() (feed, welcome string) {
		s := openRegion(t, url)
		f, err := s.Feed(t.Context(), chain.FeedQuery{To: "us", Hold: time.Second, Own: 1, All: true})
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Merge(t.Context(), chain.Greeting{From: "us", To: 1, Age: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f.DataSet, w.DataSet
	}
	name() // which names it
	f, w := name()
	if f == "" || f != w {
		t.Errorf("a data set is called %q and %q", f, w)
	}
	if again, _ := name(); again != f {
		t.Errorf("%q becomes %q", f, again)
	}
	server.Do("SAVE")
	server.Kill()
	server.Start()
	restarted, _ := name()
	if restarted == f {
		t.Error("it is called the same after a restart")
	}
	server.Do("FLUSHALL")
	name()
	if emptied, _ := name(); emptied == restarted {
		t.Error("it is called the same after it was emptied")
	}
}

// What is over is listed no more, and leaves nothing behind.
func TestRegionsEnd(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := openRegion(t, "redis://"+server.Addr)
	now := time.Now().UnixMicro()
	one := chain.Tally{
		Limit: eventualLimit("api", time.Second), Key: "a", Region: 5, Instance: [2]uint64{1, 2}, Number: 1,
		Parts: []chain.TallyPart{{Start: now, End: now + 2_000_000, Count: 3}},
	}
	if err := s.Exchange(t.Context(), []chain.Tally{one}); err != nil {
		t.Fatal(err)
	}
	if n := server.Do("ZCARD", "tg:regions:changed"); n != "1" {
		t.Errorf("%s counters have changed, want 1", n)
	}
	if !testdep.Await(30*time.Second, func() bool {
		if _, err := s.Feed(context.Background(), chain.FeedQuery{To: "us", Hold: time.Second, Own: 5, Since: 0}); err != nil {
			t.Fatal(err)
		}
		return server.Do("ZCARD", "tg:regions:changed") == "0" && server.Do("ZCARD", "tg:regions:ends") == "0"
	}) {
		t.Fatal("it is listed for ever")
	}
}

// A region that is gone for good is forgotten after a week, while others are heard of.
func TestRegionsThatAreGone(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	s := openRegion(t, "redis://"+server.Addr)
	for name, days := range map[string]int{"yesterday": 1, "days ago": 6, "a week ago": 8, "long ago": 300} {
		server.Do("ZADD", "tg:regions:heard", fmt.Sprint(time.Now().AddDate(0, 0, -days).UnixMicro()), name)
	}
	if _, err := s.Merge(t.Context(), chain.Greeting{From: "us", To: 1, Age: time.Second}, nil); err != nil {
		t.Fatal(err)
	}
	at, _, err := s.Heard(t.Context())
	if got := slices.Sorted(maps.Keys(at)); err != nil || fmt.Sprint(got) != "[days ago us yesterday]" {
		t.Errorf("%q, %v", got, err)
	}
}
