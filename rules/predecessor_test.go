package rules

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// limitVariants to count ten a minute.
var limitVariants = map[string]string{
	"log":     "limits: { rate: 10/minute, algorithm: sliding_log }",
	"parts":   "limits: { rate: 10/minute, algorithm: sub_windows, parts: 6, ceiling: true }",
	"window":  "limits: { rate: 10/minute, algorithm: fixed_window }",
	"lumps":   "limits: { rate: 10/90s, refill: at_once }",
	"two":     "limits: { rate: 10/minute, algorithm: sliding_window }",
	"bucket":  "limits: { rate: 10/minute, algorithm: token_bucket }",
	"longer":  "limits: { rate: 20/2m, algorithm: token_bucket, burst: 10 }",
	"shorter": "limits: { rate: 10/30s, algorithm: sliding_log }",
	"quota":   "quota: 10/day",
	"leased":  "limits: 10/minute, consistency: leased",
	"split":   "limits: 10/minute, consistency: split",
	"shares":  "limits: { rate: 10/minute, algorithm: fixed_window }, consistency: split",
}

func rulesOf(terms string) string {
	return "identify: { user: client header X-User }\nrules:\n  - { name: api, per: user, " + terms + " }\n"
}

// Whatever limit takes the place of another: who had used it up is refused, and admitted
// at the latest when told to come back then; the counters in between refill nobody either.
func TestNoChangeRefills(t *testing.T) {
	for from, old := range limitVariants {
		for to, new := range limitVariants {
			for _, between := range []string{"", "log", "bucket", "window"} {
				name := from + " to " + to
				if between != "" {
					name = from + " by " + between + " to " + to
				}
				d := newDesk(t, rulesOf(old))
				d.wait(7 * time.Second)
				var told tidegate.Decision
				for told.OK = true; told.OK; {
					told = d.ask(as("GET /", "user", "ann"))
				}
				if between != "" {
					d.reload(rulesOf(limitVariants[between]))
				}
				d.reload(rulesOf(new))
				now := d.ask(as("GET /", "user", "ann"))
				if now.OK {
					t.Errorf("%s: refilled, told %s before: %+v", name, told.RetryAfter, now)
				}
				if free := d.ask(as("GET /", "user", "bob")); !free.OK {
					t.Errorf("%s: somebody who has used nothing is refused: %+v", name, free)
				}
				d.wait(told.RetryAfter)
				if to == "parts" && from == "log" { // one counter, which is read in whole parts from now on
					d.wait(10 * time.Second)
				}
				if again := d.ask(as("GET /", "user", "ann")); !again.OK {
					t.Errorf("%s: told %s, came back then, and was refused for %s by %s", name, told.RetryAfter, again.RetryAfter, again.Limit)
				}
			}
		}
	}
}

// A limit that becomes elastic, or soft for a while, continues from the hard one, by whatever algorithm: while it is
// hard, who has used that up is refused until told to come back, and who has not has the rest.
func TestHardLimitThatGivesWay(t *testing.T) {
	for from, old := range limitVariants {
		if strings.Contains(old, "consistency") || from == "longer" || from == "shorter" || from == "quota" {
			continue
		}
		for to, new := range map[string]string{
			"log":     "limits: { rate: 10/minute, algorithm: sliding_log }, over: { elastic: { while: cpu < 80%, up_to: 2x } }",
			"window":  "limits: { rate: 10/minute, algorithm: fixed_window }, over: { elastic: { while: cpu < 80%, up_to: 2x } }",
			"bucket":  "limits: { rate: 10/minute, algorithm: token_bucket }, over: { elastic: { while: cpu < 80%, up_to: 2x } }",
			"max_log": "limits: { rate: 10/minute, algorithm: sliding_log }, over: { soft: 50%, max_time: 30s }",
		} {
			d := newDesk(t, rulesOf(old))
			d.wait(7 * time.Second)
			d.passes(10, as("GET /", "user", "ann"))
			told := d.ask(as("GET /", "user", "ann"))
			for range 4 {
				d.ask(as("GET /", "user", "bob"))
			}
			d.reload(rulesOf(new))
			if now := d.ask(as("GET /", "user", "ann")); now.OK {
				t.Errorf("%s to %s: refilled, %d more", from, to, now.Remaining)
			}
			d.passes(6, as("GET /", "user", "bob"))
			d.wait(told.RetryAfter)
			if again := d.ask(as("GET /", "user", "ann")); !again.OK {
				t.Errorf("%s to %s: told %s, came back then, and was refused for %s by %s", from, to, told.RetryAfter, again.RetryAfter, again.Limit)
			}
			d.wait(3 * time.Minute)
			if n := len(d.live.Match(as("GET /", "user", "ann"), nil)); n != 2 {
				t.Errorf("%s to %s: held to %d limits when nothing is left of the one before", from, to, n)
			}
		}
	}
}

