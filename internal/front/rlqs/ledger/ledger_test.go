package ledger_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

var (
	thousand = ledger.Limit{Events: 1000, Period: time.Second, Burst: 1000}
	short    = ledger.Times{TTL: 300 * time.Millisecond, Delivery: 100 * time.Millisecond}
)

// both runs a test with counters of one process and of a fleet.
func both(t *testing.T, f func(t *testing.T, ahead bool)) {
	for _, ahead := range []bool{false, true} {
		t.Run(fmt.Sprintf("ahead=%t", ahead), func(t *testing.T) { f(t, ahead) })
	}
}

// Five Envoys want different amounts, and other ones later. One connects again. Nothing is above the
// bucket, and nearly all of it is used, however many instances share it.
func TestFiveEnvoys(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, ledgers := range []int{0, 1, 2, 3, 5} {
		t.Run(instances(ledgers), func(t *testing.T) {
			for seed := range uint64(10 / thin) {
				fiveEnvoys(t, newSimulation(seed, thousand, short, max(ledgers, 1), ledgers > 0), time.Minute, 0.9)
			}
		})
	}
}

// The same with the times that Envoy can keep, which reports every 5 seconds.
func TestFiveEnvoysByDefault(t *testing.T) {
	testdep.SkipUnderRace(t)
	limit := ledger.Limit{Events: 1000, Period: time.Second, Burst: 6000}
	times := ledger.Times{TTL: 2 * time.Second, Delivery: 500 * time.Millisecond}
	for _, ledgers := range []int{0, 1, 2, 3, 5} {
		t.Run(instances(ledgers), func(t *testing.T) {
			for seed := range uint64(max(1, 3/thin)) {
				w := newSimulation(seed, limit, times, max(ledgers, 1), ledgers > 0)
				w.every = 5 * time.Second
				fiveEnvoys(t, w, 5*time.Minute, 0.88)
			}
		})
	}
}

// instances names a number of ledgers; 0 is one with counters of its own.
func instances(ledgers int) string {
	if ledgers == 0 {
		return "memory"
	}
	return fmt.Sprint("instances=", ledgers)
}

func fiveEnvoys(t *testing.T, w *simulation, lasts time.Duration, least float64) {
	t.Helper()
	for i, perSecond := range []float64{40, 120, 300, 600, 1200} {
		w.add(func(now time.Duration) float64 {
			if now > lasts/3 && now < 2*lasts/3 { // resized: the first wants most
				return []float64{1200, 600, 40, 120, 300}[i]
			}
			return perSecond
		})
	}
	w.run(lasts/2, nil)
	w.connect(w.filters[1])
	w.run(lasts, nil)
	w.usedAtLeast(t, least)
}

// usedAtLeast wants nothing above the bucket, and so much of the rate used.
func (w *simulation) usedAtLeast(t *testing.T, least float64) {
	t.Helper()
	if n, most := w.above(); n > 0 {
		t.Errorf("%d of %d are above the bucket, by up to %.1f", n, len(w.admitted), most)
	}
	whole := float64(w.limit.Events) * w.now.Seconds() / w.limit.Period.Seconds()
	used := float64(len(w.admitted)) / whole
	if used < least {
		t.Errorf("%.1f%% of the bucket are used", used*100)
	}
	t.Logf("%.1f%% used, %d new buckets", used*100, w.changes)
	if s := w.shared; s != nil {
		t.Logf("%.1f%% taken, %.1f%% not refilled because the bucket was full", s.taken/whole*100, s.spilt/whole*100)
	}
}

// Fifty Envoys share a bucket that is hardly large enough for the smallest parts of all of them. Those
// parts are assigned as they are paid for.
func TestManyEnvoys(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, ledgers := range []int{1, 2, 4, 8} {
		t.Run(instances(ledgers), func(t *testing.T) {
			w := newSimulation(uint64(ledgers), thousand, short, ledgers, true)
			for i := range 50 {
				w.add(constant(float64(4 + i*i%97)))
			}
			w.run(20*time.Second, nil)
			w.usedAtLeast(t, 0.7)
		})
	}
}

// What twenty Envoys have is extended with one call for all.
func TestExtensionsArePaidTogether(t *testing.T) {
	w := newSimulation(1, thousand, short, 1, true)
	for range 20 {
		w.add(constant(40))
	}
	w.run(5*time.Second, nil)
	before := w.shared.calls
	w.run(15*time.Second, nil)
	extensions := 20 * int(10*time.Second/short.Renewal())
	if calls := w.shared.calls - before; calls > extensions/5 {
		t.Errorf("%d calls for %d extensions", calls, extensions)
	}
}

// What a killed Envoy had is with the others as soon as it cannot be used any more.
func TestKilled(t *testing.T) {
	both(t, func(t *testing.T, ahead bool) {
		w := newSimulation(2, thousand, short, 1, ahead)
		for range 4 {
			w.add(constant(1000))
		}
		const killed = 10 * time.Second
		w.run(killed, nil)
		f := w.filters[0]
		w.disconnect(f)
		f.alive, f.words = false, nil
		from := killed + short.Out() + short.Renewal() + short.Delivery
		w.run(from, nil)
		w.run(from+2*time.Second, nil)
		if got := rate(w.admitted, from, w.now); got < 900 {
			t.Errorf("%.0f per second are used of 1000 after an Envoy was killed", got)
		}
		if n, most := w.above(); n > 0 {
			t.Errorf("%d are above the bucket, by up to %.1f", n, most)
		}
	})
}

