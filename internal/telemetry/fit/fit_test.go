package fit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

var began = time.Unix(1_800_000_000, 0)

// stage is a rule with one limit, and refusals of it.
type stage struct {
	t     *testing.T
	fit   *Fit
	limit *tidegate.Limit
}

func newStage(t *testing.T, events int64, period time.Duration, algorithm tidegate.Algorithm) *stage {
	t.Helper()
	l, err := tidegate.NewLimit(tidegate.Spec{Name: "api", Scope: "user", Events: events, Period: period, Algorithm: algorithm})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, New(began), l}
}

func (s *stage) refuse(key string, after time.Duration) {
	d := tidegate.Decision{Limit: s.limit}
	s.fit.Refused([]tidegate.Check{{Key: key, Limit: s.limit, Cost: 1}}, &d, began.Add(after))
}

// advice wants sentences that begin so, in this order, each with evidence.
func (s *stage) advice(after time.Duration, want ...string) Report {
	s.t.Helper()
	is := s.fit.Report("api", began.Add(after))
	ok := len(is.Advice) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(is.Advice[i].Text, want[i]) && is.Advice[i].Evidence != ""
	}
	if !ok {
		s.t.Errorf("%s: got %+v, want %q", s.limit, is, want)
	}
	return is
}

func TestNobodyRefused(t *testing.T) {
	s := newStage(t, 100, time.Minute, tidegate.Auto)
	is := s.advice(3*time.Hour, "refused nobody")
	if is.Advice[0].Evidence != "no refusal since 2027-01-15 08:00 UTC (3h0m0s)" {
		t.Errorf("%+v", is.Advice)
	}
	s.refuse("a", time.Second)
	s.advice(time.Minute, "too few")
}

// Clients that send a few too many at once, and then rest.
func TestClumps(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SubWindows, tidegate.SlidingWindow} {
		s := newStage(t, 10, 10*time.Second, a)
		for minute := range 20 {
			for i := range 30 { // 40 at once, of which 10 are admitted
				s.refuse("a", time.Duration(minute)*time.Minute+time.Duration(i)*10*time.Millisecond)
			}
		}
		want := "`burst: 40` would admit them"
		if a == tidegate.TokenBucket {
			want = "burst 40 would admit them"
		}
		is := s.advice(time.Hour, "100 % of refusals are clumps below 2s: ")
		if !strings.Contains(is.Advice[0].Text, want) || is.Burst != 40 || is.Clumps != 20 || is.ShortRefusals != 600 {
			t.Errorf("%s: %+v", a, is)
		}
	}
}

// Clients that want a tenth more, all the time.
func TestALittleMore(t *testing.T) {
	for _, times := range []struct {
		refused int // of each key in a minute, of 100
		want    string
	}{{10, "120/1m0s would refuse none"}, {60, "200/1m0s would refuse none"}} {
		s := newStage(t, 100, time.Minute, tidegate.Auto)
		for minute := range 5 {
			for k := range 50 {
				for i := range times.refused {
					s.refuse(fmt.Sprint(k), time.Duration(minute)*time.Minute+time.Duration(i)*time.Second)
				}
			}
		}
		is := s.advice(10*time.Minute, times.want)
		if is.Keys != 50 || is.Sampled != 50 || is.Refusals != int64(5*50*times.refused) || is.ShortRefusals != 0 {
			t.Errorf("%+v", is)
		}
	}
}

// One client that asks for eleven times the limit without a pause.
func TestHeavy(t *testing.T) {
	s := newStage(t, 10, time.Second, tidegate.Auto)
	for i := range 10_000 {
		s.refuse("a", time.Duration(i)*10*time.Millisecond)
	}
	is := s.advice(time.Hour, "many times the limit")
	if is.Heaviest != 11 || is.Within2 != 0 || is.Clumps != 1 || is.ShortRefusals != 0 {
		t.Errorf("%+v", is)
	}
}

// However many keys there are, a bounded number is looked at, and the estimate is near.
func TestManyKeys(t *testing.T) {
	for _, keys := range []int{100, 1000, 20_000, 200_000} {
		s := newStage(t, 10, time.Second, tidegate.Auto)
		for k := range keys {
			s.refuse(fmt.Sprint(k), 0)
		}
		is := s.fit.Report("api", began)
		if is.Sampled > maxKeys || is.Refusals != int64(keys) {
			t.Errorf("%d keys: %+v", keys, is)
		}
		// Of 128 and more sampled keys, 6 standard deviations are half of them.
		if off := float64(is.Keys) / float64(keys); off < 0.5 || off > 1.5 {
			t.Errorf("%d keys are estimated as %d", keys, is.Keys)
		}
	}
}

// What does not count events in a time, and what is no refusal, is not looked at. Limits that are
// gone are forgotten, and a limit with another number begins anew.
func TestWhatIsSeen(t *testing.T) {
	s := newStage(t, 10, time.Second, tidegate.Auto)
	f := func(change func(*tidegate.Decision)) {
		t.Helper()
		d := tidegate.Decision{Limit: s.limit}
		change(&d)
		s.fit.Refused([]tidegate.Check{{Key: "a", Limit: d.Limit}}, &d, began)
		if n := s.fit.Report("api", began).Refusals; n != 0 {
			t.Errorf("%d refusals: %+v", n, d)
		}
	}
	f(func(d *tidegate.Decision) { d.OK = true })
	f(func(d *tidegate.Decision) { d.Never = true })
	f(func(d *tidegate.Decision) { d.Limit = nil })
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.Deny},
		{Algorithm: tidegate.Concurrency, Events: 5, Period: time.Second},
		{Algorithm: tidegate.FixedWindow, Events: 5, Period: time.Second, Terms: &tidegate.Terms{Role: tidegate.Blocks}},
	} {
		spec.Name = "api"
		l, err := tidegate.NewLimit(spec)
		if err != nil {
			t.Fatal(err)
		}
		f(func(d *tidegate.Decision) { d.Limit = l })
	}
	s.refuse("a", 0)
	s.fit.SetLimits([]*tidegate.Limit{s.limit})
	if n := s.fit.Report("api", began).Refusals; n != 1 {
		t.Errorf("%d refusals", n)
	}
	s.fit.SetLimits(nil)
	if n := s.fit.Report("api", began).Refusals; n != 0 {
		t.Errorf("%d refusals of a limit that is gone", n)
	}
}

func BenchmarkRefused(b *testing.B) {
	l, err := tidegate.NewLimit(tidegate.Spec{Name: "api", Scope: "user", Events: 10, Period: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	f := New(began)
	checks := []tidegate.Check{{Key: "customer-4711", Limit: l, Cost: 1}}
	d := tidegate.Decision{Limit: l}
	b.ReportAllocs()
	for b.Loop() {
		f.Refused(checks, &d, began)
	}
}