// A limit that was elastic, or soft for a while, and becomes hard continues from what was used while it was hard.
func TestLimitThatGivesWayNoMore(t *testing.T) {
	for from, over := range map[string]string{
		"elastic":  "elastic: { while: cpu < 80%, up_to: 2x }",
		"max_time": "soft: 100%, max_time: 30s",
	} {
		for to, new := range limitVariants {
			if strings.Contains(new, "consistency") || to == "longer" || to == "shorter" || to == "quota" {
				continue
			}
			for _, recalled := range []bool{false, true} {
				d := newDesk(t, rulesOf("limits: { rate: 10/minute, algorithm: token_bucket }, over: { "+over+" }"))
				told := tidegate.Decision{}
				for range 300 { // what drains at the pace of the ceiling is empty by then
					d.wait(time.Second)
					for told = d.ask(as("GET /", "user", "ann")); told.OK; told = d.ask(as("GET /", "user", "ann")) {
					}
				}
				if recalled {
					memory, err := d.live.Remember()
					if err != nil {
						t.Fatal(err)
					}
					d.live = NewLive(parse(t, rulesOf(new), d.config()))
					if _, err := d.live.Recall(memory); err != nil {
						t.Fatal(err)
					}
					d.gate = tidegate.NewGate(d.live, d.store)
				} else {
					d.reload(rulesOf(new))
				}
				if now := d.ask(as("GET /", "user", "ann")); now.OK {
					t.Errorf("%s to %s, recalled %v: refilled, %d more", from, to, recalled, now.Remaining)
				}
				d.wait(told.RetryAfter)
				if again := d.ask(as("GET /", "user", "ann")); !again.OK {
					t.Errorf("%s to %s, recalled %v: told %s, came back then, and was refused for %s by %s", from, to, recalled, told.RetryAfter, again.RetryAfter, again.Limit)
				}
			}
		}
	}
}

// In an outage an instance may have counted one of both, the limit or its ceiling: whoever has used up either is refused.
func TestLimitThatGivesWayNoMoreIsHeldToBoth(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "sliding_log", "fixed_window", "sliding_window", "sub_windows"} {
		limits := "limits: { rate: 10/minute, algorithm: " + algorithm + " }"
		d := newDesk(t, rulesOf(limits+", over: { elastic: { while: cpu < 80%, up_to: 2x } }"))
		nominal := d.live.Match(as("GET /", "user", "ann"), nil)[0]
		nominal.Cost = 10
		if got, err := d.store.Take(t.Context(), []tidegate.Check{nominal}, 1); err != nil || !got.OK {
			t.Fatalf("%+v, %v", got, err)
		}
		d.reload(rulesOf(limits))
		d.refuses(as("GET /", "user", "ann"))
	}
}

// Back again at once, it marks and gives way as before.
func TestLimitThatWasHardForAMoment(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := Config{Now: func() time.Time { return now }, Signals: steadySignal(0.5)}
	const hard, elastic = "limits: { rate: 10/minute, algorithm: token_bucket }", "limits: { rate: 10/minute, algorithm: token_bucket }, over: { elastic: { while: cpu < 80%, up_to: 2x } }"
	live := NewLive(parse(t, rulesOf(elastic), c))
	before := show(live.Match(as("GET /", "user", "ann"), nil))
	live.Swap(parse(t, rulesOf(hard), c))
	live.Swap(parse(t, rulesOf(elastic), c))
	if after := show(live.Match(as("GET /", "user", "ann"), nil)); after != before {
		t.Errorf("held to\n%swant\n%s", after, before)
	}
}

