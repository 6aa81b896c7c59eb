package telemetry

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// total adds up a family of counters by a label's value.
func total(t *testing.T, reg *prometheus.Registry, name, label, value string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

func limitOfRule(rule string) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: rule, Scope: "user", Events: 100, Period: time.Minute, Terms: &tidegate.Terms{Rule: rule}})
}

// What is counted for doors stays when rules go, also while requests are decided by them, and
// never goes down.
func TestReloadsLoseNoRequest(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, "memory")
	door := m.Door("check")
	a, b := limitOfRule("a"), limitOfRule("b")
	m.SetRules([]string{"a", "b"}, nil)
	const each = 2000
	var deciding sync.WaitGroup
	for range 2 {
		deciding.Go(func() {
			for i := range each {
				checks := []tidegate.Check{{Key: "x", Limit: a}, {Key: "x", Limit: b}}
				door.Decided(checks, &tidegate.Decision{OK: true, Limit: a})
				door.ObserveMany(&tidegate.Decision{OK: true, Limit: b}, 3)
				if i%100 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { deciding.Wait(); close(done) }()
	last := 0.0
	for i := 0; ; i++ {
		if i%2 == 0 {
			m.SetRules([]string{"b"}, nil)
		} else {
			m.SetRules([]string{"a"}, nil)
		}
		now := total(t, reg, "tidegate_requests_total", "door", "check")
		if now < last {
			t.Fatalf("requests went from %v down to %v", last, now)
		}
		last = now
		select {
		case <-done:
			m.SetRules([]string{"a", "b"}, nil)
			want := float64(2 * each * 4)
			// A request that was looked up before the last change but one is the only one that can be missed.
			if got := total(t, reg, "tidegate_requests_total", "door", "check"); got > want || got < want-want/100 {
				t.Errorf("%v of %v requests are counted", got, want)
			}
			if got := total(t, reg, "tidegate_decided_total", "by", "memory"); got > want || got < want-want/100 {
				t.Errorf("%v of %v decisions are counted", got, want)
			}
			return
		default:
		}
	}
}

// A hundred thousand keys add no time series, and take less than 2 MB of everything that watches.
func TestManyKeysTakeLittle(t *testing.T) {
	const rules, keys = 20, 100_000
	var names []string
	var limits []*tidegate.Limit
	for i := range rules {
		names = append(names, fmt.Sprint("rule-", i))
		limits = append(limits, limitOfRule(names[i]))
	}
	reg := prometheus.NewRegistry()
	series := func() (n int) {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	empty := heap()
	m := New(reg, "memory")
	lists := offenders.New(offenders.Options{})
	defer lists.Close()
	m.Tell(lists)
	m.SetRules(names, limits)
	lists.SetRules(names)
	before := series()
	for i := range keys {
		l := limits[i%rules]
		checks := []tidegate.Check{{Key: fmt.Sprintf("user-%030d", i), Limit: l}}
		m.Decided(checks, &tidegate.Decision{OK: i%3 > 0, Limit: l, Remaining: 10})
	}
	if after := series(); after != before {
		t.Errorf("%d series have become %d", before, after)
	}
	if took := heap() - empty; took > 2_000_000 {
		t.Errorf("%d keys of %d rules take %d bytes", keys, rules, took)
	}
	runtime.KeepAlive(m)
}
