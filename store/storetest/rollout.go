package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// RunRollout holds several nodes that share their counters to what is promised while they
// go by different versions of a limit: open returns a store for each of them, all empty
// and on the clock now. Run does it with one store, which is asked under all versions.
//
// A version admits only what fits on top of all that is used, by whatever version; so
// that the sum in any time W is at most the largest burst and the largest rate·W of those
// in force. Nobody is held longer than a refusal says.
func RunRollout(t *testing.T, open func(t *testing.T, now func() time.Time) []tidegate.Store, only ...Selection) {
	t.Helper()
	a, _, err := resolve(only)
	if err != nil {
		t.Fatal(err)
	}
	runRollout(t, lessIf(isBrief(only), 1000, 200), a, open)
}

func runRollout(t *testing.T, most int, a scope, open func(t *testing.T, now func() time.Time) []tidegate.Store) {
	if !a.hasAll([]string{"changes", "clock_steps"}) {
		t.Skip("it uses changes and clock_steps, which are not asked of the store")
	}
	for _, k := range a.kinds() {
		if k.spec.Algorithm == tidegate.Concurrency && !a.has("returns") {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			c := newClock()
			nodes := open(t, c.now)
			edits := 0
			for seed := uint64(0); edits < most; seed++ { // few edits of each limit: a node may remember all it has seen
				c.set(newClock().t)
				r := &rollout{
					T: t, kind: k, clock: c, nodes: nodes, real: c.now(),
					rand: rand.New(rand.NewPCG(seed, 13)), name: fmt.Sprint("rollout ", seed), setsBack: seed%3 == 0,
				}
				r.play()
				edits += r.edits
				if t.Failed() {
					t.Fatalf("seed %d, after %d edits", seed, r.edits)
				}
			}
		})
	}
}

// rollout is one key under versions of a limit, one in force on each node.
type rollout struct {
	*testing.T
	kind  kind
	clock *clock
	nodes []tidegate.Store
	rand  *rand.Rand
	name  string
	key   string

	real     time.Time // as the clock would be had it never been set back
	setsBack bool      // it is, now and then; that of a bucket always
	versions []*tidegate.Limit
	force    []*tidegate.Limit // by node
	edits    int
	admitted []admission
	largest  admission     // the largest numbers in force since the last of them
	skewed   bool          // the clock was set back
	longest  time.Duration // that any version so far may hold somebody after that
}

// admission is what a version let through, with the largest numbers that were in force
// from the one before it on.
type admission struct {
	at      time.Time
	cost    int64
	burst   int64
	rate    float64 // events per nanosecond
	receipt tidegate.Receipt
	ends    time.Time // of slots: when the lease runs out
}

func (r *rollout) bucket() bool {
	return r.kind.spec.Algorithm == tidegate.TokenBucket || r.kind.spec.Algorithm == tidegate.LeakyBucket
}

// version returns a limit of random numbers; those of a log may be counted in parts as well,
// and leave the window whole.
func (r *rollout) version() *tidegate.Limit {
	spec := r.kind.brisk(r.name, 1+r.rand.Int64N(5+35*r.rand.Int64N(2))).Spec
	switch {
	case r.bucket():
		spec.Burst = 1 + r.rand.Int64N(5+55*r.rand.Int64N(2))
	case spec.Algorithm == tidegate.SlidingLog && r.rand.IntN(3) == 0:
		spec.Algorithm, spec.Parts, spec.Ceiling = tidegate.SubWindows, 6, true
	}
	return tidegate.MustLimit(spec)
}

func (r *rollout) play() {
	edits := len(r.nodes) + r.rand.IntN(10)
	r.force = make([]*tidegate.Limit, len(r.nodes))
	for i := range r.force {
		r.edit(i)
	}
	r.key = "ann"
	for !r.Failed() {
		switch r.rand.IntN(30) {
		case 0:
			if r.edits >= edits {
				return
			}
			r.edit(r.rand.IntN(len(r.nodes)))
		case 1, 2, 3, 4, 5, 6:
			r.pass()
		case 7, 8:
			r.changeSlots(r.rand.IntN(len(r.nodes)))
		default:
			r.ask(r.rand.IntN(len(r.nodes)))
		}
	}
}

// edit puts a version into force on a node: a new one, or one that was there before.
func (r *rollout) edit(node int) {
	r.edits++
	if n := len(r.versions); n > 0 && r.rand.IntN(3) == 0 {
		r.force[node] = r.versions[r.rand.IntN(n)]
	} else {
		r.force[node] = r.version()
		r.versions = append(r.versions, r.force[node])
	}
	r.widen(r.force[node])
}

func (r *rollout) widen(l *tidegate.Limit) {
	r.largest.burst = max(r.largest.burst, l.Capacity())
	r.largest.rate = max(r.largest.rate, float64(l.Events)/float64(r.kind.period()))
	longest := 2*r.kind.period() + r.kind.part()
	if r.bucket() { // to where it was when last charged, and from there
		longest = 2 * (time.Duration(float64(l.Capacity())/float64(l.Events)*float64(l.Period)) + step)
	}
	r.longest = max(r.longest, longest)
}