// While its signal has room, an elastic limit is the ceiling at once, also for who has used up the hard one before.
func TestHardLimitThatHasRoom(t *testing.T) {
	for _, algorithm := range []string{"sliding_log", "token_bucket"} {
		now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		c := Config{Now: func() time.Time { return now }, Signals: steadySignal(0.5)}
		live := NewLive(parse(t, rulesOf("limits: { rate: 10/minute, algorithm: sliding_log }"), c))
		gate := tidegate.NewGate(live, memory.Open(memory.Config{Now: c.Now}))
		ask := func() (n int) {
			for gate.Decide(t.Context(), as("GET /", "user", "ann")).OK {
				n++
			}
			return n
		}
		ask()
		live.Swap(parse(t, rulesOf("limits: { rate: 10/minute, algorithm: "+algorithm+" }, over: { elastic: { while: cpu < 80%, up_to: 2x } }"), c))
		if got := ask(); got != 10 {
			t.Errorf("%s: %d more, want 10 up to the ceiling", algorithm, got)
		}
	}
}

// What stands in for a limit that gives way does not, whatever it counts by.
func TestStandInIsHard(t *testing.T) {
	successor := parse(t, rulesOf("limits: 10/minute, over: { soft: 50%, max_time: 30s }"), Config{}).Match(request("GET /", "client header X-User", "u"), nil)[0].Limit
	if successor.Terms.MaxOver == 0 {
		t.Fatalf("%s does not give way", successor)
	}
	for name, terms := range limitVariants {
		old := parse(t, rulesOf(terms), Config{}).Match(request("GET /", "client header X-User", "u"), nil)[0].Limit
		if stand := standIn(old, successor, nil); stand.Identity() != old.Identity() || stand.Terms.MaxOver != 0 {
			t.Errorf("%s: %s stands in for %s, and gives way for %s", name, stand, old, stand.Terms.MaxOver)
		}
	}
	month := parse(t, rulesOf("quota: 10/month"), Config{}).Match(request("GET /", "client header X-User", "u"), nil)[0].Limit
	if stand := standIn(month, successor, nil); stand.Identity() != month.Identity() {
		t.Errorf("%s stands in for %s", stand, month)
	}
}

// A predecessor holds for one life, also through reloads of other things, and is then gone.
func TestPredecessorEnds(t *testing.T) {
	d := newDesk(t, rulesOf(limitVariants["bucket"]))
	f := func(want ...string) {
		t.Helper()
		if got := show(d.live.Match(as("GET /", "user", "ann"), nil)); got != strings.Join(append(want, ""), "\n") {
			t.Errorf("held to\n%swant\n%s", got, strings.Join(want, "\n"))
		}
	}
	const log, bucket, window = "api: 10/1m0s sliding_log per user ann", "api: 10/1m0s token_bucket burst 10 per user ann", "api: 10/1m0s fixed_window per user ann"
	f(bucket)
	d.reload(rulesOf(limitVariants["log"]))
	f(log, bucket)
	d.wait(30 * time.Second)
	d.reload(rulesOf("respond: { message: no }, " + limitVariants["log"]))
	f(log, bucket)
	d.reload(rulesOf(limitVariants["window"])) // what the log took the place of counts on
	f(window, bucket, log)
	d.reload(rulesOf(limitVariants["log"])) // back
	f(log, bucket, window)
	d.wait(30*time.Second - 1)
	f(log, bucket, window)
	d.wait(1)
	f(log, window)
	d.wait(30*time.Second - 1)
	f(log, window)
	d.wait(1)
	f(log)
	if d.live.force.Load().before != nil {
		t.Error("it costs something although nothing is left of it")
	}
}

