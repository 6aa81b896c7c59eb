package tidegate_test

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Every sentence that an operator can get from NewLimit, once.
func TestNewLimitSaysWhatIsWrong(t *testing.T) {
	f := func(spec tidegate.Spec, want string) {
		t.Helper()
		spec.Name = "api"
		l, err := tidegate.NewLimit(spec)
		if err == nil {
			t.Errorf("%+v: made %s, want an error", spec, l)
			return
		}
		if want = `limit "api": ` + want; err.Error() != want {
			t.Errorf("%+v:\n got %s\nwant %s", spec, err, want)
		}
	}
	type S = tidegate.Spec
	const (
		m      = time.Minute
		day    = 24 * time.Hour
		token  = tidegate.TokenBucket
		leaky  = tidegate.LeakyBucket
		fixed  = tidegate.FixedWindow
		log    = tidegate.SlidingLog
		parts  = tidegate.SubWindows
		slots  = tidegate.Concurrency
		quota  = tidegate.Quota
		always = "a limit needs at least 1 (to refuse everything, use an access rule)"
	)
	f(S{Events: 1, Period: m, Algorithm: 10}, "unknown algorithm(10)")
	f(S{Period: m}, "events is 0: "+always)
	f(S{Events: 1, Period: m, Algorithm: leaky, RawTime: true}, "raw time means nothing to leaky_bucket: use token_bucket")
	f(S{Events: 1, Period: m, Algorithm: log, RawTime: true}, "raw time means nothing to sliding_log: use token_bucket")
	f(S{Events: 1, Algorithm: quota, Calendar: tidegate.Day, RawTime: true}, "raw time means nothing to quota: use token_bucket")
	f(S{Algorithm: tidegate.Deny, RawTime: true}, "an access rule counts nothing: it has a name and nothing else")
	f(S{Events: -1, Period: m}, "events is -1: "+always)
	f(S{Events: 1 << 28, Period: m}, "events is 268435456: at most 268435455 can be counted; use a shorter period")

	f(S{Events: 1}, "period is 0s: the shortest is 1ms")
	f(S{Events: 1, Period: -m}, "period is -1m0s: the shortest is 1ms")
	f(S{Events: 1, Period: 999 * time.Microsecond}, "period is 999µs: the shortest is 1ms")
	f(S{Events: 1, Period: 367 * day}, "period is 8808h0m0s: the longest is 8784h0m0s; use a quota for months and years")
	f(S{Events: 1, Period: time.Second + 1}, "period is 1.000000001s: it must be in whole microseconds")

	f(S{Events: 1, Period: m, Algorithm: token, Burst: -1}, "burst is -1: want 0 to 268435455")
	f(S{Events: 1, Period: m, Algorithm: token, Burst: 1 << 28}, "burst is 268435456: want 0 to 268435455")
	f(S{Events: 1, Period: 15 * day, Algorithm: token}, "1/360h0m0s is slower than one in 336h0m0s: use a quota")
	f(S{Events: 1, Period: 15 * day, Algorithm: leaky}, "1/360h0m0s is slower than one in 336h0m0s: use a quota")
	f(S{Events: 1, Period: 10 * day, Burst: 36, Algorithm: token}, "burst 36 at 1/240h0m0s takes longer than 8784h0m0s to refill")
	f(S{Events: 1_000_001, Period: time.Second, Algorithm: token}, "1000001/1s is more than 1000000/s for one key: limit in larger units, with a cost per request")
	f(S{Events: 10_001, Period: m, Algorithm: log}, "events is 10001: a sliding log keeps at most 10000; use sub_windows, with ceiling if it must never be over")
	f(S{Events: 1, Period: m, Parts: -1, Algorithm: parts}, "parts is -1: want 1 to 1000")
	f(S{Events: 1, Period: m, Parts: 1001, Algorithm: parts}, "parts is 1001: want 1 to 1000")
	f(S{Events: 1, Period: 9 * time.Millisecond, Parts: 1000, Algorithm: parts}, "9ms in 1000 parts: a part must be at least 10µs")
	f(S{Events: 10_001, Period: m, Algorithm: slots}, "slots is 10001: at most 10000 leases are kept per key")

	f(S{Events: 1, Period: m, Burst: 2}, "burst means nothing to sliding_log: use token_bucket")
	f(S{Events: 100, Period: m, Burst: 2}, "burst means nothing to sub_windows: use token_bucket")
	f(S{Events: 1, Period: m, Parts: 6, Algorithm: fixed}, "parts means nothing to fixed_window: use sub_windows")
	f(S{Events: 1, Period: m, Ceiling: true, Algorithm: token}, "ceiling means nothing to token_bucket: use sub_windows or sliding_window")
	f(S{Events: 1, Period: m, CountRejected: true, Algorithm: leaky}, "count_rejected means nothing to leaky_bucket: use sliding_log")
	f(S{Events: 1, Period: m, Calendar: tidegate.Day}, "calendar, zone and anchor mean nothing to sliding_log: use a quota")
	f(S{Events: 1, Period: m, Zone: "UTC", Algorithm: slots}, "calendar, zone and anchor mean nothing to concurrency: use a quota")
	f(S{Events: 1, Period: m, Anchor: 1, Algorithm: token}, "calendar, zone and anchor mean nothing to token_bucket: use a quota")

	f(S{Events: 1, Algorithm: quota}, "a quota needs a calendar period: day, week, month or year")
	f(S{Events: 1, Algorithm: quota, Calendar: 5}, "a quota needs a calendar period: day, week, month or year")
	for _, s := range []S{{Period: m}, {Burst: 1}, {Parts: 1}, {Ceiling: true}, {CountRejected: true}} {
		s.Events, s.Algorithm, s.Calendar = 1, quota, tidegate.Day
		f(s, "a quota has no period, burst, parts, ceiling or count_rejected")
	}
	for _, s := range []S{{Events: 1}, {Period: m}, {Burst: 1}, {Parts: 1}, {Ceiling: true}, {CountRejected: true}, {Calendar: tidegate.Day}, {Zone: "UTC"}, {Anchor: 1}} {
		s.Algorithm = tidegate.Deny
		f(s, "an access rule counts nothing: it has a name and nothing else")
	}
	f(S{Events: 1, Algorithm: quota, Calendar: tidegate.Month, Anchor: 32}, "anchor is 32: want a day of the month, 1 to 31")
	f(S{Events: 1, Algorithm: quota, Calendar: tidegate.Month, Anchor: -1}, "anchor is -1: want a day of the month, 1 to 31")
	f(S{Events: 1, Algorithm: quota, Calendar: tidegate.Week, Anchor: 2}, "anchor is 2: only months and years have one")
	f(S{Events: 1, Algorithm: quota, Calendar: tidegate.Day, Zone: "Mars/Olympus"}, "zone: unknown time zone Mars/Olympus")
}

