package deferq

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/rules"
)

// swap puts other rules in force.
func (b *bench) swap(text string) {
	b.t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.live.Swap(set)
}

// A change of the limit holds for what is kept; without the rule, the limit that the request was
// accepted under does.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(testRules, "per_key: 40", "per_key: 80", 1)
		b := newBench(t, text)
		defer b.close()
		b.accept("ann", 0, 60)
		time.Sleep(5 * time.Second)
		if n := len(b.arrivals()); n > 12 {
			t.Errorf("%d after 5 s at 2/second", n)
		}
		b.swap(strings.Replace(text, "2/second", "10/second", 1))
		time.Sleep(2 * time.Second) // one of which it may wait for the limit of before
		if n := len(b.arrivals()); n < 20 || n > 44 {
			t.Errorf("%d after two more at 10/second", n)
		}
		b.swap("version: 1\nrules: [{ name: other, per: ip, limits: 5/minute }]\n")
		before := len(b.arrivals())
		time.Sleep(2 * time.Second)
		if n := len(b.arrivals()) - before; n < 2 || n > 6 {
			t.Errorf("%d in 2 s without the rule, want about 4: it was accepted at 2/second", n)
		}
		time.Sleep(25 * time.Second)
		if n := len(b.arrivals()); n != 60 {
			t.Errorf("%d in the end", n)
		}
	})
}

// A rule that loses `defer` keeps no more. What it has kept is sent under its limit as it is now, beside live
// requests, of which none is kept. When it has `defer` again, live requests join those that are still kept.
func TestDeferIsLostAndGained(t *testing.T) {
	const line = "    defer: { keep: 1h, places: 100, per_key: 40, max_body: 1KB }\n"
	without := strings.Replace(testRules, line, "", 1)
	for _, limit := range []string{"2/second", "1/second", "10/second"} {
		for _, algorithm := range []string{"sub_windows", "token_bucket", "fixed_window", "sliding_log"} {
			t.Run(limit+" "+algorithm, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rate := func(text, limit string) string {
						return strings.Replace(text, "limits: 2/second", fmt.Sprintf("limits: { rate: %s, algorithm: %s }", limit, algorithm), 1)
					}
					b := newBench(t, rate(testRules, "2/second"))
					defer b.close()
					b.accept("ann", 0, 30) // two of which pass
					b.swap(rate(without, limit))
					time.Sleep(2 * time.Second) // it may be held to the counters of before
					before := len(b.arrivals())
					live := map[int]int{}
					for range 50 {
						live[b.order("ann", "live").Code]++
						time.Sleep(100 * time.Millisecond)
					}
					perSecond := map[string]int{"2/second": 2, "1/second": 1, "10/second": 10}[limit]
					if n := len(b.arrivals()) - before; n > 6*perSecond || n < 4*perSecond {
						t.Errorf("%d in 5 s at %s without defer", n, limit)
					}
					if live[202] > 0 || live[200]+live[429] != 50 {
						t.Errorf("live requests are answered %v", live)
					}
					kept := func() (n int) {
						for _, a := range b.arrivals() {
							if a.body != "live" {
								n++
							}
						}
						return n
					}
					b.swap(rate(testRules, "2/second"))
					if w := b.order("ann", "30"); kept() < 30 && w.Code != 202 {
						t.Errorf("a live request is answered %d while others are kept", w.Code)
					}
					time.Sleep(time.Minute)
					var sent []string
					for _, a := range b.arrivals() {
						if a.body != "live" {
							sent = append(sent, a.body)
						}
					}
					for i, body := range sent {
						if len(sent) != 31 || body != fmt.Sprint(i) {
							t.Fatalf("%v came, want 31 in their order", sent)
						}
					}
				})
			})
		}
	}
}

// A rule that gains `defer` keeps what it refuses from that on.
func TestDeferIsGained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const line = "    defer: { keep: 1h, places: 100, per_key: 40, max_body: 1KB }\n"
		b := newBench(t, strings.Replace(testRules, line, "", 1))
		defer b.close()
		codes := func() (all []int) {
			for range 4 {
				all = append(all, b.order("ann", "x").Code)
			}
			return all
		}
		if got := fmt.Sprint(codes()); got != "[200 200 429 429]" {
			t.Errorf("without defer: %s", got)
		}
		b.swap(testRules)
		if got := fmt.Sprint(codes()); got != "[202 202 202 202]" {
			t.Errorf("with defer, and the limit used up: %s", got)
		}
		time.Sleep(10 * time.Second)
		if n := len(b.arrivals()); n != 6 {
			t.Errorf("%d came, want 6", n)
		}
	})
}