// On several instances, those on others notice it by what the shared bucket has left.
func TestKilledOnSeveralInstances(t *testing.T) {
	for _, ledgers := range []int{2, 3} {
		for seed := range uint64(20 / thin) {
			w := newSimulation(seed, thousand, short, ledgers, true)
			for range 5 {
				w.add(constant(600))
			}
			killed := 10*time.Second + time.Duration(seed)*20*time.Millisecond
			w.run(killed, nil)
			f := w.filters[4]
			w.disconnect(f)
			f.alive, f.words = false, nil
			from := killed + short.Out() + short.Renewal() + short.Delivery
			w.run(from+2*time.Second, nil)
			if got := rate(w.admitted, from, w.now); got < 850 {
				t.Errorf("seed %d, %d instances: %.0f per second are used of 1000 after an Envoy was killed", seed, ledgers, got)
			}
			if n, most := w.above(); n > 0 {
				t.Errorf("seed %d, %d instances: %d are above the bucket, by up to %.1f", seed, ledgers, n, most)
			}
		}
	}
}

// Nothing of a killed Envoy is outstanding after TTL and Delivery.
func TestOutstanding(t *testing.T) {
	both(t, func(t *testing.T, ahead bool) {
		w := newSimulation(3, thousand, short, 1, ahead)
		w.add(constant(2000))
		w.run(5*time.Second, nil)
		w.disconnect(w.filters[0])
		if perSecond, tokens := w.ledgers[0].Out(w.now); perSecond < 900 || tokens == 0 {
			t.Errorf("%.0f per second and %d tokens are outstanding of one that has all", perSecond, tokens)
		}
		if perSecond, tokens := w.ledgers[0].Out(w.now + short.Out()); perSecond != 0 || tokens != 0 {
			t.Errorf("%.0f per second and %d tokens are outstanding %v later", perSecond, tokens, short.Out())
		}
	})
}

// Whatever the limit, the times and what Envoys do, nothing is above the bucket.
func TestNothingAbove(t *testing.T) {
	testdep.SkipUnderRace(t)
	seeds := uint64(400)
	if testing.Short() {
		seeds = 40
	}
	both(t, func(t *testing.T, ahead bool) {
		for seed := range seeds / thin {
			if !random(t, seed, ahead) {
				return
			}
		}
	})
}

// random runs a random world, and reports whether nothing was above the bucket.
func random(t *testing.T, seed uint64, ahead bool) bool {
	t.Helper()
	w := newSimulation(seed, thousand, short, 1, false)
	delivery := time.Duration(1+w.IntN(200)) * time.Millisecond
	times := ledger.Times{TTL: delivery*2 + time.Duration(w.IntN(500))*time.Millisecond, Delivery: delivery}
	limit := ledger.Limit{Events: 1 + w.Int64N(3000), Period: []time.Duration{time.Second, time.Second, 10 * time.Second, time.Minute}[w.IntN(4)]}
	perSecond := float64(limit.Events) / limit.Period.Seconds()
	limit.Burst = 1 + w.Int64N(2+int64(perSecond*3))
	ledgers := 1
	if ahead {
		limit.Burst += int64(math.Ceil(2*perSecond*times.Out().Seconds())) + 4
		ledgers = 1 + w.IntN(3)
	}
	w = newSimulation(seed, limit, times, ledgers, ahead)
	w.every = time.Duration(20+w.IntN(2000)) * time.Millisecond
	w.loses = w.IntN(3) * 4
	for range 1 + w.IntN(6) {
		w.add(w.moods(perSecond))
	}
	w.run(15*time.Second, func() {
		if w.IntN(2000) != 0 {
			return
		}
		f := w.filters[w.IntN(len(w.filters))]
		switch {
		case w.IntN(3) > 0:
			w.connect(f)
		case f.ledger != nil:
			w.disconnect(f)
		case len(w.filters) < 10:
			w.add(w.moods(perSecond))
		}
	})
	n, most := w.above()
	if n > 0 {
		t.Errorf("seed %d: %+v, %+v, %d ledgers: %d of %d are above the bucket, by up to %g", seed, limit, times, ledgers, n, len(w.admitted), most)
	}
	return n == 0
}

// moods is a demand that changes all the time: nothing, some, or all at once.
func (w *simulation) moods(perSecond float64) func(time.Duration) float64 {
	until, is := time.Duration(0), 0.0
	return func(now time.Duration) float64 {
		if now >= until {
			until = now + time.Duration(1+w.IntN(1500))*step
			switch w.IntN(4) {
			case 0:
				is = 0
			case 1:
				is, until = 50*perSecond+1000, now+3*step
			default:
				is = w.Float64() * 2 * perSecond
			}
		}
		return is
	}
}
