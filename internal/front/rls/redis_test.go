package rls_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rls"
)

// everyKind has a rule of each algorithm, and of each way to share it.
const everyKind = `
domain: d
descriptors:
  - { key: fixed, rate_limit: { unit: hour, requests_per_unit: 100000 } }
  - { key: bucket, rate_limit: { unit: hour, requests_per_unit: 100000, tidegate: { algorithm: token_bucket } } }
  - { key: log, rate_limit: { unit: hour, requests_per_unit: 5000, tidegate: { algorithm: sliding_log } } }
  - { key: window, rate_limit: { unit: hour, requests_per_unit: 100000, tidegate: { algorithm: sliding_window } } }
  - { key: parts, rate_limit: { unit: hour, requests_per_unit: 100000, tidegate: { algorithm: sub_windows } } }
  - { key: leased, rate_limit: { unit: hour, requests_per_unit: 100000, tidegate: { algorithm: token_bucket, consistency: leased } } }
  - { key: split, rate_limit: { unit: hour, requests_per_unit: 100000, tidegate: { algorithm: token_bucket, consistency: split } } }
  - { key: several, rate_limit: { tidegate: { limits: [100000/minute, 1000000/hour] } } }
`

var kinds = []string{"fixed", "bucket", "log", "window", "parts", "leased", "split", "several"}

// patient is a deadline that a busy machine meets.
const patient = time.Minute

// onRedis is a service whose counters are in Redis. Deadlines of 0 are those by default.
func onRedis(t testing.TB, server *testdep.RedisServer, config string, deadline time.Duration) (*service, *fleet.Store) {
	t.Helper()
	store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: deadline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := serve(t, rls.Options{Domains: domains(t, config), Store: store, Far: true, Deadline: deadline})
	testdep.Eventually(t, "Redis", func() bool {
		s.ask(request("d", "fixed=warm"))
		return store.Health().Status == fleet.OK
	})
	return s, store
}

// Envoy's filter gives up after 20 ms. A Redis that stands still makes no call take that long,
// while nobody knows yet that it does: whatever the algorithm, with keys that are known and with
// new ones, with one descriptor, with many, and with one counter several times in a call.
func TestTrap11EnvoySeesNoTimeout(t *testing.T) {
	server := testdep.Redis(t)
	s, store := onRedis(t, server, everyKind, 0)
	asked := 0
	ask := func(timeout time.Duration, r *pb.RateLimitRequest) error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		out, err := s.client.ShouldRateLimit(ctx, r)
		if err == nil && out.OverallCode != pb.RateLimitResponse_OK {
			return fmt.Errorf("refused: %v", out)
		}
		return err
	}
	f := func(name string, make func(n int) *pb.RateLimitRequest) {
		t.Helper()
		late := 0
		for range 50 {
			server.Resume()
			testdep.Eventually(t, "Redis decides again", func() bool {
				_ = ask(time.Minute, request("d", "fixed=warm"))
				return store.Health().Status == fleet.OK
			})
			asked++
			if err := ask(time.Minute, make(asked)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			asked++
			r := make(asked)
			server.Pause()
			var err error
			stood := testdep.Standstill(func() { err = ask(20*time.Millisecond, r) })
			if err == nil {
				return
			}
			if stood < 2*time.Millisecond {
				late++
			}
			if late == 3 { // many short standstills may take as long as one that is seen
				t.Errorf("%s, while Redis stands still, three times: %v", name, err)
				return
			}
		}
		t.Errorf("%s: this machine is too busy to tell", name)
	}
	defer server.Resume()
	for _, kind := range kinds {
		f(kind+", known", func(int) *pb.RateLimitRequest { return request("d", kind+"=warm") })
		f(kind+", new", func(n int) *pb.RateLimitRequest { return request("d", fmt.Sprintf("%s=cold-%d", kind, n)) })
		f(kind+", several times", func(n int) *pb.RateLimitRequest {
			one := fmt.Sprintf("%s=again-%d", kind, n)
			return request("d", one, one, one+" hits 0", one+" back 1", one)
		})
	}
	f("20 descriptors", func(n int) *pb.RateLimitRequest {
		var all []string
		for i := range 20 {
			all = append(all, fmt.Sprintf("%s=many-%d-%d", kinds[i%len(kinds)], n, i))
		}
		return request("d", all...)
	})
}

// On Redis answers are those of the memory.
func TestOnRedis(t *testing.T) {
	server := testdep.Redis(t)
	s, _ := onRedis(t, server, plain+`
  - { key: fixed, rate_limit: { unit: hour, requests_per_unit: 100000 } }
`, patient)
	hits(t, s)
	s.want("OVER | OVER 0 of 5/hour", "d", "five=ten hits 10")
	s.want("OVER | OVER 0 of 5/hour", "d", "five=ten")
	s.want("OK | OK 4 of 5/hour | OK 3 of 5/hour | OK 1 of 2/hour", "d", "five=p", "five=p", "a=p")
}
