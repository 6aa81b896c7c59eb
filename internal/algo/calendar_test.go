package algo

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func quota(t *testing.T, c tidegate.Calendar, zone string, anchor int) *tidegate.Limit {
	t.Helper()
	l, err := tidegate.NewLimit(tidegate.Spec{Algorithm: tidegate.Quota, Events: 1, Calendar: c, Zone: zone, Anchor: anchor})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// utc reads "2026-03-01 12:00:00".
func utc(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestCalendarSpans: the period around an instant, all in UTC.
func TestCalendarSpans(t *testing.T) {
	f := func(c tidegate.Calendar, zone string, anchor int, at, from, to string) {
		t.Helper()
		l := quota(t, c, zone, anchor)
		s := SpanAt(l, Instant(utc(t, at)))
		if want := (Span{utc(t, from).UnixMicro(), utc(t, to).UnixMicro()}); s != want {
			t.Errorf("%s in %q anchor %d at %s: %s to %s, want %s to %s", c, zone, anchor, at,
				time.UnixMicro(s.Start).UTC().Format(time.DateTime), time.UnixMicro(s.End).UTC().Format(time.DateTime), from, to)
		}
	}
	day, week, month, year := tidegate.Day, tidegate.Week, tidegate.Month, tidegate.Year

	f(day, "", 0, "2026-03-01 12:00:00", "2026-03-01 00:00:00", "2026-03-02 00:00:00")
	f(day, "Asia/Seoul", 0, "2026-03-01 16:00:00", "2026-03-01 15:00:00", "2026-03-02 15:00:00")
	// Days of 23 and 25 hours, and of 24 and a half.
	f(day, "Europe/Berlin", 0, "2026-03-29 10:00:00", "2026-03-28 23:00:00", "2026-03-29 22:00:00")
	f(day, "Europe/Berlin", 0, "2026-10-25 10:00:00", "2026-10-24 22:00:00", "2026-10-25 23:00:00")
	f(day, "Australia/Lord_Howe", 0, "2026-04-04 20:00:00", "2026-04-04 13:00:00", "2026-04-05 13:30:00")
	// No midnight: the day starts at 1:00.
	f(day, "America/Sao_Paulo", 0, "2018-11-04 12:00:00", "2018-11-04 03:00:00", "2018-11-05 02:00:00")
	f(day, "America/Sao_Paulo", 0, "2018-11-04 02:59:59", "2018-11-03 03:00:00", "2018-11-04 03:00:00")
	f(day, "Africa/Cairo", 0, "2024-04-26 12:00:00", "2024-04-25 22:00:00", "2024-04-26 21:00:00")
	f(day, "Asia/Beirut", 0, "2024-03-31 12:00:00", "2024-03-30 22:00:00", "2024-03-31 21:00:00")
	// Midnight is turned back to 23:00: the day is an hour longer.
	f(day, "Asia/Beirut", 0, "2024-10-26 20:30:00", "2024-10-25 21:00:00", "2024-10-26 22:00:00")
	f(day, "America/Havana", 0, "2025-11-02 04:30:00", "2025-11-02 04:00:00", "2025-11-03 05:00:00")
	// Samoa had no 30 December 2011.
	f(day, "Pacific/Apia", 0, "2011-12-30 09:59:59", "2011-12-29 10:00:00", "2011-12-30 10:00:00")
	f(day, "Pacific/Apia", 0, "2011-12-30 10:00:00", "2011-12-30 10:00:00", "2011-12-31 10:00:00")

	f(week, "", 0, "2026-03-01 12:00:00", "2026-02-23 00:00:00", "2026-03-02 00:00:00") // a Sunday
	f(week, "", 0, "2026-03-02 00:00:00", "2026-03-02 00:00:00", "2026-03-09 00:00:00")
	f(week, "America/New_York", 0, "2026-03-08 12:00:00", "2026-03-02 05:00:00", "2026-03-09 04:00:00")
	f(week, "Pacific/Apia", 0, "2011-12-31 00:00:00", "2011-12-26 10:00:00", "2012-01-01 10:00:00")

	f(month, "", 0, "2024-02-29 23:00:00", "2024-02-01 00:00:00", "2024-03-01 00:00:00")
	f(month, "", 15, "2026-01-14 23:59:59", "2025-12-15 00:00:00", "2026-01-15 00:00:00")
	f(month, "", 31, "2026-02-27 23:59:59", "2026-01-31 00:00:00", "2026-02-28 00:00:00")
	f(month, "", 31, "2026-02-28 00:00:00", "2026-02-28 00:00:00", "2026-03-31 00:00:00")
	f(month, "", 31, "2024-02-29 00:00:00", "2024-02-29 00:00:00", "2024-03-31 00:00:00")
	f(month, "", 30, "2026-12-31 00:00:00", "2026-12-30 00:00:00", "2027-01-30 00:00:00")
	f(month, "Pacific/Apia", 30, "2011-12-30 12:00:00", "2011-12-30 10:00:00", "2012-01-29 10:00:00")

	f(year, "", 0, "2026-12-31 23:59:59", "2026-01-01 00:00:00", "2027-01-01 00:00:00")
	f(year, "", 10, "2026-01-09 23:59:59", "2025-01-10 00:00:00", "2026-01-10 00:00:00")
	f(year, "Asia/Seoul", 0, "2025-12-31 15:00:00", "2025-12-31 15:00:00", "2026-12-31 15:00:00")
}

// TestAlignedSpans: windows of the wall clock; weeks start on Monday.
func TestAlignedSpans(t *testing.T) {
	f := func(period time.Duration, at, from string) {
		t.Helper()
		l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 1, Period: period})
		s := SpanAt(l, Instant(utc(t, at)))
		if want := utc(t, from).UnixMicro(); s.Start != want || s.End != want+period.Microseconds() {
			t.Errorf("%s at %s: %s", period, at, time.UnixMicro(s.Start).UTC())
		}
	}
	f(time.Minute, "2026-03-01 12:34:56", "2026-03-01 12:34:00")
	f(time.Hour, "2026-03-01 12:34:56", "2026-03-01 12:00:00")
	f(24*time.Hour, "2026-03-01 12:34:56", "2026-03-01 00:00:00")
	f(7*24*time.Hour, "2026-03-01 12:34:56", "2026-02-23 00:00:00")
	f(7*24*time.Hour, "2026-03-02 00:00:00", "2026-03-02 00:00:00")
	f(14*24*time.Hour, "1970-01-07 00:00:00", "1970-01-05 00:00:00")
	f(7*24*time.Hour, "1970-01-02 00:00:00", "1969-12-29 00:00:00")
}

