package algo

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Each target decodes bytes into a limit and what happens to one of its keys,
// and compares every verdict with the oracle's.

func seed(f *testing.F) {
	for i := range uint64(24) {
		f.Add(randomTape(i, 40+int(i)*12).b)
	}
}

// fuzzLaw lets spec make a limit of the tape's numbers; an impossible one is skipped.
func fuzzLaw(f *testing.F, spec func(*tape) tidegate.Spec) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &tape{b}
		l, err := tidegate.NewLimit(spec(in))
		if err != nil {
			t.Skip(err)
		}
		for _, dated := range []bool{false, true} {
			in := &tape{in.b}
			period, em := Ticks(l.Period), Ticks(l.Period)/l.Events
			d := newDuel(t, l, epoch+in.upTo(day))
			if k, ok := d.law.(*bucketKey); ok {
				k.dated = dated
			} else if dated {
				return
			}
			back := in.byte()%8 == 0
			if back {
				d.stagger(in, period, em)
			} else {
				d.play(in, period, em)
			}
		}
	})
}

func FuzzTokenBucket(f *testing.F) {
	fuzzLaw(f, func(in *tape) tidegate.Spec {
		events, period := in.numbers()
		return tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: events, Period: period, Burst: in.pick(0, 1, 2, 7, events*3)}
	})
}

func FuzzLeakyBucket(f *testing.F) {
	fuzzLaw(f, func(in *tape) tidegate.Spec {
		events, period := in.numbers()
		return tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: events, Period: period, Burst: in.pick(0, 1, 5, in.upTo(40))}
	})
}

func FuzzFixedWindow(f *testing.F) {
	fuzzLaw(f, func(in *tape) tidegate.Spec {
		events, period := in.numbers()
		return tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: events, Period: period}
	})
}

func FuzzSlidingLog(f *testing.F) {
	fuzzLaw(f, func(in *tape) tidegate.Spec {
		_, period := in.numbers()
		return tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 1 + in.upTo(11), Period: period, CountRejected: in.flag()}
	})
}

func FuzzSlidingWindow(f *testing.F) {
	fuzzLaw(f, func(in *tape) tidegate.Spec {
		events, period := in.numbers()
		return tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: events, Period: period, Ceiling: in.flag()}
	})
}

func FuzzSubWindows(f *testing.F) {
	fuzzLaw(f, func(in *tape) tidegate.Spec {
		events, period := in.numbers()
		return tidegate.Spec{
			Algorithm: tidegate.SubWindows, Events: events, Period: period,
			Parts: int(in.pick(1, 2, 3, 6, 7, 60)), Ceiling: in.flag(),
		}
	})
}

// zones have clocks that jump over midnight, back to it, by half an hour, over
// a whole day; none that shows a date twice.
var zones = []string{
	"", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut",
	"Pacific/Apia", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu", "America/Nuuk", "Asia/Seoul",
}

func FuzzQuota(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &tape{b}
		spec := tidegate.Spec{Algorithm: tidegate.Quota, Events: 1 + in.upTo(9), Calendar: tidegate.Calendar(1 + in.upTo(3))}
		spec.Zone = zones[int(in.byte())%len(zones)]
		if spec.Calendar >= tidegate.Month {
			spec.Anchor = 1 + int(in.upTo(30))
		}
		l, err := tidegate.NewLimit(spec)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Date(1975+int(in.upTo(75)), 1, 1, 0, 0, 0, 0, time.UTC)
		now := Instant(start) + in.upTo(366*24*60)*minute + in.upTo(minute)
		checkSpan(t, l, now)
		d := newDuel(t, l, now)
		length := SpanAt(l, now).End - SpanAt(l, now).Start
		if in.byte()%8 == 0 {
			d.stagger(in, length*Micro, hour)
		} else {
			d.play(in, length*Micro, hour)
		}
	})
}

// checkSpan: the span holds now, has one name throughout, and another outside.
func checkSpan(t *testing.T, l *tidegate.Limit, now int64) {
	t.Helper()
	us, span := now/Micro, SpanAt(l, now)
	if !span.Holds(us) {
		t.Fatalf("%s in %q anchor %d: %d is not in %+v", l, l.Zone, l.Anchor, us, span)
	}
	name := func(us int64) string { return calendarPeriod(l, time.UnixMicro(us)) }
	inside := []int64{span.Start, span.End - 1, span.Start + (span.End-span.Start)/3}
	for _, us := range inside {
		if name(us) != name(now/Micro) {
			t.Fatalf("%s in %q anchor %d: %s and %s are not in the same period", l, l.Zone, l.Anchor, time.UnixMicro(us).UTC(), time.UnixMicro(now/Micro).UTC())
		}
	}
	for _, us := range []int64{span.Start - 1, span.End} {
		if name(us) == name(now/Micro) {
			t.Fatalf("%s in %q anchor %d: %s belongs to the period as well", l, l.Zone, l.Anchor, time.UnixMicro(us).UTC())
		}
	}
}

func FuzzConcurrency(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &tape{b}
		_, period := in.numbers()
		l, err := tidegate.NewLimit(tidegate.Spec{Algorithm: tidegate.Concurrency, Events: 1 + in.upTo(9), Period: period})
		if err != nil {
			t.Fatal(err)
		}
		d := newDuel(t, l, epoch)
		if in.byte()%8 == 0 {
			d.stagger(in, Ticks(period), hour)
			return
		}
		for range 8 {
			d.play(&tape{in.b[:len(in.b)/4]}, Ticks(period), hour)
			in.b = in.b[len(in.b)/4:]
			if len(d.receipts) == 0 {
				continue
			}
			at := d.receipts[int(in.byte())%len(d.receipts)].at
			d.note("renew the lease of +%d", at-epoch)
			k := d.law.(*leasesKey)
			if got, want := k.law.Renew(k.r, d.now, at), d.oracle.(*leaseOracle).renew(d.now, at); got != want {
				d.fail("renewed %v: want %v", got, want)
			}
			d.take(Ask{Copies: 1})
		}
	})
}
