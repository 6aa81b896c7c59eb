package desk_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// algorithms of rules that count failures.
var algorithms = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "sub_windows"}

// tries and block are longer than any retry-after of the limits themselves.
const tries, block = 5, 720 * time.Hour

// triesOf is how many failures a rule admits: a leaky bucket has one turn at a time.
func triesOf(rule string) int {
	if rule == "leaky_bucket" {
		return 1
	}
	return tries
}

// failureRules are limits of failures with a block, by every algorithm, and rules that hold
// something until it is reported.
func failureRules() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, name := range algorithms {
		burst, queue := "", ""
		switch name {
		case "token_bucket":
			burst = fmt.Sprint(", burst: ", tries)
		case "leaky_bucket":
			queue = ", queue: { places: 9, max_wait: 1m }"
		}
		fmt.Fprintf(&b, "  - { name: %[1]s, match: POST /%[1]s, per: ip, limits: { rate: %[2]d/week, algorithm: %[1]s%[3]s }, count: { status: 401 }, block: 720h%[4]s }\n", name, tries, burst, queue)
	}
	b.WriteString(`
  - { name: llm, match: POST /llm, per: ip, limits: 100/week, cost: { reserve: body.max, default: 60, settle: response.body.used }, block: 720h }
  - { name: render, match: POST /render, per: ip, concurrency: { slots: 1, lease: 1h } }
  - { name: both, match: POST /both, per: ip, limits: 5/week, count: { status: 401 }, block: 720h }
  - { name: slot, match: POST /both, per: ip, concurrency: { slots: 5, lease: 1h } }
`)
	return b.String()
}

// eachDoor runs f on both doors, over both kinds of store, and compares what it returns.
func eachDoor(t *testing.T, f func(t *testing.T, d door, ip string) []string) {
	eachStore(t, func(t *testing.T, store tidegate.Store) {
		doors, _ := doorsTo(t, store, failureRules())
		var first []string
		for i, name := range []string{"check", "resp"} {
			got := f(t, doors[name], fmt.Sprint("192.0.2.", i+1))
			if first == nil {
				first = got
			}
			if strings.Join(got, "\n") != strings.Join(first, "\n") {
				t.Errorf("over %s:\n%s\nover the other door:\n%s", name, strings.Join(got, "\n"), strings.Join(first, "\n"))
			}
		}
	})
}

// wantRefused expects a refusal that says to come back in wait, or up to a minute less.
func wantRefused(t *testing.T, got result, wait time.Duration) {
	t.Helper()
	if got.decision != "limited" || got.remaining != 0 || got.ticket != "" || got.retry > wait || got.retry < wait-time.Minute {
		t.Errorf("%+v, want a refusal for %s", got, wait)
	}
}

// Failures that nobody reports block at exactly the limit, for as long as the rule says, by
// every algorithm and over every door.
func TestUnreportedFailuresBlock(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, ip string) (all []string) {
		for _, name := range append([]string{"both"}, algorithms...) {
			for i := range triesOf(name) {
				got := d.ask(t, "check", "POST", "/"+name, ip, 1, false)
				if got.decision != "allowed" || got.ticket == "" || name != "both" && got.remaining != int64(triesOf(name)-1-i) {
					t.Errorf("%s, number %d: %+v", name, i+1, got)
				}
				all = append(all, got.numbers())
				if name == "both" {
					d.release(t, got.ticket) // which says nothing about the outcome
				}
			}
			for range 2 {
				got := d.ask(t, "check", "POST", "/"+name, ip, 1, false)
				wantRefused(t, got, block)
				all = append(all, got.numbers())
			}
		}
		return all
	})
}

// Proxies never report.
func TestForwardAuthBlocks(t *testing.T) {
	eachStore(t, func(t *testing.T, store tidegate.Store) {
		_, forwardAuth := doorsTo(t, store, failureRules())
		for _, name := range algorithms {
			for i := range triesOf(name) + 1 {
				w := forwardAuth("/"+name, "192.0.2.1")
				if want := i < triesOf(name); (w.Code == 204) != want || !want && w.Header().Get("Retry-After") != fmt.Sprint(int(block.Seconds())) {
					t.Errorf("%s, number %d: %d, %v", name, i+1, w.Code, w.Header())
				}
			}
		}
	})
}

// Of many that ask at once, as many are admitted as the limit says, and whoever is refused is
// blocked: no refusal finds a charge that is not settled yet.
func TestParallelFailuresBlock(t *testing.T) {
	eachStore(t, func(t *testing.T, store tidegate.Store) {
		doors, forwardAuth := doorsTo(t, store, failureRules())
		for n := range 20 {
			ip := fmt.Sprint("192.0.2.", n+1)
			var wg sync.WaitGroup
			var mu sync.Mutex
			admitted := 0
			for i := range 4 * tries {
				wg.Go(func() {
					got := result{decision: "allowed"}
					if i%2 == 0 {
						got = doors["check"].ask(t, "check", "POST", "/sliding_log", ip, 1, false)
					} else if w := forwardAuth("/sliding_log", ip); w.Code != 204 {
						retry, _ := time.ParseDuration(w.Header().Get("Retry-After") + "s")
						got = result{decision: "limited", retry: retry}
					}
					mu.Lock()
					defer mu.Unlock()
					if got.decision == "allowed" {
						admitted++
					} else {
						wantRefused(t, got, block)
					}
				})
			}
			wg.Wait()
			if admitted != tries {
				t.Errorf("%d were admitted", admitted)
			}
		}
	})
}

