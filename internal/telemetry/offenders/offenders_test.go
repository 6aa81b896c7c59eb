package offenders

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A customer that is refused thirty times is listed, with the exact number, whatever else the
// process does meanwhile: floods of refusals in another rule, and of admissions in its own.
func TestFewRefusalsAreListed(t *testing.T) {
	testdep.SkipUnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		attacked, quiet := limitOf("attacked"), limitOf("quiet")
		for tick := range 120 { // twelve seconds
			for i := range 2_000 {
				refuse(of, attacked, fmt.Sprintf("bot-%d", tick*2_000+i))
				if i%2 == 0 {
					admit(of, quiet, fmt.Sprintf("visitor-%d", tick*2_000+i), 90)
				}
			}
			if tick%4 == 0 {
				refuse(of, quiet, "customer-42")
			}
			if tick%10 == 0 {
				refuse(of, quiet, fmt.Sprintf("other-%d", tick))
			}
			time.Sleep(tickEvery)
			synctest.Wait()
		}
		for _, minutes := range []int{1, 10} {
			l := one(t, of.Snapshot(Query{}), "quiet", Refused, minutes)
			if got := brief(l); got[0] != "user=customer-42 30" || len(got) != 10 || l.Sampled != 0 {
				t.Errorf("the last %d minutes: %q, sampled %d", minutes, got, l.Sampled)
			}
		}
		busy := one(t, of.Snapshot(Query{}), "attacked", Refused, 1)
		if busy.Sampled < 2 || busy.OthersAtMost < 1 {
			t.Errorf("240,000 refusals: sampled %d, others at most %d", busy.Sampled, busy.OthersAtMost)
		}
	})
}

// When a flood is over, every decision is looked at again within a tick.
func TestSamplingEndsWithTheFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		l := limitOf("api")
		for i := range 200_000 {
			refuse(of, l, fmt.Sprintf("bot-%d", i%5000))
		}
		time.Sleep(2*tickEvery + time.Millisecond)
		synctest.Wait()
		if mask := of.get("api").classes[rare].mask.Load(); mask != 0 {
			t.Errorf("one in %d is looked at after the flood", mask+1)
		}
	})
}

// What is looked at is bounded, whatever comes: else the lists would cost what the gate does.
func TestWorkIsBounded(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(rules, events, ticks int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			of := open(t, Options{})
			for tick := range ticks {
				before := of.looked
				for i := range events {
					refuse(of, limitsOf[i%rules], "42")
				}
				// So many rules get no less than leastCap each, and the first tick has to find
				// their rates, in steps of two.
				most := 2*int(sampledPerTick) + 2*leastCap*rules
				if tick == 0 {
					most = 3*int(perTick) + bits.Len(uint(events/rules))*leastCap*rules
				}
				if taken := int(of.looked - before); taken > most {
					t.Errorf("%d rules, %d decisions in tick %d: %d were looked at, at most %d should be", rules, events, tick, taken, most)
				}
				time.Sleep(tickEvery)
				synctest.Wait()
			}
		})
	}
	f(1, 100_000, 3)
	f(10, 100_000, 3)
	f(1000, 400_000, 2)
}

func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		l := limitOf("api")
		time.Sleep(3 * time.Second) // in the middle of a slice
		refuse(of, l, "old")
		began := time.Now()
		f := func(after time.Duration, minutes int, want ...string) {
			t.Helper()
			time.Sleep(time.Until(began.Add(after)))
			synctest.Wait()
			got := one(t, of.Snapshot(Query{Rule: "api", By: Refused}), "api", Refused, minutes)
			if text := brief(got); !slices.Equal(text, want) {
				t.Errorf("after %s, of %d minutes: %q, want %q", after, minutes, text, want)
			}
		}
		f(0, 1, "user=old 1")
		f(0, 10, "user=old 1")
		f(59*time.Second, 1, "user=old 1")
		f(time.Minute, 1, "user=old 1")
		f(70*time.Second, 1) // at most a slice more
		f(70*time.Second, 10, "user=old 1")
		refuse(of, l, "new")
		refuse(of, l, "new")
		f(71*time.Second, 1, "user=new 2")
		f(71*time.Second, 10, "user=new 2", "user=old 1")
		f(10*time.Minute, 10, "user=new 2", "user=old 1")
		f(11*time.Minute, 10, "user=new 2") // at most a minute more
		f(12*time.Minute+15*time.Second, 10)
		for range of.lists() {
			t.Error("a list is kept that has been idle")
		}
		if n := len(of.pool.free); n != of.pool.made {
			t.Errorf("%d of %d entries are free", n, of.pool.made)
		}
		// The time that was covered is told.
		refuse(of, l, "late")
		if got := of.Snapshot(Query{}).Lists; got[0].Seconds < 60 || got[0].Seconds > 70 {
			t.Errorf("the last minute has %v seconds", got[0].Seconds)
		}
	})
}

