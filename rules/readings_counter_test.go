package rules

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A path whose readings take different branches charges the counter of the rule once, under the
// tighter limit, with every algorithm and whichever reading comes first.
func TestReadingsChargeACounterOnce(t *testing.T) {
	odd := func() *tidegate.Request { return plainRequest("/a;b") } // also read as /a
	for _, terms := range [][2]string{
		{"limits: { rate: 10/minute, algorithm: token_bucket }", "limits: { rate: 5/minute, algorithm: token_bucket }"},
		{"limits: { rate: 10/minute, algorithm: leaky_bucket }, queue: { places: 9, max_wait: 50s }", "limits: { rate: 10/minute, algorithm: leaky_bucket }, queue: { places: 4, max_wait: 40s }"},
		{"limits: { rate: 10/minute, algorithm: fixed_window }", "limits: { rate: 5/minute, algorithm: fixed_window }"},
		{"limits: { rate: 10/minute, algorithm: sliding_log }", "limits: { rate: 5/minute, algorithm: sliding_log }"},
		{"limits: { rate: 10/minute, algorithm: sliding_window }", "limits: { rate: 5/minute, algorithm: sliding_window }"},
		{"limits: { rate: 10/minute, algorithm: sub_windows }", "limits: { rate: 5/minute, algorithm: sub_windows }"},
		{"limits: { rate: 10/minute, algorithm: sub_windows }", "limits: { rate: 5/minute, algorithm: sliding_log }"},
		{"quota: 10/month", "quota: 5/month"},
		{"concurrency: { slots: 10, lease: 1m }", "concurrency: { slots: 5, lease: 1m }"},
	} {
		for _, branch := range []string{"/a", "/a;b"} {
			for swap := range 2 {
				src := `
identify: { place: path }
rules: [{ name: r, per: everyone, ` + terms[1-swap] + `, for: [{ when: { place: "` + branch + `" }, ` + terms[swap] + ` }] }]
`
				d := newDesk(t, src)
				set := d.live.Set()
				checks := set.Match(odd(), nil)
				if len(checks) != 1 || checks[0].Limit.Capacity() != 5 || checks[0].Cost != 1 {
					t.Errorf("%s\n/a;b is held to\n%s", src, show(checks))
					continue
				}
				if checks[0].MaxWait > 40*time.Second {
					t.Errorf("%s\n/a;b may wait for %s, as only one of its readings may", src, checks[0].MaxWait)
				}
				agree(t, set, odd())
				admitted := 0
				for range 12 {
					if a, err := d.store.Take(t.Context(), checks, 1); err != nil {
						t.Fatal(err)
					} else if a.OK {
						admitted++
					}
				}
				if admitted != 5 {
					t.Errorf("%s\n%d requests pass, want 5", src, admitted)
				}
			}
		}
	}
}

// The highest cost of all readings is charged, once, and what is set aside stays so.
func TestReadingsChargeTheHighestCost(t *testing.T) {
	set := parse(t, `
identify: { place: path }
classes: [{ name: main, when: { place: "/none" } }, { name: rest }]
rules:
  - name: r
    per: everyone
    limits: 100/minute
    cost: 3
    set_aside: { main: 20% }
    for: [{ when: { place: "/a" }, limits: 50/minute, cost: 2 }]
`, Config{})
	heldTo(t, set)(plainRequest("/a;b"), "r: 50/1m0s sub_windows per everyone cost 3")
	for _, path := range []string{"/a;b", "/;b/a", "/a;b;c"} {
		checks := set.Match(plainRequest(path), nil)
		if len(checks) != 1 || checks[0].Floor != 10 || checks[0].Cost != 3 {
			t.Errorf("%s is held to\n%swith %d left for others, want 10", path, show(checks), checks[0].Floor)
		}
		agree(t, set, plainRequest(path))
	}
}

