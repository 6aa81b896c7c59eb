package algo

import (
	"testing"

	"tidegate.dev/tidegate"
)

// subject is one key under a law, with the state kept as a store keeps it.
type subject interface {
	// change puts other numbers of the same identity into force.
	change(l *tidegate.Limit)
	// take also gives the receipt.
	take(now int64, a Ask) (Verdict, int64)
	fit(now int64, a Ask) int64
	giveBack(now, at, n int64)
	force(now, n int64)
	idle(now int64) bool
	clone() subject
}

func newSubject(t testing.TB, l *tidegate.Limit) subject {
	switch l.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		return &bucketKey{law: NewBucketLaw(l)}
	case tidegate.FixedWindow, tidegate.Quota:
		return &counterKey{law: NewCounterLaw(l), limit: l}
	case tidegate.SlidingWindow:
		return &slidingKey{law: NewSlidingLaw(l)}
	case tidegate.SlidingLog:
		return &logKey{t: t, law: NewLogLaw(l), r: NewRecord(RunsHeader)}
	case tidegate.SubWindows:
		return &partsKey{t: t, law: NewPartsLaw(l), r: NewRecord(RunsHeader)}
	case tidegate.Concurrency:
		return &leasesKey{t: t, law: NewLeaseLaw(l), r: NewRecord(LeasesHeader)}
	}
	t.Fatalf("no subject for %s", l)
	return nil
}

// bucketKey keeps when a state was written only where it is dated: not all stores do.
type bucketKey struct {
	law   BucketLaw
	s     Bucket
	dated bool
}

func (k *bucketKey) set(s Bucket) {
	if k.s = s; !k.dated {
		k.s.Written = 0
	}
}

func (k *bucketKey) change(l *tidegate.Limit) {
	widest := k.law.Widest
	k.law = NewBucketLaw(l)
	k.law.Widest = max(k.law.Widest, widest)
}
func (k *bucketKey) fit(now int64, a Ask) int64 { return k.law.Fit(k.s, now, a) }
func (k *bucketKey) giveBack(now, at, n int64)  { k.set(k.law.Return(k.s, now, at, n)) }
func (k *bucketKey) force(now, n int64)         { k.set(k.law.Force(k.s, now, n)) }
func (k *bucketKey) idle(now int64) bool        { return k.s.Idle(now) }
func (k *bucketKey) clone() subject             { c := *k; return &c }
func (k *bucketKey) take(now int64, a Ask) (v Verdict, at int64) {
	s, v := k.law.Take(k.s, now, a)
	k.set(s)
	if k.law.Leaky && v.Granted > 0 {
		return v, now + v.Wait() // its turn
	}
	return v, now
}

type counterKey struct {
	law   CounterLaw
	limit *tidegate.Limit
	s     Counter
}

func (k *counterKey) span(now int64) Span        { return SpanAt(k.limit, now) }
func (k *counterKey) change(l *tidegate.Limit)   { k.law, k.limit = NewCounterLaw(l), l }
func (k *counterKey) fit(now int64, a Ask) int64 { return k.law.Fit(k.s, k.span(now), now, a) }
func (k *counterKey) force(now, n int64)         { k.s = k.law.Force(k.s, k.span(now), now, n) }
func (k *counterKey) idle(now int64) bool        { return k.s.Idle(k.span(now)) }
func (k *counterKey) clone() subject             { c := *k; return &c }
func (k *counterKey) giveBack(now, at, n int64) {
	k.s = k.law.Return(k.s, k.span(now), k.span(at), now, n)
}

func (k *counterKey) take(now int64, a Ask) (v Verdict, at int64) {
	k.s, v = k.law.Take(k.s, k.span(now), now, a)
	return v, now
}

type slidingKey struct {
	law SlidingLaw
	s   Sliding
}

func (k *slidingKey) change(l *tidegate.Limit)   { k.law = NewSlidingLaw(l) }
func (k *slidingKey) fit(now int64, a Ask) int64 { return k.law.Fit(k.s, now, a) }
func (k *slidingKey) giveBack(now, at, n int64)  { k.s = k.law.Return(k.s, now, at, n) }
func (k *slidingKey) force(now, n int64)         { k.s = k.law.Force(k.s, now, n) }
func (k *slidingKey) idle(now int64) bool        { return k.law.Idle(k.s, now) }
func (k *slidingKey) clone() subject             { c := *k; return &c }
func (k *slidingKey) take(now int64, a Ask) (v Verdict, at int64) {
	k.s, v = k.law.Take(k.s, now, a)
	return v, now
}