// The stand-in has the numbers of the limit in force: what was used is preserved, and
// neither a raise nor a cut waits for the old counters to end.
func TestPredecessorHasTheNewNumbers(t *testing.T) {
	f := func(old, new string, used int, want string) {
		t.Helper()
		d := newDesk(t, rulesOf(old))
		for range used {
			d.ask(as("GET /", "user", "ann"))
		}
		d.reload(rulesOf(new))
		if got := show(d.live.Match(as("GET /", "user", "ann"), nil)); !strings.HasSuffix(got, want+" per user ann\n") || strings.Count(got, "\n") != 2 {
			t.Errorf("%s to %s: held to\n%swant\n%s", old, new, got, want)
		}
	}
	f("limits: { rate: 10/minute, algorithm: fixed_window }", "limits: { rate: 30/minute, burst: 5, algorithm: token_bucket }", 10, "10/1m0s fixed_window")
	f("limits: { rate: 10/minute, algorithm: fixed_window }", "limits: { rate: 30/minute, burst: 50, algorithm: token_bucket }", 10, "50/1m0s fixed_window")
	f("limits: { rate: 30/minute, algorithm: token_bucket }", "limits: 4/minute", 10, "30/1m0s token_bucket burst 4")
	f("limits: { rate: 1000/day, algorithm: token_bucket }", "limits: 100/minute", 10, "144000/24h0m0s token_bucket burst 1000")
	f("limits: 5/15m", "limits: 5/hour", 5, "5/15m0s sliding_log")
	f("limits: 5/hour", "limits: 5/15m", 5, "5/1h0m0s sliding_log")
	f("limits: 64/hour", "limits: 60000/minute", 5, "60000/1h0m0s sub_windows")
	f("quota: 1000/month", "limits: 10/hour", 5, "1000/month quota")
	f("limits: { rate: 30/second, algorithm: leaky_bucket }, queue: { places: 10, max_wait: 1s }", "limits: 10/second", 0, "30/1s leaky_bucket burst 9")
	f("concurrency: { slots: 5, lease: 30s }", "concurrency: { slots: 7, lease: 1m }", 5, "7 slots, lease 30s")
	f("limits: { rate: 3/720h, algorithm: token_bucket }", "quota: 1/year", 0, "3/720h0m0s token_bucket burst 1")
	// Where the numbers mean the same, those of another tier before it are nothing to it.
	f("limits: { rate: 30/minute, algorithm: token_bucket }, for: [{ when: { user: ann }, limits: { rate: 30/minute, burst: 4, algorithm: token_bucket } }]",
		"limits: { rate: 30/minute, algorithm: token_bucket }, consistency: split, for: [{ when: { user: ann }, limits: { rate: 30/minute, burst: 4, algorithm: token_bucket } }]",
		4, "30/1m0s token_bucket burst 4")
}

