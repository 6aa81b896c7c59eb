package rulefile

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A burst stands alone where it is that of a token bucket because of `consistency`, also in a
// tier, of which only the rules that use it know what it is.
func TestBurstWithoutAlgorithm(t *testing.T) {
	const alone = "only a token bucket has a burst, and `algorithm` is not set"
	f := func(src string, want ...string) {
		t.Helper()
		file, problems := Parse("rules.yaml", []byte("version: 1\nidentify: { plan: jwt.plan }\n"+src), Options{})
		var got []string
		for _, p := range problems {
			got = append(got, p.Message)
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s:\n%q, want %q", src, got, want)
		}
		if len(want) > 0 {
			return
		}
		for _, r := range file.Rules {
			for _, l := range r.Terms.Limits.All {
				if l.Spec.Algorithm != tidegate.TokenBucket || l.Spec.Burst != 9 || !l.Auto {
					t.Errorf("%s: %+v", src, l)
				}
			}
		}
	}
	const limit = "limits: { rate: 5/second, burst: 9 }"
	for _, mode := range []string{"leased", "split", "{ mode: leased, coalesce: false }"} {
		f("rules: [{ name: a, per: ip, " + limit + ", consistency: " + mode + " }]")
		f("defaults: { consistency: " + mode + " }\nrules: [{ name: a, per: ip, " + limit + " }]")
		f("tiers: { free: { " + limit + " } }\nrules: [{ name: a, per: ip, tier: { from: plan, else: free }, consistency: " + mode + " }]")
		f("tiers: { free: { "+limit+" } }\nrules:\n  - { name: a, per: ip, tier: { from: plan, else: free }, consistency: "+mode+" }\n  - { name: b, per: ip, tier: { from: plan, else: free } }", alone)
		f("rules: [{ name: a, per: ip, "+limit+", queue: { places: 3, max_wait: 1s }, consistency: "+mode+" }]", alone)
		f("rules: [{ name: a, per: ip, limits: { rate: 5/second, burst: 9, parts: 4 }, consistency: "+mode+" }]", "`burst` means nothing to sub_windows")
		f("rules: [{ name: a, per: ip, limits: { rate: 5/second, burst: 9, algorithm: fixed_window }, consistency: "+mode+" }]", "`burst` means nothing to fixed_window")
	}
	for _, mode := range []string{"strict", "eventual"} {
		f("rules: [{ name: a, per: ip, "+limit+", consistency: "+mode+" }]", alone)
		f("rules: [{ name: a, per: ip, limits: 5/second, candidate: { rate: 5/second, burst: 9 }, consistency: "+mode+" }]", alone)
	}
}

// One algorithm for all branches, and for limits that are too slow for a bucket another one:
// `consistency` never makes a file invalid.
func TestSlowLimitsAreNoBuckets(t *testing.T) {
	for _, mode := range []string{"leased", "split"} {
		for period, want := range map[string]tidegate.Algorithm{"1/336h": tidegate.TokenBucket, "1/337h": tidegate.SlidingLog, "200/8784h": tidegate.SubWindows, "200/8000h": tidegate.TokenBucket} {
			file, problems := Parse("rules.yaml", []byte("version: 1\nidentify: { plan: jwt.plan }\nrules: [{ name: a, per: ip, limits: "+period+
				", for: [{ when: { plan: x }, limits: 50"+period[strings.Index(period, "/"):]+" }], consistency: "+mode+" }]"), Options{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			own, branch := file.Rules[0].Terms.Limits.All[0].Spec.Algorithm, file.Rules[0].For[0].Terms.Limits.All[0].Spec.Algorithm
			if own != want || branch != want {
				t.Errorf("%s %s: counted by %s, and by %s in a branch; want %s", mode, period, own, branch, want)
			}
		}
	}
}

// What is leased holds back at most half of the burst, lasts 20 to 100 ms and has two events for
// each instance, or there are no leases.
func TestLeaseOf(t *testing.T) {
	leases := 0
	for _, algorithm := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.Quota} {
		for _, events := range []int64{1, 19, 20, 21, 500, 20_000, 1_000_000} {
			for _, period := range []time.Duration{time.Second, time.Minute, 10 * time.Second} {
				for _, burst := range []int64{0, 1, 39, 40, 41, 800, 5000, 1_000_000} {
					spec := tidegate.Spec{Events: events, Period: period, Algorithm: algorithm}
					switch algorithm {
					case tidegate.TokenBucket:
						spec.Burst = burst
					case tidegate.Quota:
						spec.Period, spec.Calendar, spec.Events = 0, tidegate.Day, events*200
					}
					l, err := tidegate.NewLimit(spec)
					if err != nil {
						continue // it would take years to refill
					}
					for _, instances := range []int{0, 1, 2, 5, 100} {
						perSecond := RateOf(l)
						lease, err := LeaseOf(l, instances)
						life := min(0.1, float64(l.Capacity()/2)/perSecond)
						can := life >= 0.02-1e-9 && perSecond*life >= float64(2*max(1, instances))
						if can != (err == nil) {
							t.Fatalf("%s on %d: %+v, %v; want leases %v", l, instances, lease, err, can)
						}
						if err != nil {
							continue
						}
						leases++
						if lease.Life < MinLease || lease.Life > MaxLease || 2*lease.Events > float64(l.Capacity())*1.000001 {
							t.Errorf("%s on %d: %+v", l, instances, lease)
						}
					}
				}
			}
		}
	}
	if leases < 100 {
		t.Errorf("only %d leases", leases)
	}
}