// After a pause of any length nothing old is left.
func TestPauses(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 10 * time.Second, 65 * time.Second, 71 * time.Second, 5 * time.Minute, 10 * time.Minute, 11 * time.Minute, 12 * time.Minute, 3 * time.Hour, 30 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			of := open(t, Options{})
			of.Close() // nobody moves the lists on but who looks
			l := limitOf("api")
			for range 5 {
				refuse(of, l, "a")
			}
			time.Sleep(pause)
			for _, minutes := range []int{1, 10} {
				want := pause < time.Duration(minutes)*time.Minute
				must := pause >= time.Duration(minutes)*time.Minute+time.Duration(minutes)*10*time.Second && pause >= time.Duration(minutes+1)*time.Minute
				got := len(one(t, of.Snapshot(Query{}), "api", Refused, minutes).Entries) > 0
				if want && !got || must && got {
					t.Errorf("after %s, the last %d minutes: listed is %t", pause, minutes, got)
				}
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		limit := limitOf("api")
		shadow := tidegate.MustLimit(tidegate.Spec{Name: "shadow", Scope: "user", Events: 5, Period: time.Minute, Terms: &tidegate.Terms{Rule: "shadow", Role: tidegate.Tries}})
		marks := tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user#nominal", Events: 50, Period: time.Minute, Terms: &tidegate.Terms{Rule: "api", Role: tidegate.Marks}})
		block := tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user#block", Events: 1, Period: time.Minute, Terms: &tidegate.Terms{Rule: "api", Role: tidegate.Blocks}})
		deny := tidegate.MustLimit(tidegate.Spec{Name: "banned", Scope: "ip", Algorithm: tidegate.Deny, Terms: &tidegate.Terms{Rule: "banned"}})
		observe := func(d tidegate.Decision, checks ...tidegate.Check) { of.Observe(nil, checks, d) }
		check := func(l *tidegate.Limit, key string) tidegate.Check {
			return tidegate.Check{Key: key, Limit: l, Cost: 1}
		}
		over := func(l *tidegate.Limit, key string) tidegate.Check {
			return tidegate.Check{Key: key, Limit: l, Cost: 1, Advisory: true, Over: true}
		}

		observe(tidegate.Decision{OK: true, Limit: limit, Remaining: 40}, check(limit, "a"), over(marks, "a")) // soft
		observe(tidegate.Decision{OK: true, Limit: limit, Remaining: 60}, check(limit, "b"), over(shadow, "b"))
		observe(tidegate.Decision{Limit: block}, check(limit, "a"), check(block, "a"))
		observe(tidegate.Decision{Limit: limit}, check(limit, "a"), check(block, "a"))
		observe(tidegate.Decision{Limit: deny, Never: true}, check(limit, "a"), check(deny, "198.51.100.7"))
		observe(tidegate.Decision{Limit: limit, Err: errors.New("down")}, check(limit, "c"))
		observe(tidegate.Decision{OK: true, Limit: limit, Err: errors.New("down"), Remaining: 1}, check(limit, "c"))
		observe(tidegate.Decision{Limit: limit, Err: context.Canceled}, check(limit, "d"))
		observe(tidegate.Decision{OK: true, Limit: limit, Err: context.Canceled}, check(limit, "d"))
		observe(tidegate.Decision{OK: true}, over(shadow, "b"))
		observe(tidegate.Decision{OK: true}) // nothing limits it
		d := tidegate.Decision{Limit: limit}
		of.One("e", &d)
		of.Tried("e", shadow, true)
		of.Tried("e", shadow, false)

		f := func(rule string, by By, want ...string) {
			t.Helper()
			if got := brief(one(t, of.Snapshot(Query{}), rule, by, 1)); !slices.Equal(got, want) {
				t.Errorf("%s of %s: %q, want %q", by, rule, got, want)
			}
		}
		f("api", Refused, "user=a 2", "user=e 1")
		f("api", Requests, "user=a 3", "user=c 2", "user=b 1", "user=e 1")
		f("api", Nearest, "user=a 0.60")
		f("api", WouldRefuse)
		f("shadow", WouldRefuse, "user=b 2", "user=e 1")
		f("shadow", Requests, "user=b 2", "user=e 2")
		f("shadow", Refused)
		f("banned", Refused, "ip=198.51.100.7 1")
	})
}