// The largest and the smallest of what NewLimit takes.
func TestNewLimitTakesItsBounds(t *testing.T) {
	f := func(spec tidegate.Spec) {
		t.Helper()
		if _, err := tidegate.NewLimit(spec); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	type S = tidegate.Spec
	f(S{Events: 1, Period: tidegate.MinPeriod})
	f(S{Events: 1, Period: tidegate.MaxPeriod})
	f(S{Events: tidegate.MaxCount, Period: time.Minute})
	f(S{Events: tidegate.MaxPerSecond, Period: time.Second, Algorithm: tidegate.TokenBucket})
	f(S{Events: tidegate.MaxLogEvents, Period: time.Minute, Algorithm: tidegate.SlidingLog})
	f(S{Events: tidegate.MaxLogEvents, Period: time.Minute, Algorithm: tidegate.Concurrency})
	f(S{Events: 1, Period: 10 * time.Millisecond, Algorithm: tidegate.SubWindows, Parts: tidegate.MaxParts})
	f(S{Events: 1, Period: 14 * 24 * time.Hour, Algorithm: tidegate.TokenBucket})
	f(S{Events: 1, Algorithm: tidegate.Quota, Calendar: tidegate.Year, Anchor: 31, Zone: "UTC"})
}

func TestMustLimitPanics(t *testing.T) {
	for name, make := range map[string]func(){
		"MustLimit": func() { tidegate.MustLimit(tidegate.Spec{Name: "none"}) },
		"PerSecond": func() { tidegate.PerSecond(0) },
		"Slots":     func() { tidegate.Slots(-1, time.Minute) },
	} {
		message := panicOf(make)
		if !strings.HasPrefix(message, `tidegate: limit "`) || !strings.Contains(message, "a limit needs at least 1") {
			t.Errorf("%s panicked with %q", name, message)
		}
	}
}

// panicOf is what f panics with, "" when it does not.
func panicOf(f func()) (message string) {
	defer func() {
		if v := recover(); v != nil {
			message, _ = v.(string)
		}
	}()
	f()
	return ""
}

func TestAutoChooses(t *testing.T) {
	f := func(events int64, algorithm tidegate.Algorithm, parts int) {
		t.Helper()
		l := tidegate.PerMinute(events)
		if l.Algorithm != algorithm || l.Parts != parts {
			t.Errorf("%d/min: %s with %d parts, want %s with %d", events, l.Algorithm, l.Parts, algorithm, parts)
		}
	}
	f(1, tidegate.SlidingLog, 0)
	f(64, tidegate.SlidingLog, 0)
	f(65, tidegate.SubWindows, 60)
	f(1_000_000, tidegate.SubWindows, 60)
}

func TestDefaultsAndShorthands(t *testing.T) {
	f := func(l *tidegate.Limit, want string, capacity int64) {
		t.Helper()
		if l.String() != want || l.Capacity() != capacity {
			t.Errorf("%s of capacity %d, want %s of %d", l, l.Capacity(), want, capacity)
		}
	}
	spec := func(s tidegate.Spec) *tidegate.Limit {
		if s.Algorithm != tidegate.Quota {
			s.Period = time.Minute
		}
		return tidegate.MustLimit(s)
	}
	f(tidegate.PerSecond(5), "5/1s sliding_log", 5)
	f(tidegate.PerMinute(100), "100/1m0s sub_windows", 100)
	f(tidegate.PerHour(5), "5/1h0m0s sliding_log", 5)
	f(tidegate.PerDay(5), "5/24h0m0s sliding_log", 5)
	f(tidegate.Per(5, time.Millisecond), "5/1ms sliding_log", 5)
	f(tidegate.Slots(3, time.Minute), "3 slots, lease 1m0s", 3)
	f(spec(tidegate.Spec{Name: "api", Events: 9}), "api: 9/1m0s sliding_log", 9)
	f(spec(tidegate.Spec{Events: 100, Algorithm: tidegate.TokenBucket}), "100/1m0s token_bucket burst 100", 100)
	f(spec(tidegate.Spec{Events: 100, Algorithm: tidegate.TokenBucket, Burst: 20}), "100/1m0s token_bucket burst 20", 20)
	f(spec(tidegate.Spec{Events: 100, Algorithm: tidegate.LeakyBucket}), "100/1m0s leaky_bucket burst 0", 1)
	f(spec(tidegate.Spec{Events: 100, Algorithm: tidegate.LeakyBucket, Burst: 5}), "100/1m0s leaky_bucket burst 5", 6)
	f(spec(tidegate.Spec{Events: 7, Algorithm: tidegate.FixedWindow}), "7/1m0s fixed_window", 7)
	f(spec(tidegate.Spec{Events: 7, Algorithm: tidegate.Quota, Calendar: tidegate.Month}), "7/month quota", 7)
}

func TestLocationOfAQuota(t *testing.T) {
	if l := tidegate.PerMinute(1); l.Location() != time.UTC {
		t.Errorf("the zone of %s is %s", l, l.Location())
	}
	l := tidegate.MustLimit(tidegate.Spec{Events: 1, Algorithm: tidegate.Quota, Calendar: tidegate.Day, Zone: "Asia/Seoul"})
	if l.Location().String() != "Asia/Seoul" || l.Anchor != 1 {
		t.Errorf("zone %s, anchor %d", l.Location(), l.Anchor)
	}
}