// Counters of all identities, branches and roles find their predecessors, and none is
// charged twice.
func TestPredecessorsOfEveryKind(t *testing.T) {
	f := func(old, new string, want ...string) {
		t.Helper()
		d := newDesk(t, rulesOf(old))
		d.reload(rulesOf(new))
		var got []string
		for _, c := range d.live.Match(as("GET /", "user", "ann"), nil) {
			got = append(got, strings.TrimPrefix(c.Limit.String(), "api: ")+" "+c.Limit.Scope)
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s to %s: held to\n%s\nwant\n%s", old, new, strings.Join(got, "; "), strings.Join(want, "; "))
		}
	}
	// Of several, those of the same period.
	f("limits: [5/second, 100/hour]", "limits: [{ rate: 100/hour, algorithm: fixed_window }, { rate: 5/second, algorithm: token_bucket }]",
		"100/1h0m0s fixed_window user", "5/1s token_bucket burst 5 user", "100/1h0m0s sub_windows user", "5/1s sliding_log user")
	f("limits: [5/second, 100/hour]", "limits: { rate: 5/minute, algorithm: token_bucket }",
		"5/1m0s token_bucket burst 5 user", "5/1s sliding_log user")
	// A branch has that of the branch with the same conditions, else of the same place.
	f("limits: 5/minute, for: [{ when: { user: bob }, limits: 7/second }, { when: { user: ann }, limits: 9/hour }]",
		"limits: 5/minute, for: [{ when: { user: ann }, limits: { rate: 9/hour, algorithm: token_bucket } }]",
		"9/1h0m0s token_bucket burst 9 user", "9/1h0m0s sliding_log user")
	f("limits: 5/minute", "limits: 5/minute, for: [{ when: { user: ann }, limits: { rate: 9/hour, algorithm: token_bucket } }]",
		"9/1h0m0s token_bucket burst 9 user", "9/1m0s sliding_log user")
	// Two that change places are charged once each.
	f("limits: [{ rate: 5/minute, algorithm: token_bucket }, 50/hour]", "limits: [5/minute, { rate: 50/minute, algorithm: token_bucket }]",
		"5/1m0s sliding_log user", "50/1m0s token_bucket burst 50 user", "50/1h0m0s sliding_log user")
	// What marks and what is only tried has its own.
	f("limits: 10/minute, over: { soft: 50% }, candidate: 3/minute", "limits: { rate: 10/minute, algorithm: fixed_window }, over: { soft: 50% }, candidate: { rate: 3/minute, algorithm: token_bucket }",
		"10/1m0s fixed_window user#nominal", "15/1m0s fixed_window user", "3/1m0s token_bucket burst 3 user#candidate",
		"10/1m0s sliding_log user#nominal", "15/1m0s sliding_log user", "3/1m0s sliding_log user#candidate")
	// Nothing is attached to what only changes its numbers, its resolution, or who it counts.
	f("limits: 60/minute", "limits: 100/minute", "100/1m0s sub_windows user")
	f("limits: { rate: 5/minute, algorithm: token_bucket }", "limits: { rate: 9/minute, burst: 30, algorithm: token_bucket }", "9/1m0s token_bucket burst 30 user")
	f("mode: disabled, limits: 5/minute", "limits: { rate: 9/minute, algorithm: token_bucket }", "9/1m0s token_bucket burst 9 user")
}

// A quota that starts on a day of each caller goes on from the one of that day.
func TestPredecessorsOfAnchoredQuotas(t *testing.T) {
	f := func(old, new, since string, want ...string) {
		t.Helper()
		d := newDesk(t, rulesOf(old))
		d.reload(rulesOf(new))
		var got []string
		for _, c := range d.live.Match(request("GET /", "client header X-User", "ann", "header X-Since", since), nil) {
			got = append(got, fmt.Sprintf("%s on the %d", strings.TrimPrefix(c.Limit.String(), "api: "), c.Limit.Anchor))
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s to %s: held to\n%s\nwant\n%s", old, new, strings.Join(got, "; "), strings.Join(want, "; "))
		}
	}
	const month, year = "quota: { amount: 10/month, anchor: header X-Since }", "quota: { amount: 90/year, anchor: header X-Since }"
	f(month, year, "7", "90/year quota on the 7", "90/month quota on the 7")
	f(month, year, "none", "90/year quota on the 1", "90/month quota on the 1")
	f("limits: 5/hour", year, "7", "90/year quota on the 7", "90/1h0m0s sliding_log on the 0")
	f("quota: 10/month", month, "7", "10/month quota on the 7", "10/month quota on the 1")
	f("quota: 10/month", month, "none", "10/month quota on the 1")
	f(month, "quota: 10/month", "7", "10/month quota on the 1")
	f(month, "limits: 5/hour", "7", "5/1h0m0s sliding_log on the 0")
}

// Requests that come while rules change are each held to one Set and what is before it.
func TestPredecessorsUnderLoad(t *testing.T) {
	d := newDesk(t, rulesOf(limitVariants["bucket"]))
	var clients sync.WaitGroup
	var enough atomic.Bool
	for range 4 {
		clients.Go(func() {
			for !enough.Load() {
				if n := len(d.live.Match(as("GET /", "user", "ann"), nil)); n < 1 || n > 1+maxPredecessors {
					t.Errorf("held to %d limits", n)
					return
				}
			}
		})
	}
	for range 20 {
		for _, terms := range limitVariants {
			d.live.Swap(parse(t, rulesOf(terms), d.config()))
		}
	}
	enough.Store(true)
	clients.Wait()
}
