package split

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// classes are requests that leave so much for others, the most important first, and how many events each
// class was admitted.
type classes struct {
	*crowd
	limit    *tidegate.Limit
	floors   []int64
	admitted []int64
}

// newClasses has as many classes as random shares of a limit are set aside.
func newClasses(c *crowd, l *tidegate.Limit, random *rand.Rand) *classes {
	k := &classes{crowd: c, limit: l, floors: []int64{0}}
	for floor := int64(0); len(k.floors) < 4; {
		floor += 1 + random.Int64N(max(l.Capacity()/2, 1))
		if floor >= l.Capacity() {
			break
		}
		k.floors = append(k.floors, floor)
	}
	k.admitted = make([]int64, len(k.floors))
	return k
}

// ask is one request of a class.
func (k *classes) ask(i *instance, class int) bool {
	k.t.Helper()
	if !k.decide(i, k.limit, 1, k.floors[class]).OK {
		return false
	}
	k.admitted[class]++
	return true
}

// String tells what a failure was about.
func (k *classes) String() string {
	return fmt.Sprintf("%s on %d instances, leaving %v: admitted %v", k.limit, len(k.all), k.floors, k.admitted)
}

// within wants no class, with those below it, to have more than is left to it.
func (k *classes) within() {
	k.t.Helper()
	var sum int64
	for class := len(k.floors) - 1; class >= 0; class-- {
		if sum += k.admitted[class]; sum > k.limit.Capacity()-k.floors[class] {
			k.t.Fatalf("%s: of class %d and below, more than %d", k, class, k.limit.Capacity()-k.floors[class])
		}
	}
}

// drain has a class ask every instance until all refuse.
func (k *classes) drain(class int) {
	k.t.Helper()
	for _, i := range k.all {
		for k.ask(i, class) {
			k.within()
		}
	}
}

// Classes that ask where and when they like never have more of a window together than the limit, and none,
// with those below it, more than is left to it. Whoever asks last gets all that is set aside.
func TestClassesShareWindows(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.FixedWindow, Period: time.Second},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month},
	} {
		sweep(func(n int, events, _ int64, random *rand.Rand) {
			spec.Events = events
			k := newClasses(newCrowd(t, n), limitOf(spec), random)
			for window := range min(2*n, 6) {
				clear(k.admitted)
				if window%2 == 0 {
					for range min(2*events, 200) { // in any order
						k.ask(k.all[random.IntN(n)], random.IntN(len(k.floors)))
						k.within()
					}
				}
				var sum int64
				for class := len(k.floors) - 1; class >= 0; class-- {
					k.drain(class)
					if sum += k.admitted[class]; window%2 == 1 && sum != events-k.floors[class] {
						t.Fatalf("%s: class %d and below had %d, want %d", k, class, sum, events-k.floors[class])
					}
				}
				if sum != events {
					t.Fatalf("%s: all together had %d", k, sum)
				}
				k.nextWindow(k.limit)
			}
		})
	}
}

// While the last class asks every instance all the time, a bucket's first class finds what is set aside for
// it at each of them, as far as that is a request or more; and nobody has more than is left to them.
func TestClassesShareBuckets(t *testing.T) {
	testdep.SkipUnderRace(t)
	random := rand.New(rand.NewPCG(3, 5))
	for n := 1; n <= 20; n += min(thin, 3) {
		for range 6 {
			burst := int64(2*n) + random.Int64N(200)
			l := limitOf(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: burst, Period: time.Second, Burst: burst})
			// At least a request for each instance is set aside, and left.
			floor := int64(n) + random.Int64N(burst-2*int64(n)+1)
			k := &classes{crowd: newCrowd(t, n), limit: l, floors: []int64{0, floor}, admitted: make([]int64, 2)}
			all, rest := bucketLaw{burst: float64(burst), rate: float64(burst)}, bucketLaw{burst: float64(burst - floor), rate: float64(burst)}
			event := time.Second/time.Duration(burst) + time.Microsecond
			last := k.now // the first class asked
			for step := range 200 {
				k.now = k.now.Add(time.Duration(random.Int64N(int64(event))))
				important := step%(2*n) == 0
				if due := last.Add(time.Duration(n) * event); important && k.now.Before(due) {
					k.now = due // not more than its share of the rate
				}
				for _, i := range k.all {
					for k.ask(i, 1) {
						if over := max(all.admit(k.now, 1), rest.admit(k.now, 1)); over > 1e-3 {
							t.Fatalf("%s: the last class is %.3f above what is left to it", k, over)
						}
					}
				}
				if !important {
					continue
				}
				last = k.now
				for _, i := range k.all {
					if !k.ask(i, 0) {
						t.Fatalf("%s: the first class is refused", k)
					}
					if over := all.admit(k.now, 1); over > 1e-3 {
						t.Fatalf("%s: %.3f above the limit", k, over)
					}
				}
			}
		}
	}
}