// logKey and partsKey give a record one more entry whenever it asks for more,
// so that it is always as full as it can be.
type logKey struct {
	t   testing.TB
	law LogLaw
	r   Runs
}

func (k *logKey) change(l *tidegate.Limit)   { k.law = NewLogLaw(l) }
func (k *logKey) fit(now int64, a Ask) int64 { return k.law.Fit(k.r, now, a) }
func (k *logKey) giveBack(now, at, n int64)  { k.law.Return(k.r, now, at, n) }
func (k *logKey) idle(now int64) bool        { return k.law.Idle(k.r, now) }
func (k *logKey) clone() subject             { c := *k; c.r = k.r.clone(); return &c }
func (k *logKey) take(now int64, a Ask) (v Verdict, at int64) {
	k.r = grown(k.t, k.r, func(r Runs) (ok bool) { v, ok = k.law.Take(r, now, a); return ok })
	return v, now
}

func (k *logKey) force(now, n int64) {
	k.r = grown(k.t, k.r, func(r Runs) bool { return k.law.Force(r, now, n) })
}

type partsKey struct {
	t   testing.TB
	law PartsLaw
	r   Runs
}

func (k *partsKey) change(l *tidegate.Limit)   { k.law = NewPartsLaw(l) }
func (k *partsKey) fit(now int64, a Ask) int64 { return k.law.Fit(k.r, now, a) }
func (k *partsKey) giveBack(now, at, n int64)  { k.law.Return(k.r, now, at, n) }
func (k *partsKey) idle(now int64) bool        { return k.law.Idle(k.r, now) }
func (k *partsKey) clone() subject             { c := *k; c.r = k.r.clone(); return &c }
func (k *partsKey) take(now int64, a Ask) (v Verdict, at int64) {
	k.r = grown(k.t, k.r, func(r Runs) (ok bool) { v, ok = k.law.Take(r, now, a); return ok })
	if k.r.len() > k.law.MaxEntries() {
		k.t.Fatalf("%d entries: more than %d", k.r.len(), k.law.MaxEntries())
	}
	return v, now
}

func (k *partsKey) force(now, n int64) {
	k.r = grown(k.t, k.r, func(r Runs) bool { return k.law.Force(r, now, n) })
}

func (r *Record) clone() *Record {
	c := NewRecord(r.Words())
	r.Copy(c)
	return c
}

// grown does op on r, or where it reports that r is too small on a record with
// one more entry. An op that says so must have counted nothing.
func grown(t testing.TB, r Runs, op func(Runs) bool) Runs {
	if op(r) {
		return r
	}
	used := r.Used()
	larger := NewRecord(r.Words() + 1)
	r.CopyTo(larger)
	if larger.Used() != used || larger.len() != r.len() {
		t.Fatalf("CopyTo: %d in %d entries became %d in %d", used, r.len(), larger.Used(), larger.len())
	}
	if !op(larger) {
		t.Fatalf("one more entry than %d is not enough", r.len())
	}
	return larger
}

// leasesKey names leases as a store does: by the instant, made unique.
type leasesKey struct {
	t    testing.TB
	law  LeaseLaw
	r    Leases
	name int64
}

func (k *leasesKey) change(l *tidegate.Limit)   { k.law = NewLeaseLaw(l) }
func (k *leasesKey) fit(now int64, a Ask) int64 { return k.law.Fit(k.r, now, a) }
func (k *leasesKey) giveBack(now, at, n int64)  { k.law.Release(k.r, now, at, n) }
func (k *leasesKey) force(int64, int64)         {}
func (k *leasesKey) idle(now int64) bool        { return k.law.Idle(k.r, now) }
func (k *leasesKey) clone() subject             { c := *k; c.r = k.r.clone(); return &c }

// maxWords is the most words that a record of leases can come to need.
func maxWords(l LeaseLaw) int { return LeasesHeader + 2*int(l.Slots) }

func (k *leasesKey) take(now int64, a Ask) (v Verdict, at int64) {
	at = max(now, k.name+1)
	v, ok := k.law.Take(k.r, now, at, a)
	if !ok {
		n := int(k.law.Fit(k.r, now, a) * a.Cost)
		larger := NewRecord(LeasesHeader + 2*(k.r.Held()+n))
		k.r.Copy(larger)
		if k.r = larger; larger.Words() > maxWords(k.law) {
			k.t.Fatalf("%d words: more than %d", larger.Words(), maxWords(k.law))
		}
		if v, ok = k.law.Take(k.r, now, at, a); !ok {
			k.t.Fatalf("%d words are not enough", larger.Words())
		}
	}
	if a.Cost > 0 && v.Granted > 0 {
		k.name = at + v.Granted - 1
	}
	return v, at
}