// pass lets time pass. Now and then the clock is set back on the way.
func (r *rollout) pass() {
	p := r.kind.period()
	most := []time.Duration{p / 100, p / 10, p / 3, 3 * p}[r.rand.IntN(4)]
	r.later(time.Duration(r.rand.Int64N(int64(most))).Truncate(step))
	if (r.bucket() || r.setsBack) && r.rand.IntN(10) == 0 {
		r.setBack(r.rand.IntN(len(r.nodes)), time.Duration(r.rand.Int64N(int64(5*p))).Truncate(step))
	}
}

// Undated is implemented by stores whose states do not say when they were written. After the
// clock was set back, they and those beside them hold for as long as that, where it cannot be told
// from what a wider version has used.
type Undated interface{ Undated() }

func (r *rollout) undated() bool {
	for _, n := range r.nodes {
		if _, ok := n.(Undated); ok && r.bucket() {
			return true
		}
	}
	return false
}

// setBack sets the clock back: nothing is refilled by it, and nobody is held for longer than
// that, or than a version remembers.
func (r *rollout) setBack(node int, by time.Duration) {
	left := make([]int64, len(r.force))
	for i := range r.force {
		left[i] = r.take(i, 0).Remaining
	}
	before := r.take(node, 0)
	r.clock.add(-by)
	r.skewed = true
	after := r.take(node, 0)
	if after.Remaining > before.Remaining {
		r.Errorf("%s: the clock is set back by %s, and %s becomes %s", r.force[node], by, show(before), show(after))
	}
	if r.undated() {
		return
	}
	for i, l := range r.force {
		if d := r.take(i, 0); d.Remaining > left[i] {
			r.Errorf("%s: the clock is set back by %s, %s is asked, and %d left become %s", l, by, r.force[node], left[i], show(d))
		}
	}
	if most := max(before.RetryAfter+min(by, r.longest), r.longest); after.RetryAfter > most {
		r.Errorf("%s: the clock is set back by %s, and %s becomes %s, want to come back in %s at most", r.force[node], by, show(before), show(after), most)
	}
}

func (r *rollout) later(d time.Duration) {
	r.real = r.real.Add(d)
	r.clock.add(d)
}

// take asks a node under its version, and notes what was let through.
func (r *rollout) take(node int, cost int64) tidegate.Decision {
	s := subject{T: r.T, store: r.nodes[node]}
	l := r.force[node]
	used := r.used()
	d := s.takeN(1, check(l, r.key, cost))
	r.counts(l, used, cost, &d)
	if d.Remaining > l.Capacity() {
		r.Errorf("%d left of %s", d.Remaining, l)
	}
	if d.OK && cost > 0 {
		r.largest.at, r.largest.cost = r.real, cost
		r.largest.receipt, r.largest.ends = d.Receipt, r.clock.now().Add(l.Period)
		r.admitted = append(r.admitted, r.largest)
		r.holds(l)
		r.largest = admission{}
		for _, l := range r.force {
			r.widen(l)
		}
	}
	return d
}

// ask asks a node. When it is refused it sometimes comes back when it was told to.
func (r *rollout) ask(node int) {
	cost := r.rand.Int64N(4)
	d := r.take(node, cost)
	if d.OK || d.Never {
		return
	}
	if d.RetryAfter <= 0 {
		r.Errorf("%s is refused with %s", r.force[node], show(d))
		return
	}
	switch r.rand.IntN(4) {
	case 0:
		r.later(d.RetryAfter)
		if again := r.take(node, cost); !again.OK {
			r.Errorf("%s was refused with %s, and came back then: %s", r.force[node], show(d), show(again))
		}
	case 1:
		r.later(d.RetryAfter - step)
		if again := r.take(node, cost); again.OK {
			r.Errorf("%s was refused with %s, and let through a step before that: %s", r.force[node], show(d), show(again))
		}
	}
}

// holds wants the last admission, under l, to be within the bound.
func (r *rollout) holds(l *tidegate.Limit) {
	last := len(r.admitted) - 1
	end := r.admitted[last]
	start := r.real.Add(-r.kind.period()) // of the window that a count is of
	switch r.kind.spec.Algorithm {
	case tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.Quota:
		start = r.real.Truncate(r.kind.period()).Add(-1)
	}
	if !r.bucket() && (r.skewed || r.kind.spec.Algorithm == tidegate.Concurrency) {
		return // windows begin elsewhere; and slots may have been given back, see counts
	}
	var sum, burst int64
	var rate float64
	for i := last; i >= 0; i-- {
		a := r.admitted[i]
		if !r.bucket() {
			if !a.at.After(start) {
				return
			}
			if sum += a.cost; sum > l.Capacity() && r.exact() {
				r.Errorf("%d in one window, of which the last under %s", sum, l)
				return
			}
			continue
		}
		sum, burst, rate = sum+a.cost, max(burst, a.burst), max(rate, a.rate)
		took := end.at.Sub(a.at)
		if most := float64(burst) + rate*float64(took); float64(sum) > most+1e-6 {
			r.Errorf("%d in %s, the last under %s: at most %.3f by the limits in force", sum, took, l, most)
			return
		}
	}
}

// exact reports whether no window ever has more than its limit: without ceiling, what is
// in the oldest part of sub_windows is taken to be spread evenly.
func (r *rollout) exact() bool {
	return r.kind.spec.Algorithm != tidegate.SubWindows || r.kind.spec.Ceiling
}
