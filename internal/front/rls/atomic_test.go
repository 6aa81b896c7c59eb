package rls_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rls"
	"tidegate.dev/tidegate/store/memory"
)

// atomicOf has limits of 10 and of 4 by an algorithm.
func atomicOf(unit, algorithm string) string {
	return `
domain: d
tidegate: { atomic: true }
descriptors:
  - { key: ten, rate_limit: { unit: ` + unit + `, requests_per_unit: 10, tidegate: { algorithm: ` + algorithm + ` } } }
  - { key: four, rate_limit: { unit: ` + unit + `, requests_per_unit: 4, tidegate: { algorithm: ` + algorithm + ` } } }
  - { key: fixed, rate_limit: { unit: hour, requests_per_unit: 100000 } }
`
}

var algorithms = []string{"fixed_window", "token_bucket", "sliding_log", "sliding_window", "sub_windows"}

// Whatever the descriptors of a call are, the same one several times, some that look and some that give
// back: it is charged for all of them and admitted, or for none and refused.
func TestAtomicCallsOfAllKinds(t *testing.T) {
	for _, algorithm := range algorithms {
		for _, far := range []bool{false, true} {
			t.Run(fmt.Sprint(algorithm, far), func(t *testing.T) {
				for seed := range testdep.Longer(40, 2000) {
					o := inMemory(t, atomicOf("hour", algorithm))
					if o.Far = far; far {
						o.Near = nil
					}
					s := rls.New(o)
					randomCalls(t, s, algorithm, seed)
					s.Close()
				}
			})
		}
	}
}

// So it is on Redis, in windows that do not end while the test runs.
func TestAtomicCallsOnRedis(t *testing.T) {
	server := testdep.Redis(t)
	for _, algorithm := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			server.Do("FLUSHALL")
			s, _ := onRedis(t, server, atomicOf("month", algorithm), patient)
			for seed := range testdep.Longer(10, 500) {
				randomCalls(t, s.Server, algorithm, seed)
			}
		})
	}
}

// randomCalls asks, and keeps count of what remains.
func randomCalls(t *testing.T, s *rls.Server, algorithm string, seed int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	var counters []string
	left, most := map[string]int{}, map[string]int{}
	for i, limit := range []int{10, 10, 4, 4} {
		counter := fmt.Sprintf("%s=%d-%d", map[int]string{10: "ten", 4: "four"}[limit], seed, i)
		counters = append(counters, counter)
		left[counter], most[counter] = limit, limit
	}
	for range 12 {
		asked, back := map[string]int{}, map[string]int{}
		want := pb.RateLimitResponse_OK
		var texts []string
		for range 2 + random.IntN(4) {
			counter, hits := counters[random.IntN(len(counters))], random.IntN(4)
			if random.IntN(4) == 0 && hits > 0 {
				back[counter] += hits
				texts = append(texts, fmt.Sprintf("%s back %d", counter, hits))
				continue
			}
			asked[counter] += hits
			texts = append(texts, fmt.Sprintf("%s hits %d", counter, hits))
			// A window that is just full is not over its limit, as in envoyproxy/ratelimit.
			if hits == 0 && left[counter] == 0 && algorithm != "fixed_window" {
				want = pb.RateLimitResponse_OVER_LIMIT
			}
		}
		for counter, n := range asked {
			if n > left[counter] {
				want = pb.RateLimitResponse_OVER_LIMIT
			}
		}
		out, err := s.ShouldRateLimit(context.Background(), request("d", texts...))
		if err != nil {
			t.Fatal(err)
		}
		if out.OverallCode != want {
			t.Fatalf("seed %d, %q with %v left: %s", seed, texts, left, told(out))
		}
		if want == pb.RateLimitResponse_OK {
			for _, counter := range counters {
				left[counter] = min(left[counter]-asked[counter]+back[counter], most[counter])
			}
		}
		for _, counter := range counters {
			look, err := s.ShouldRateLimit(context.Background(), request("d", counter+" hits 0"))
			if err != nil {
				t.Fatal(err)
			}
			if got := int(look.Statuses[0].LimitRemaining); got != left[counter] {
				t.Fatalf("seed %d, after %q (%s): %d left of %s, want %d", seed, texts, told(out), got, counter, left[counter])
			}
		}
	}
}

// A refusal stands, even if there is room again when it is looked for who is over.
func TestAtomicRefusalStands(t *testing.T) {
	for _, algorithm := range algorithms {
		o := inMemory(t, atomicOf("hour", algorithm))
		now := noon
		o.Near, o.Store = nil, &tardy{memory.Open(memory.Config{Now: func() time.Time { return now }}), func() { now = now.Add(3 * time.Hour) }}
		s := serve(t, o)
		s.want("OK | OK 0 of 4/hour | OK 4 of 4/hour", "d", "four=a hits 4", "four=b hits 0")
		if out := s.ask(request("d", "four=a", "four=b")); out.OverallCode != pb.RateLimitResponse_OVER_LIMIT {
			t.Errorf("%s: %s", algorithm, told(out))
		}
		s.want("OK | OK 3 of 4/hour | OK 3 of 4/hour", "d", "four=a", "four=b")
	}
}

