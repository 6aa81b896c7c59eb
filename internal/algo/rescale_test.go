package algo

import (
	"math/big"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// FuzzRescale changes the numbers of a bucket while it is in use: used events
// are preserved to the tick, and from then on it is a bucket of the new law.
func FuzzRescale(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &tape{b}
		next := func() *tidegate.Limit {
			events, period := in.numbers()
			l, err := tidegate.NewLimit(tidegate.Spec{
				Algorithm: tidegate.TokenBucket,
				Events:    events, Period: period, Burst: in.pick(0, 1, 5, 2*events),
			})
			if err != nil {
				t.Skip(err)
			}
			return l
		}
		d := newDuel(t, next(), epoch)
		d.law.(*bucketKey).dated = in.flag()
		for range 6 {
			room := len(in.b) / 3
			d.play(&tape{in.b[:room]}, Ticks(d.limit.Period), emission(d.limit))
			in.b = in.b[room:]
			if in.done() {
				return
			}
			d.rescale(next())
			if t.Failed() {
				return
			}
		}
	})
}

// used is how many events the state has used: (TAT-now)/em.
func (k *bucketKey) used(now int64) *big.Rat {
	if k.s.Drained <= now {
		return new(big.Rat)
	}
	return new(big.Rat).SetFrac64(k.s.Drained-now, k.s.Em)
}

func (d *duel) rescale(l *tidegate.Limit) {
	d.t.Helper()
	k := d.law.(*bucketKey)
	sameRate := emission(l) == k.s.Em
	before := k.used(d.now)
	d.change(l)
	v, _ := k.take(d.now, Ask{Copies: 1})
	d.note("peek under it: %+v", v)
	after := k.used(d.now)
	// More than the burst counts as exhausted, and is not forgotten.
	if before.Cmp(whole(l.Burst)) > 0 && v.Remaining != 0 {
		d.fail("%s used of a burst of %d leaves %d", before, l.Burst, v.Remaining)
	}
	off := new(big.Rat).Sub(after, before)
	if tick := big.NewRat(1, emission(l)); off.Sign() < 0 || off.Cmp(tick) >= 0 {
		d.fail("used %s of the old burst, %s of the new burst %d: off by %s", before, after, l.Burst, off)
	}
	d.retryIsExact(k)
	if after.Cmp(whole(l.Burst)) > 0 && !sameRate { // go on as if just exhausted
		k.s = k.law.state(d.now, k.law.Tau)
		after = k.used(d.now)
	}
	o := newTokenOracle(l)
	o.level, o.at = o.level.Sub(o.level, after), d.now
	d.oracle = o
	d.receipts = nil
	d.take(Ask{Cost: 1, Copies: 1})
}

// retryIsExact holds a refusal under the new law to its word, whatever law the
// state is still draining under.
func (d *duel) retryIsExact(k *bucketKey) {
	d.t.Helper()
	c := k.clone().(*bucketKey)
	v, _ := c.take(d.now, Ask{Cost: 1, Copies: 1})
	if v.Granted > 0 {
		return
	}
	for _, early := range []int64{1, 0} {
		at := c.clone().(*bucketKey)
		if w, _ := at.take(d.now+v.Retry()-early, Ask{Cost: 1, Copies: 1}); w.Granted != 1-early {
			d.fail("%d ticks before a retry of %d: granted %d", early, v.Retry(), w.Granted)
		}
	}
}

// TestTiers asks under one law and another by turns at one instant: no more
// passes than under the wider of the two, also when none of them knows the others and
// the state says when it was written.
func TestTiers(t *testing.T) {
	for seed := range uint64(2000) {
		in := randomTape(seed, 600)
		var laws []BucketLaw
		var most int64
		for len(laws) < 3 {
			l, err := tidegate.NewLimit(tidegate.Spec{
				Algorithm: tidegate.TokenBucket,
				Events:    1 + in.upTo(20), Period: time.Duration(1+in.upTo(100)) * time.Second, Burst: 1 + in.upTo(30),
			})
			if err != nil {
				t.Fatal(err)
			}
			law := NewBucketLaw(l)
			laws = append(laws, law)
			most = max(most, law.Cap)
		}
		dated := in.flag()
		for i := range laws {
			if !dated {
				laws[i].Widest = most
			}
		}
		var s Bucket
		var passed int64
		for range 100 {
			a := Ask{Cost: 1 + in.upTo(3), Copies: 1 + in.upTo(2)}
			var v Verdict
			if s, v = laws[in.upTo(2)].Take(s, epoch, a); !dated {
				s.Written = 0
			}
			passed += v.Granted * a.Cost
		}
		if passed > most {
			t.Fatalf("seed %d: %d passed at once, the widest burst is %d", seed, passed, most)
		}
	}
}

// TestAdjustBeyond: what is returned or forced under a narrow law, while more is
// used than it can hold, leaves the rest draining at the pace it was used at.
func TestAdjustBeyond(t *testing.T) {
	f := func(adjust func(subject), want time.Duration) {
		t.Helper()
		k := key(t, tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 100, Period: time.Minute})
		k.take(epoch, Ask{Cost: 100, Copies: 1})
		k.change(tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 3, Period: 24 * time.Hour}))
		adjust(k)
		if v, _ := k.take(epoch, Ask{Cost: 3, Copies: 1}); v.Retry() != Ticks(want) {
			t.Errorf("retry in %s, want %s", Duration(v.Retry()), want)
		}
	}
	f(func(subject) {}, time.Minute)
	f(func(k subject) { k.giveBack(epoch, epoch, 10) }, 54*time.Second)
	f(func(k subject) { k.force(epoch, 10) }, time.Minute) // more in debt than it may force already
	f(func(k subject) { k.giveBack(epoch, epoch, 96); k.force(epoch, 1) }, 3*time.Second)
	f(func(k subject) { k.giveBack(epoch, epoch, 96); k.force(epoch, 10) }, 3600*time.Millisecond)
	f(func(k subject) { k.giveBack(epoch, epoch, 98) }, 16*time.Hour) // fits: at the new pace
}