// A status that does not count gives the charge back, and what it counted towards the block.
func TestReportGivesBack(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, ip string) (all []string) {
		for _, name := range algorithms {
			ask := func(report bool) result {
				got := d.ask(t, "check", "POST", "/"+name, ip, 1, report)
				all = append(all, got.numbers())
				return got
			}
			for i := range 4 * tries {
				got := ask(false)
				if got.remaining != int64(triesOf(name)-1) || !d.settle(t, got.ticket, "status", 200) {
					t.Fatalf("%s, number %d: %+v", name, i+1, got)
				}
				if d.settle(t, got.ticket, "status", 401) || d.settle(t, got.ticket, "status", 200) {
					t.Errorf("%s: it was settled twice", name)
				}
			}
			for i := range triesOf(name) - 1 {
				if got := ask(false); i == 0 && !d.settle(t, got.ticket, "status", 401) { // counts, as it did
					t.Errorf("%s: %+v", name, got)
				}
			}
			pending := ask(true)
			wantRefused(t, ask(false), time.Second) // the last place may yet be given back
			if !d.settle(t, pending.ticket, "status", 200) {
				t.Errorf("%s: %+v", name, pending)
			}
			if got := ask(false); got.decision != "allowed" || got.remaining != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			wantRefused(t, ask(false), block)
		}
		return all
	})
}

// Those who have said that they will report hold places meanwhile, and block nobody: not if all
// of them turn out not to count.
func TestPromisedReports(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, ip string) (all []string) {
		for _, name := range append([]string{"both"}, algorithms...) {
			for _, status := range []int{200, 401} {
				var tickets []string
				for range triesOf(name) {
					got := d.ask(t, "check", "POST", "/"+name, ip, 1, true)
					if got.decision != "allowed" || got.ticket == "" {
						t.Fatalf("%s: %+v", name, got)
					}
					tickets = append([]string{got.ticket}, tickets...) // turns are given back from the last
					all = append(all, got.numbers())
				}
				if got := d.ask(t, "check", "POST", "/"+name, ip, 1, true); got.decision != "limited" || name != "both" && got.retry > time.Second {
					t.Errorf("%s: %+v", name, got)
				}
				for _, ticket := range tickets {
					if !d.settle(t, ticket, "status", status) {
						t.Errorf("%s: not settled", name)
					}
				}
			}
			wantRefused(t, d.ask(t, "check", "POST", "/"+name, ip, 1, true), block)
		}
		return all
	})
}

// An estimate that nobody settles stays charged, and blocks; what is settled is the true cost.
func TestUnsettledEstimates(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, ip string) (all []string) {
		ask := func(command string, report bool) result {
			got := d.ask(t, command, "POST", "/llm", ip, 1, report)
			all = append(all, got.numbers())
			return got
		}
		first := ask("check", false)
		if first.remaining != 40 || !d.settle(t, first.ticket, "cost", 37) {
			t.Fatalf("%+v", first)
		}
		if d.settle(t, first.ticket, "cost", 0) {
			t.Error("it was settled twice")
		}
		second := ask("check", true)
		if second.decision != "allowed" || second.remaining != 3 {
			t.Errorf("%+v", second)
		}
		if got := ask("check", false); got.decision != "limited" || got.retry > time.Second {
			t.Errorf("with an estimate in flight: %+v", got)
		}
		if !d.settle(t, second.ticket, "cost", 0) {
			t.Error("not settled")
		}
		third := ask("reserve", false)
		if third.decision != "allowed" || third.remaining != 3 {
			t.Errorf("%+v", third)
		}
		if got := ask("reserve", false); got.decision != "limited" || got.retry > time.Second {
			t.Errorf("with a reservation in flight: %+v", got)
		}
		if !d.settle(t, third.ticket, "cost", 3) { // 40 are used
			t.Error("not settled")
		}
		if got := ask("check", false); got.remaining != 0 {
			t.Errorf("%+v", got)
		}
		if got := ask("check", false); got.decision != "limited" || got.retry < block-time.Minute {
			t.Errorf("%+v", got)
		}
		return all
	})
}

// Slots are held by a check as by acquire, and released as well; they start no block.
func TestSlotsOverDoors(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, ip string) (all []string) {
		for _, command := range []string{"check", "acquire"} {
			for _, report := range []bool{false, true} {
				first := d.ask(t, command, "POST", "/render", ip, 1, report)
				again := d.ask(t, command, "POST", "/render", ip, 1, report)
				if first.decision != "allowed" || again.decision != "limited" || again.retry > time.Hour {
					t.Errorf("%s: %+v, then %+v", command, first, again)
				}
				all = append(all, first.numbers(), again.numbers())
				if !d.release(t, first.ticket) {
					t.Error("not released")
				}
			}
		}
		return all
	})
}
