package rules

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// What is told at a reload, and by lint.
func TestCompare(t *testing.T) {
	f := func(old, new string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range Compare(parse(t, rulesOf(old), Config{}), parse(t, rulesOf(new), Config{})) {
			got = append(got, c.String())
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s to %s:\n%s\nwant\n%s", old, new, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	f("limits: 60/minute", "limits: 100/minute")
	f("limits: { rate: 5/minute, algorithm: token_bucket }", "limits: 5/minute",
		"rule api: 5/1m0s sliding_log continues from 5/1m0s token_bucket burst 5, which also applies for 1m0s")
	f("limits: 5/15m, block: 15m", "limits: 5/hour, block: 1h",
		"rule api: 5/1h0m0s sliding_log continues from 5/15m0s sliding_log, which also applies for 30m0s",
		"rule api: 1/1h0m0s sliding_log (block) continues from 1/15m0s sliding_log, which also applies for 30m0s")
	f("limits: 5/minute", "limits: [5/minute, 50/hour]",
		"rule api: counters of 50/1h0m0s sliding_log start empty: there was no such limit in its place")
	f("limits: 5/minute }\n  - { name: other, per: ip, limits: 5/minute", "limits: 5/minute }\n  - { name: another, per: ip, limits: 5/minute",
		"rule another: counters of 5/1m0s sliding_log start empty: the rule is new, or counted nothing")
	f("limits: 5/minute }\n  - { name: other, per: ip, limits: 5/minute", "limits: 5/minute }\n  - { name: other, per: user, limits: 5/minute",
		"rule other: counters of 5/1m0s sliding_log start empty: `per` has changed")
	f("limits: 5/minute", "limits: 5/minute, consistency: leased",
		"rule api: 5/1m0s token_bucket burst 5 continues from 5/1m0s sliding_log, which also applies for 1m0s")
	f("limits: { rate: 5/minute, algorithm: token_bucket }", "limits: 5/minute, consistency: leased")
	f("limits: { rate: 5/minute, algorithm: token_bucket }", "limits: 5/minute, consistency: split",
		"rule api: 5/1m0s token_bucket burst 5 split continues from 5/1m0s token_bucket burst 5, which also applies for 1m0s")
	f("limits: 5/minute, consistency: split", "limits: 5/minute, consistency: leased",
		"rule api: 5/1m0s token_bucket burst 5 continues from 5/1m0s token_bucket burst 5 split, which also applies for 1m0s")
	f("limits: 5/minute", "limits: 5/minute, queue: { places: 2, max_wait: 1s }, consistency: split")
	f("quota: { amount: 10/month, anchor: header X-Since }", "quota: 20/month",
		"rule api: counters of 20/month quota start empty: the quota before it started on a day of each caller")
	f("quota: { amount: 10/month, anchor: header X-Since }", "quota: { amount: 20/month, anchor: header X-Since }")
	f("quota: { amount: 10/month, anchor: header X-Since }", "limits: 5/hour",
		"rule api: counters of 5/1h0m0s sliding_log start empty: the quota before it started on a day of each caller")
}

// What is held to by the rules before is explained, with when that ends.
func TestExplainTellsOfPredecessors(t *testing.T) {
	d := newDesk(t, rulesOf(limitVariants["bucket"]))
	d.reload(rulesOf(limitVariants["log"]))
	checks := d.live.Explain(as("GET /", "user", "ann")).Rules[0].Checks
	if len(checks) != 2 || checks[0].Until != nil || checks[1].Until == nil || !checks[1].Until.Equal(d.clock.Add(time.Minute)) || checks[1].Algorithm != "token_bucket" {
		t.Errorf("%+v", checks)
	}
	if checks := d.live.Set().Explain(as("GET /", "user", "ann")).Rules[0].Checks; len(checks) != 1 {
		t.Errorf("a Set by itself has nothing before it: %+v", checks)
	}
}

// Clients are told of one limit, the one in force, and of what is left by both.
func TestPredecessorIsNotTold(t *testing.T) {
	for from, old := range limitVariants {
		for to, new := range limitVariants {
			now := time.Date(2026, 11, 15, 12, 0, 7, 0, time.UTC)
			c := Config{Now: func() time.Time { return now }}
			live := NewLive(parse(t, rulesOf(old), c))
			gate := tidegate.NewGate(live, memory.Open(memory.Config{Now: c.Now}))
			h := httplimit.Gate(gate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			ask := func() http.Header {
				r := httptest.NewRequest("GET", "/", nil)
				r.Header.Set("X-User", "ann")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Header()
			}
			for range 4 {
				ask()
			}
			live.Swap(parse(t, rulesOf(new), c))
			plain := httptest.NewRecorder()
			httplimit.Gate(tidegate.NewGate(live.Set(), memory.New()))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).
				ServeHTTP(plain, httptest.NewRequest("GET", "/", nil))
			for left := 5; left >= 0; left-- {
				got := ask()
				if want := plain.Header().Get("RateLimit-Policy"); got.Get("RateLimit-Policy") != want {
					t.Fatalf("%s to %s: RateLimit-Policy %s, want %s", from, to, got.Get("RateLimit-Policy"), want)
				}
				var remaining int
				if _, err := fmt.Sscanf(strings.SplitAfter(got.Get("RateLimit"), "r=")[1], "%d", &remaining); err != nil {
					t.Fatal(err)
				}
				if remaining > 9 || remaining != left {
					t.Errorf("%s to %s: RateLimit %s, want %d remaining", from, to, got.Get("RateLimit"), left)
				}
			}
		}
	}
}