// What is not the same kind of check stays apart: what only marks or tries, ceilings, blocks, and
// what gives way for a while.
func TestReadingsKeepKindsApart(t *testing.T) {
	f := func(branch, own string, want ...string) {
		t.Helper()
		set := parse(t, `
identify: { place: path }
rules: [{ name: r, per: everyone, `+own+`, for: [{ when: { place: "/a" }, `+branch+` }] }]
`, Config{Signals: signals{"cpu": 0.9}})
		heldTo(t, set)(plainRequest("/a;b"), want...)
		agree(t, set, plainRequest("/a;b"))
	}
	const per = " sliding_log per everyone"
	f("limits: 10/minute, over: { soft: 50% }", "limits: 5/minute",
		"r: 5/1m0s"+per, "r: 10/1m0s"+per+"#nominal advisory marks")
	f("limits: 4/minute, over: { soft: 50% }", "limits: 8/minute, over: { soft: 50% }",
		"r: 4/1m0s"+per+"#nominal advisory marks", "r: 6/1m0s"+per)
	// Without room the nominal limit of one reading decides, and that of the other marks.
	f("limits: 4/minute, over: { elastic: { while: cpu < 80%, up_to: 2x } }", "limits: 8/minute, over: { soft: 50% }",
		"r: 8/1m0s"+per+"#nominal advisory marks", "r: 8/1m0s"+per, "r: 4/1m0s"+per+"#nominal")
	// One gives way for a while, and the other does not.
	f("limits: 4/minute, over: { soft: 50%, max_time: 1m }", "limits: 8/minute, over: { elastic: { while: cpu < 80%, up_to: 2x } }",
		"r: 8/1m0s"+per+"#nominal", "r: 6/1m0s"+per, "r: 4/1m0s"+per+"#nominal")
	f("limits: 4/minute", "limits: 8/minute, block: 1m",
		"r: 1/1m0s"+per+"#block cost 0 blocks", "r: 4/1m0s"+per)
	f("limits: 4/minute", "limits: 8/minute, candidate: 9/minute",
		"r: 4/1m0s"+per, "r: 9/1m0s"+per+"#candidate advisory tries")
	f("limits: 4/minute", "limits: 8/minute, mode: shadow", "r: 4/1m0s"+per+" advisory tries")
	// Neither bucket is the tighter one: one holds less, the other refills more slowly.
	f("limits: { rate: 10/minute, algorithm: token_bucket, burst: 3 }", "limits: { rate: 5/minute, algorithm: token_bucket, burst: 7 }",
		"r: 5/1m0s token_bucket burst 7 per everyone", "r: 10/1m0s token_bucket burst 3 per everyone")
	f("limits: { rate: 10/minute, algorithm: token_bucket, burst: 7 }", "limits: { rate: 5/minute, algorithm: token_bucket, burst: 7 }", "r: 5/1m0s token_bucket burst 7 per everyone")
	f("quota: 4/month", "limits: 8/minute", "r: 8/1m0s"+per, "r: 4/month quota per everyone")
}

// An estimate in one reading and a fixed cost in another: what is not settled is charged, and no more of the estimate
// stays than is used.
func TestReadingsOfEstimatesAndCosts(t *testing.T) {
	f := func(branch string, used, want int64) {
		t.Helper()
		d := newDesk(t, `
identify: { place: path }
rules: [{ name: r, per: everyone, limits: 10000/minute, cost: { reserve: query n, else: 400, settle: response.header.X-Used }, for: [{ when: { place: "/a" }, `+branch+` }] }]
`)
		decision, v := d.gate.Enter(t.Context(), plainRequest("/a;b"))
		if !decision.OK {
			t.Fatalf("%s: %+v", branch, decision)
		}
		v.End(tidegate.Outcome{Status: 200, Cost: used, CostKnown: true})
		if left := d.gate.Peek(t.Context(), plainRequest("/none")).Remaining; left != 10000-want {
			t.Errorf("%s, %d used: %d charged, want %d", branch, used, 10000-left, want)
		}
	}
	f("cost: 1", 50, 51) // of two readings, neither is certain
	f("cost: 400", 50, 400)
	f("cost: 500", 50, 500)
	f("limits: 9000/minute", 50, 50)
}
