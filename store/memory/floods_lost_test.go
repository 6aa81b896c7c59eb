package memory

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// floods is several rules that are flooded at once, and quiet ones beside them.
type floods struct {
	*pair
	flooded, quiet []*tidegate.Limit
	admitted       map[string][]time.Time // in the last period, by rule and key
}

func newFloods(t *testing.T, maxBytes int64, n int, events int64, full tidegate.OnFull) *floods {
	f := &floods{pair: newPair(t, maxBytes), admitted: map[string][]time.Time{}}
	for i := range n {
		f.flooded = append(f.flooded, tidegate.MustLimit(specOf(fmt.Sprint("flooded", i), stateful[i%len(stateful)], events, 7*24*time.Hour, full)))
	}
	for _, events := range []int64{5, 50} {
		f.quiet = append(f.quiet, tidegate.MustLimit(specOf(fmt.Sprint("quiet", events), tidegate.SlidingLog, events, time.Hour, full)))
	}
	return f
}

// ask is a request of a quiet client, whose log has every event that was admitted in the last period. If one
// is missing, a key of the rule was forgotten, and is counted as that.
func (f *floods) ask(l *tidegate.Limit, key string) {
	f.t.Helper()
	d := ask1(f.t, f.bounded, l, key)
	name, now := l.Name+" "+key, f.clock.now()
	all := f.admitted[name]
	for len(all) > 0 && now.Sub(all[0]) >= l.Period {
		all = all[1:]
	}
	if d.OK {
		all = append(all, now)
	}
	f.admitted[name] = all
	if st := f.bounded.LimitStats(l); d.Err == nil && d.Remaining > l.Events-int64(len(all)) && st.Forgotten == 0 {
		f.t.Fatalf("%s: %d are left for %s, which had %d in a period, and nothing is counted as forgotten: %+v", l, d.Remaining, key, len(all), st)
	}
}

// However many rules are flooded at once, in however small a store: what is lost of another rule's counters is
// counted as forgotten, also if nothing is left of that rule, and held nobody back. A rule that takes little
// of the store loses nothing.
func TestFloodsLoseNothingUnseen(t *testing.T) {
	testdep.SkipUnderRace(t)
	sizes, rules := []int64{96 << 10, 256 << 10}, []int{1, 2, 4, 7, 20}
	for _, full := range []tidegate.OnFull{tidegate.EvictLeast, tidegate.RefuseNew} {
		for _, maxBytes := range sizes {
			for _, n := range rules {
				for _, events := range []int64{1, 5} { // used up by one request, or not
					for _, share := range []int64{64, 8} { // of the store that quiet clients take, about
						t.Run(fmt.Sprintf("%s/%dKiB/%d/%d/%d", []string{"evict", "refuse"}[full], maxBytes>>10, n, events, share), func(t *testing.T) {
							f := newFloods(t, maxBytes, n, events, full)
							clients := int(maxBytes / share / 500)
							for k := range int(maxBytes / 12) {
								f.clock.pass(20 * time.Millisecond)
								ask1(t, f.bounded, f.flooded[k%n], fmt.Sprint("invented", k))
								if k%10 == 0 {
									for _, l := range f.quiet {
										f.ask(l, fmt.Sprint("client", k/10%clients))
									}
								}
							}
							f.withinBound()
							for _, l := range f.quiet {
								st := f.bounded.LimitStats(l)
								if st.Forgotten > st.Evicted {
									t.Errorf("%s: keys were forgotten that held somebody back: %+v", l, st)
								}
								if share >= 64 && n <= 4 && st.Forgotten+st.RefusedFull > 0 {
									t.Errorf("%s: keys of a rule that takes little were forgotten: %+v", l, st)
								}
							}
						})
					}
				}
			}
		}
	}
}