// The list of the nearest has those that came nearest, whoever came before or after.
func TestNearest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		l := limitOf("api")
		for i := range 3000 {
			admit(of, l, fmt.Sprint("far-", i), int64(10+i%40))
			if i == 1500 {
				admit(of, l, "near", 1)
				admit(of, l, "near", 80)
			}
			if i%500 == 499 {
				time.Sleep(tickEvery)
				synctest.Wait()
			}
		}
		admit(of, l, "half", 50)
		admit(of, l, "less", 51)
		got := one(t, of.Snapshot(Query{By: Nearest, Top: 3}), "api", Nearest, 1)
		if text := brief(got); text[0] != "user=near 0.99" || text[1] != "user=far-0 0.90" || got.OthersUsed < 0.89 || got.OthersUsed > 0.91 {
			t.Errorf("%q, others at most %v", text, got.OthersUsed)
		}
		if found := of.Snapshot(Query{By: Nearest, Search: "less"}); len(found.Lists) != 0 {
			t.Errorf("who has used less than half is near: %v", found.Lists)
		}
	})
}

// A key lies in memory that the request uses again.
func TestKeysAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		l := limitOf("api")
		var r tidegate.Request
		long := strings.Repeat("x", 300)
		for range 3 {
			for _, who := range []string{"ann", "bob", long} {
				r.Reset()
				refuse(of, l, r.Key(who))
			}
			r.Reset()
			r.Key("zzz")
		}
		refuse(of, l, long) // not by tidegate.Key
		got := brief(one(t, of.Snapshot(Query{}), "api", Refused, 1))
		want := []string{"user=" + tidegate.Key(long) + " 4", "user==ann 3", "user==bob 3"}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// A reload drops the lists of rules that are gone, and of no others.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		of.SetRules([]string{"stays", "goes"})
		refuse(of, limitOf("stays"), "a")
		refuse(of, limitOf("goes"), "a")
		refuse(of, limitOf("(ban)"), "a") // was never announced
		of.SetRules([]string{"stays", "comes"})
		rules := func() (all []string) {
			for _, l := range of.Snapshot(Query{By: Refused, Minutes: 1}).Lists {
				all = append(all, l.Rule)
			}
			slices.Sort(all)
			return all
		}
		if got := rules(); !slices.Equal(got, []string{"(ban)", "stays"}) {
			t.Errorf("after the reload: %q", got)
		}
		if err := of.sound(); err != nil {
			t.Error(err)
		}
		// One that comes back starts afresh, and is found although the old one was cached.
		old := of.get("stays")
		of.SetRules([]string{"comes"})
		of.SetRules([]string{"comes", "stays"})
		of.table.cache[0].Store(old)
		for i := range of.table.cache {
			of.table.cache[i].Store(old)
		}
		refuse(of, limitOf("stays"), "b")
		if got := brief(one(t, of.Snapshot(Query{}), "stays", Refused, 1)); !slices.Equal(got, []string{"user=b 1"}) {
			t.Errorf("after it came back: %q", got)
		}
	})
}

func TestSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{Subject: func(_ *tidegate.Limit, key string) []Part {
			if strings.HasPrefix(key, "sk_") {
				return []Part{{Name: "key", Value: Hash(key), Hashed: true}}
			}
			return []Part{{Name: "user", Value: key}}
		}})
		l := limitOf("api")
		for i := range 200 {
			for range 2 {
				refuse(of, l, fmt.Sprint("visitor-", i))
			}
		}
		refuse(of, l, "Ann@example.com")
		refuse(of, l, "sk_live_1")
		f := func(search string, want ...string) {
			t.Helper()
			if got := brief(one(t, of.Snapshot(Query{Search: search, By: Refused}), "api", Refused, 1)); !slices.Equal(got, want) {
				t.Errorf("%q finds %q, want %q", search, got, want)
			}
		}
		f("ann@", "user=Ann@example.com 1")
		f("EXAMPLE", "user=Ann@example.com 1")
		f("sk_live_1", "key="+Hash("sk_live_1")+" 1")
		f("sk_live", []string(nil)...)
		f("nobody", []string(nil)...)
		f("visitor-19", "user=visitor-19 2", "user=visitor-190 2", "user=visitor-191 2", "user=visitor-192 2", "user=visitor-193 2",
			"user=visitor-194 2", "user=visitor-195 2", "user=visitor-196 2", "user=visitor-197 2", "user=visitor-198 2")
	})
}

func TestQueryCheck(t *testing.T) {
	f := func(q Query, ok bool) {
		t.Helper()
		if err := q.Check(); (err == nil) != ok {
			t.Errorf("%+v: %v", q, err)
		}
	}
	f(Query{}, true)
	f(Query{Minutes: 1, By: Nearest, Top: 100}, true)
	f(Query{Minutes: 5}, false)
	f(Query{Top: 101}, false)
	f(Query{Top: -1}, false)
	f(Query{By: "biggest"}, false)
}
