package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func regional(events int64) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: events, Algorithm: tidegate.Quota, Calendar: tidegate.Year,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: tidegate.PartitionContinue}},
	})
}

// openRegions opens three instances in each of two regions.
func openRegions(t *testing.T, servers [2]*testdep.RedisServer) (all [2][]*fleet.Store) {
	t.Helper()
	names := [2]string{"eu", "us"}
	for i := range names {
		for range 3 {
			s, err := fleet.Open("redis://"+servers[i].Addr, fleet.Options{
				Region: names[i], Regions: []fleet.Region{{Name: names[1-i], URL: "redis://" + servers[1-i].Addr}},
				Instances: func() int { return 3 },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			all[i] = append(all[i], s)
		}
	}
	return all
}

// left waits until an instance says that so many events are left.
func left(t *testing.T, what string, s *fleet.Store, l *tidegate.Limit, want int64) {
	t.Helper()
	var d tidegate.Decision
	var err error
	if !testdep.Await(time.Minute, func() bool {
		d, err = s.Take(context.Background(), []tidegate.Check{{Key: "one", Limit: l}}, 1)
		return err == nil && d.Remaining == want
	}) {
		t.Fatalf("%s: %d left, want %d (%v)", what, d.Remaining, want, err)
	}
}

func take(t *testing.T, s *fleet.Store, l *tidegate.Limit, cost int64) bool {
	t.Helper()
	d, err := s.Take(context.Background(), []tidegate.Check{{Key: "one", Limit: l, Cost: cost}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d.OK
}

// Two regions share a limit to the event. One that loses its Redis gets everything back, what its own
// instances had counted as well, and nothing twice.
func TestRegions(t *testing.T) {
	t.Parallel()
	servers := [2]*testdep.RedisServer{testdep.Redis(t), testdep.Redis(t)}
	all := openRegions(t, servers)
	l := regional(1000)
	for i := range 3 {
		for _, s := range [2]*fleet.Store{all[0][i], all[1][i]} {
			if !take(t, s, l, 50) {
				t.Fatal("refused")
			}
		}
	}
	for i := range all {
		left(t, fmt.Sprint("region ", i), all[i][0], l, 700)
	}
	_ = all[0][2].Close() // nobody but the other region knows what it counted, after
	servers[0].Kill()
	servers[0].Start()
	left(t, "after its Redis was lost", all[0][1], l, 700)
	left(t, "elsewhere", all[1][1], l, 700)
	if !take(t, all[0][0], l, 100) {
		t.Error("refused")
	}
	left(t, "afterwards, elsewhere", all[1][2], l, 600)
	if err := all[1][0].Reset(t.Context(), []tidegate.Check{{Key: "one", Limit: l}}); err != nil {
		t.Fatal(err)
	}
	left(t, "after a reset elsewhere", all[0][0], l, 1000)
}

// Operators see how far behind a region is, from any instance and from Redis itself.
func TestRegionHealth(t *testing.T) {
	t.Parallel()
	servers := [2]*testdep.RedisServer{testdep.Redis(t), testdep.Redis(t)}
	all := openRegions(t, servers)
	if !testdep.Await(time.Minute, func() bool {
		h := all[0][0].Health().Regions
		return len(h) == 1 && h[0].Name == "us" && h[0].Heard && !h[0].CutOff && h[0].Lag < 5*time.Second
	}) {
		t.Fatalf("%+v", all[0][0].Health().Regions)
	}
	outside, err := fleet.Open("redis://"+servers[0].Addr, fleet.Options{Deadline: patient, JoinLater: true})
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	if got, err := outside.Regions(t.Context()); err != nil || len(got) != 1 || got[0].Name != "us" || !got[0].Heard {
		t.Errorf("%+v, %v", got, err)
	}
	// One that was taken out of the list is no longer of interest to those who have one.
	servers[0].Do("ZADD", "tg:regions:heard", fmt.Sprint(time.Now().Add(-time.Hour).UnixMicro()), "gone")
	servers[0].Do("ZADD", "tg:regions:heard", fmt.Sprint(time.Now().Add(time.Hour).UnixMicro()), "unlisted")
	for s, want := range map[*fleet.Store]string{all[0][0]: "unlisted us ", outside: "gone unlisted us "} {
		got, err := s.Regions(t.Context())
		names := ""
		for _, r := range got {
			names += r.Name + " "
		}
		if err != nil || names != want {
			t.Errorf("%q, %v; want %q", names, err, want)
		}
	}
	if got := outside.Health().Regions; got != nil {
		t.Errorf("%+v", got)
	}
}

func TestRegionOptions(t *testing.T) {
	f := func(url string, o fleet.Options, want string) {
		t.Helper()
		s, err := fleet.Open(url, o)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	f("redis://127.0.0.1:1", fleet.Options{Region: "eu"}, "the only one")
	f("redis://127.0.0.1:1", fleet.Options{Regions: []fleet.Region{{Name: "us"}}}, "has no name")
	f("redis://127.0.0.1:1", fleet.Options{Region: "eu", Regions: []fleet.Region{{Name: "us", URL: "redis-cluster://127.0.0.1:1"}}}, "a cluster")
	f("redis-cluster://127.0.0.1:1", fleet.Options{Region: "eu", Regions: []fleet.Region{{Name: "us"}}}, "single Redis")
}

func ExampleOptions_regions() {
	// Everywhere the same names; each region has the URLs of the others.
	store, err := fleet.Open("redis://redis.eu.example.com", fleet.Options{
		Region:  "eu",
		Regions: []fleet.Region{{Name: "us", URL: "rediss://redis.us.example.com"}},
	})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	limit := tidegate.MustLimit(tidegate.Spec{
		Events: 60_000, Period: time.Minute,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: tidegate.PartitionShare}},
	})
	fmt.Println(limit, limit.Terms.Handling.OnPartition)
	// Output: 60000/1m0s sub_windows share
}
