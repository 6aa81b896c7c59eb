package eventual

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual/hub"
	"tidegate.dev/tidegate/store/memory"
)

var algorithms = []tidegate.Algorithm{tidegate.SubWindows, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.Quota}

// limitOf is a limit that is eventual. Quotas are for a day.
func limitOf(a tidegate.Algorithm, events int64, period time.Duration) *tidegate.Limit {
	spec := tidegate.Spec{
		Name: "api", Events: events, Period: period, Algorithm: a,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}},
	}
	if a == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Day
	}
	return tidegate.MustLimit(spec)
}

// testFleet is instances around one hub.
type testFleet struct {
	testing.TB
	hub   *hub.Hub
	nodes []*Store
	wires []*wire
	outcomes
}

// outcomes are when requests were admitted, and how many were refused.
type outcomes struct {
	mu       sync.Mutex
	admitted []time.Time
	refused  int
}

// note adds what became of a request just now.
func (o *outcomes) note(ok bool) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if ok {
		o.admitted = append(o.admitted, now)
	} else {
		o.refused++
	}
}

// wire is the way of one instance to the hub.
type wire struct {
	latency time.Duration // of a round trip
	loss    float64       // of calls, and the same of replies

	mu   sync.Mutex
	hub  *hub.Hub
	rand *rand.Rand
	away bool
}

var errLost = errors.New("connection reset by peer")

func (w *wire) lost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away || w.rand.Float64() < w.loss
}

func (w *wire) setAway(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

func (w *wire) setHub(h *hub.Hub) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hub = h
}

func (w *wire) end() *hub.Hub {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hub
}

func (w *wire) Exchange(ctx context.Context, tallies []chain.Tally) error {
	return w.call(func() error { return w.end().Exchange(ctx, tallies) })
}

func (w *wire) Time(ctx context.Context) (now time.Time, err error) {
	err = w.call(func() error {
		now, err = w.end().Time(ctx)
		return err
	})
	return now, err
}

func (w *wire) call(do func() error) error {
	time.Sleep(w.latency / 2)
	if w.lost() {
		return errLost
	}
	err := do()
	time.Sleep(w.latency - w.latency/2)
	if w.lost() {
		return errLost
	}
	return err
}

// newFleet makes instances.
func newFleet(t testing.TB, n int, latency time.Duration, clocks func(i int) time.Duration) *testFleet {
	f := &testFleet{TB: t, hub: hub.New(time.Now)}
	for i := range n {
		w := &wire{hub: f.hub, latency: latency, rand: rand.New(rand.NewPCG(uint64(i), 7))}
		o := Options{Tallies: w, Instances: func() int { return n }}
		if clocks != nil {
			o.Now = func() time.Time { return time.Now().Add(clocks(i)) }
		}
		s := New(chain.Adapt(memory.New()), o)
		f.nodes, f.wires = append(f.nodes, s), append(f.wires, w)
	}
	return f
}

func (f *testFleet) close() {
	for _, s := range f.nodes {
		s.Close()
	}
}

// ask asks an instance about one request, and notes what became of it.
func (f *testFleet) ask(node int, key string, l *tidegate.Limit) bool {
	ok := f.decide(node, key, l, 0)
	f.note(ok)
	return ok
}

// decide asks an instance about one request that has to leave floor for others.
func (f *testFleet) decide(node int, key string, l *tidegate.Limit, floor int64) bool {
	d, err := f.nodes[node].Take(context.Background(), []tidegate.Check{{Key: key, Limit: l, Cost: 1, Floor: floor}}, 1)
	if err != nil || d.Err != nil {
		f.Errorf("%v, %v", err, d.Err)
	}
	return d.OK
}

// press sends so many requests a second for a time, to the nodes in turn, or all to the first one.
func (f *testFleet) press(l *tidegate.Limit, perSecond float64, lasts time.Duration, one bool) {
	paced(perSecond, lasts, rand.New(rand.NewPCG(uint64(len(f.nodes)), uint64(perSecond))), func(i int) {
		node := i % len(f.nodes)
		if one {
			node = 0
		}
		f.ask(node, "one", l)
	})
}

// paced calls send so often a second for a time, evenly spaced with some jitter, and returns when all
// calls have.
func paced(perSecond float64, lasts time.Duration, random *rand.Rand, send func(i int)) {
	var all sync.WaitGroup
	start := time.Now()
	for i := 0; ; i++ {
		at := time.Duration((float64(i) + random.Float64()) / perSecond * float64(time.Second))
		if at >= lasts {
			break
		}
		time.Sleep(time.Until(start.Add(at)))
		all.Go(func() { send(i) })
	}
	all.Wait()
}

// over is by how much the admissions were above the limit at worst, by a law that is written anew
// here: in the simplest way, and without the code that it judges.
func over(l *tidegate.Limit, admitted []time.Time) float64 {
	return overWhere(l, admitted, func(int) bool { return true })
}

// overWhere is over at those of the admissions that matter.
func overWhere(l *tidegate.Limit, admitted []time.Time, matters func(i int) bool) float64 {
	counts := map[int64]float64{}
	worst := 0.0
	for i, t := range admitted {
		us := t.UnixMicro()
		used := 0.0
		period := l.Period.Microseconds()
		switch l.Algorithm {
		case tidegate.FixedWindow:
			counts[us/period]++
			used = counts[us/period]
		case tidegate.Quota:
			day := us / (24 * time.Hour).Microseconds()
			counts[day]++
			used = counts[day]
		default:
			parts := int64(1)
			if l.Algorithm == tidegate.SubWindows {
				parts = int64(l.Parts)
			}
			part := (period + parts - 1) / parts
			now := us / part
			counts[now]++
			for i := range parts {
				used += counts[now-i]
			}
			used += math.Floor(counts[now-parts] * (1 - float64(us%part)/float64(part)))
		}
		if matters(i) {
			worst = max(worst, used-float64(l.Events))
		}
	}
	return worst
}

// total is what the hub has of a key, in all windows that matter.
func (f *testFleet) total(key string, l *tidegate.Limit) (sum int64) {
	all := []chain.Tally{{Limit: l, Key: key, Instance: newInstance(), Number: 1}}
	_ = f.hub.Exchange(context.Background(), all)
	for _, p := range all[0].Answer.Totals {
		sum += p.Count
	}
	return sum
}
