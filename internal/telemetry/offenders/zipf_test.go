package offenders

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Whatever the skew, the number of keys and the number of rules that share the entries, the
// true counts are within the bounds.
func TestZipf(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(keys uint64, skew float64, rules, events, perTick int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			of := open(t, Options{})
			random := rand.New(rand.NewPCG(uint64(events), keys))
			zipf := rand.NewZipf(random, skew, 1, keys-1)
			truth := make([]map[string]int64, rules)
			for i := range truth {
				truth[i] = make(map[string]int64)
			}
			for n := range events {
				if n%perTick == 0 && n > 0 {
					time.Sleep(tickEvery)
					synctest.Wait()
				}
				rule, key := random.IntN(rules), strconv.FormatUint(zipf.Uint64(), 10)
				truth[rule][key]++
				refuse(of, limitsOf[rule], key)
			}
			r := of.Snapshot(Query{Top: MaxTop})
			for i := range truth {
				for _, by := range []By{Refused, Requests} {
					l := one(t, r, limitsOf[i].Name, by, 10)
					if err := within(l, truth[i]); err != nil {
						t.Errorf("%d keys, skew %.1f, %d rules, %d a tick: %s of rule %d: %v", keys, skew, rules, perTick, by, i, err)
					}
					if perTick <= perTickExact && l.Sampled != 0 {
						t.Errorf("%d a tick are sampled by %d", perTick, l.Sampled)
					}
					// Space-Saving: no error is above the share of an entry.
					if rules == 1 && l.Sampled == 0 {
						if most := int64(events/maxOfList) + 1; l.OthersAtMost > max(most, l.Entries[len(l.Entries)-1].AtMost) {
							t.Errorf("others have at most %d of %d events", l.OthersAtMost, events)
						}
					}
				}
			}
			if err := of.sound(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, skew := range []float64{1.01, 1.2, 2} {
		for _, keys := range []uint64{10, 1000, 100_000} {
			f(keys, skew, 1, 4_000, 400) // everything is looked at
			f(keys, skew, 1, 4_000, 800)
			f(keys, skew, 1, 40_000, 20_000)
			f(keys, skew, 7, 4_000, 400)
			f(keys, skew, 100, 4_000, 400)
			f(keys, skew, 100, 4_000, 800) // rules have a few decisions in a tick, of which none may be looked at
			f(keys, skew, 100, 40_000, 40_000)
		}
	}
}

const perTickExact = int(perTick)

var limitsOf = func() (all []*tidegate.Limit) {
	for i := range 1200 {
		all = append(all, limitOf(fmt.Sprintf("rule-%d", i)))
	}
	return all
}()
