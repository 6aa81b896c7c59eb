package offenders

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// maxMemory is what the lists may take, all together.
const maxMemory = 1 << 20

// Whatever comes, rules and keys, the lists of all rules together take less than a megabyte. In a bubble they tick
// when the test says.
func TestMemoryIsBounded(t *testing.T) {
	testdep.SkipUnderRace(t)
	take := func(t *testing.T, rules, keys int) {
		limits := limitsOf[:rules]
		long := strings.Repeat("x", 40)
		before := heap()
		of := New(Options{})
		defer of.Close()
		of.draw = func() uint32 { return 0 } // everything is looked at
		var key []byte
		for i := range keys {
			for j := range max(1, 1000/rules) {
				l := limits[(i+j)%rules]
				key = fmt.Appendf(key[:0], "%s-%d-%d", long, i, j)
				who := unsafe.String(&key[0], len(key))
				refuse(of, l, who)
				admit(of, l, who, 1)
				of.Tried(who, l, true)
			}
		}
		time.Sleep(tickEvery)
		if got := int64(heap()) - int64(before); got > maxMemory {
			t.Errorf("%d rules, %d keys: the lists take %d bytes", rules, keys, got)
		}
		if err := of.sound(); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(of)
	}
	f := func(rules, keys int) {
		synctest.Test(t, func(t *testing.T) { take(t, rules, keys) })
	}
	f(1, 100)
	f(10, 200)
	f(1000, 4_000)
	f(1200, 4_000)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// An observation allocates nothing, of a key that is listed or of a new one.
func TestNoAllocations(t *testing.T) {
	of := New(Options{})
	defer of.Close()
	of.draw = func() uint32 { return 0 }
	l := limitsOf[0]
	key := []byte("user-00000000")
	i := 0
	observe := func() {
		i++
		for n, at := i, len(key)-1; n > 0; n, at = n/10, at-1 {
			key[at] = byte('0' + n%10)
		}
		who := unsafe.String(&key[0], len(key))
		checks, d := decidedOnStack(l, who, i%2 == 0)
		of.Decided(checks[:], &d)
		of.One(who, &d)
	}
	for range 5000 {
		observe()
	}
	if got := testing.AllocsPerRun(5000, observe); got != 0 {
		t.Errorf("an observation allocates %v times", got)
	}
}

// A flood in one rule takes no entries from the others, and many rules share fairly.
func TestFairShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		const rules = 300
		seen := 0
		note := func(l *tidegate.Limit, key string) {
			refuse(of, l, key)
			if seen++; seen%int(perTick) == 0 {
				time.Sleep(tickEvery)
				synctest.Wait()
			}
		}
		for i := range 40 {
			for _, l := range limitsOf[1:rules] {
				note(l, fmt.Sprint("user-", i%2))
			}
		}
		for i := range 20_000 {
			note(limitsOf[0], fmt.Sprint("bot-", i))
		}
		r := of.Snapshot(Query{By: Refused, Minutes: 10})
		for _, l := range limitsOf[1:rules] {
			if got := brief(one(t, r, l.Name, Refused, 10)); !slices.Equal(got, []string{"user=user-0 20", "user=user-1 20"}) {
				t.Fatalf("%s: %q", l.Name, got)
			}
		}
		// Now all have many keys: nobody has much more than the others.
		for i := range 100 {
			for _, l := range limitsOf[:rules] {
				note(l, fmt.Sprint("new-", i))
			}
		}
		least, most := maxEntries, 0
		for l := range of.lists() {
			least, most = min(least, int(l.count)), max(most, int(l.count))
		}
		if fair := maxEntries / (2 * rules); least < fair/2 || most > 2*fair {
			t.Errorf("lists have %d to %d entries of %d, a fair share is %d", least, most, maxEntries, fair)
		}
		if err := of.sound(); err != nil {
			t.Error(err)
		}
	})
}

// There are more rules than can have lists of their own.
func TestTooManyRules(t *testing.T) {
	of := New(Options{})
	defer of.Close()
	for i, l := range limitsOf {
		if i%100 == 0 { // all are looked at
			of.tick()
		}
		refuse(of, l, "a")
	}
	if n := len(*of.table.all.Load()); n != maxRules+1 {
		t.Errorf("%d rules have lists", n)
	}
	others := one(t, of.Snapshot(Query{Rule: Other}), Other, Refused, 1)
	if len(others.Entries) != 1 || others.Entries[0].Count != int64(len(limitsOf)-maxRules) {
		t.Errorf("all others: %+v", others)
	}
}

// A limit without terms is of no rule.
func TestLimitsOfNoRule(t *testing.T) {
	of := New(Options{})
	defer of.Close()
	refuse(of, tidegate.PerSecond(1), "a")
	if got := of.Snapshot(Query{}).Lists; len(got) != 4 || got[0].Rule != "" || got[0].Entries[0].Count != 1 {
		t.Errorf("%+v", got)
	}
}