// TestSpansTile: the spans of a zone follow each other without gap or overlap,
// and each is the span of every instant in it. St. John's and Goose Bay turned
// their clocks back at 0:01, so that they showed some dates twice.
func TestSpansTile(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, zone := range append(zones, "America/St_Johns", "America/Goose_Bay", "Pacific/Kwajalein", "Antarctica/Troll") {
		for _, l := range []*tidegate.Limit{
			quota(t, tidegate.Day, zone, 0), quota(t, tidegate.Week, zone, 0), quota(t, tidegate.Month, zone, 31),
			quota(t, tidegate.Month, zone, 29), quota(t, tidegate.Year, zone, 0),
		} {
			span := SpanAt(l, Instant(time.Date(2006, 1, 1, 0, 0, 0, 0, time.UTC)))
			for range 3 * 366 / thin {
				length := span.End - span.Start
				for _, at := range []int64{1, 30e6, 61e6, length - 3600e6, length - 1} {
					if got := SpanAt(l, (span.Start+at)*Micro); at >= 0 && at < length && got != span {
						t.Fatalf("%s in %s: %d µs into %+v lies in %+v", l, zone, at, span, got)
					}
				}
				next := SpanAt(l, span.End*Micro)
				if next.Start != span.End || next.End <= next.Start {
					t.Fatalf("%s in %s: %+v is followed by %+v", l, zone, span, next)
				}
				if span = next; span.Start > time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
					break
				}
			}
		}
	}
}

// TestQuotaAhead: a clock that lags a little behind the first of February is
// told the end of February, not of 31 days.
func TestQuotaAhead(t *testing.T) {
	l := quota(t, tidegate.Month, "", 0)
	k := newSubject(t, l)
	k.take(Instant(utc(t, "2026-02-01 00:00:00")), one)
	at := Instant(utc(t, "2026-01-31 23:59:59"))
	v, _ := k.take(at, one)
	if want := Instant(utc(t, "2026-03-01 00:00:00")) - at; v.Granted != 0 || v.Retry() != want || v.Reset != want {
		t.Errorf("%+v: want a retry in %d", v, want)
	}
}