// tardy is a store after whose refusals of several checks much time passes.
type tardy struct {
	tidegate.Store
	pass func()
}

func (s *tardy) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	d, err := s.Store.Take(ctx, checks, n)
	if len(checks) > 1 && !d.OK {
		s.pass()
	}
	return d, err
}

// What remains of the descriptors of a call is asked at the same time if each takes a round trip, and so
// are those that only look.
func TestAtomicLooksAreTogether(t *testing.T) {
	const n = 16
	charged, looks := make([]string, n), make([]string, n)
	for i := range n {
		charged[i], looks[i] = fmt.Sprintf("ten=%d", i), fmt.Sprintf("ten=%d hits 0", i)
	}
	for _, descriptors := range [][]string{charged, looks} {
		o := inMemory(t, atomicOf("hour", "fixed_window"))
		store := &gathering{Store: o.Store, n: n, all: make(chan struct{})}
		o.Store, o.Near, o.Far, o.Deadline = store, nil, true, patient
		if out, err := rls.New(o).ShouldRateLimit(context.Background(), request("d", descriptors...)); err != nil || store.alone.Load() {
			t.Errorf("%q: %v, %v, one after the other: %t", descriptors, out, err, store.alone.Load())
		}
	}
}

// gathering is a store that answers single checks once n of them are asked.
type gathering struct {
	tidegate.Store
	n     int64
	asked atomic.Int64
	all   chan struct{}
	alone atomic.Bool // one had to be answered without the others
}

func (s *gathering) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if len(checks) == 1 {
		if s.asked.Add(1) == s.n {
			close(s.all)
		}
		select {
		case <-s.all:
		case <-ctx.Done():
			s.alone.Store(true)
			return tidegate.Decision{}, ctx.Err()
		}
	}
	return s.Store.Take(ctx, checks, n)
}

// Rules that only count, that settle and that refuse together keep to all or none.
func TestAtomicModes(t *testing.T) {
	const config = `
domain: d
tidegate: { atomic: true }
descriptors:
  - { key: wide, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: tight, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: settled, rate_limit: { unit: hour, requests_per_unit: 3, tidegate: { settle: true } } }
  - { key: nothing, rate_limit: { unit: hour, requests_per_unit: 0, tidegate: { settle: true } } }
  - { key: quota, rate_limit: { unit: hour, requests_per_unit: 1 }, quota_mode: true }
  - { key: tried, rate_limit: { unit: hour, requests_per_unit: 1 }, quota_mode: true, shadow_mode: true }
`
	f := func(name string, steps ...string) {
		t.Helper()
		s := serve(t, inMemory(t, config))
		for _, step := range steps {
			descriptors, want, _ := strings.Cut(step, " → ")
			if got := told(s.ask(request("d", strings.Split(descriptors, "; ")...))); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, descriptors, got, want)
			}
		}
	}
	f("settled above its limit",
		"wide=x; settled=x hits 5 → OK | OK 9 of 10/hour | OK 0 of 3/hour",
		"settled=x hits 0 → OVER | OVER 0 of 3/hour",
		"wide=x; settled=x hits 0 → OVER | OK 9 of 10/hour | OVER 0 of 3/hour", // a look is refused, as by itself
		"wide=x; settled=x → OK | OK 8 of 10/hour | OK 0 of 3/hour")
	f("settled in a call that is refused",
		"tight=x; tight=x; wide=x → OK | OK 0 of 2/hour | OK 0 of 2/hour | OK 9 of 10/hour",
		"tight=x; tight=y; settled=x hits 5 → OVER | OVER 0 of 2/hour | OK 2 of 2/hour | OK 3 of 3/hour",
		"settled=x hits 0 → OK | OK 3 of 3/hour")
	f("nothing to settle", "wide=x; nothing=x → OVER | OK 10 of 10/hour | OVER 0 of 0/hour", "wide=x hits 0 → OK | OK 10 of 10/hour")
	f("quota",
		"wide=x; quota=x → OK | OK 9 of 10/hour | OK 0 of 1/hour",
		"wide=x; quota=x → OVER | OK 9 of 10/hour | OVER 0 of 1/hour",
		"wide=x back 5; quota=x → OVER | OK 9 of 10/hour | OVER 0 of 1/hour",
		"wide=x; quota=x; quota=y → OK | OK 8 of 10/hour | OVER 0 of 1/hour | OK 0 of 1/hour")
	f("quota that is tried",
		"wide=x; quota=x; tried=x → OK | OK 9 of 10/hour | OK 0 of 1/hour | OK 0 of 1/hour",
		"wide=x; quota=x; tried=x → OK | OK 8 of 10/hour | OVER 0 of 1/hour | OK 0 of 1/hour")
}
