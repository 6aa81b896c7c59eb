package pressure

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

var (
	_ rules.Signals = (*Signals)(nil)
	_ rules.Steady  = (*Signals)(nil)
)

const ms = time.Millisecond

func newIdle() *Signals {
	c := newComputer()
	return open(c, c.process)
}

func (s *Signals) wants(t *testing.T, name string, low, high float64) {
	t.Helper()
	if v, ok := s.Signal(name); !ok || v < low || v > high {
		t.Errorf("%s is %v, %v; want %v to %v", name, v, ok, low, high)
	}
}

// An idle upstream has room; a processor that nobody knows of has none.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdle()
		s.wants(t, UpstreamP99, 0, 0)
		s.wants(t, UpstreamInflight, 0, 0)
		if !s.Below(UpstreamP99, 0.2) || !s.Below(UpstreamInflight, 1) {
			t.Error("an idle upstream has no room")
		}
		if s.Below(CPU, 0.9) || s.Below(Load, 1e9) || s.Below("no such signal", 1e9) {
			t.Error("there is room by what is not known")
		}
	})
}

// Nothing comes back: the latency is at least as long as that has lasted.
func TestSilentUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdle()
		s.Unanswered(+1)
		s.Answered(20 * ms)
		s.wants(t, UpstreamP99, 0.019, 0.022)
		s.Unanswered(+1)
		s.Unanswered(-1)
		time.Sleep(12 * time.Second)
		s.wants(t, UpstreamP99, 11.9, 12.1)
		s.Unanswered(-1)
		time.Sleep(latencyEvery)
		s.wants(t, UpstreamP99, 0, 0)
		s.Unanswered(+1) // after a pause: it has only come
		time.Sleep(latencyEvery)
		s.wants(t, UpstreamP99, 0, 0.11)
	})
}

// Streams and tunnels that are open do not make an upstream look slow of which little is asked.
func TestOpenStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdle()
		for range 3 {
			s.Inflight(+1)
			s.Unanswered(+1)
			s.Unanswered(-1)
			s.Answered(20 * ms)
		}
		for _, pause := range []time.Duration{4 * time.Second, 12 * time.Second, time.Hour} {
			time.Sleep(pause)
			if v, ok := s.Recent(UpstreamP99); !ok || v > 0.022 {
				t.Errorf("of late %v, %t after %s without a request", v, ok, pause)
			}
		}
		s.wants(t, UpstreamP99, 0, 0)
		s.wants(t, UpstreamInflight, 2.9, 3)
	})
}

// Clients that leave an upstream which has become slow tell that it has; those that leave at once
// do not make it look fast.
func TestClientsGiveUp(t *testing.T) {
	for name, answered := range map[string]int{"all leave": 0, "nine of ten leave": 10, "one of ten leaves": 90} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newIdle()
				for range 30 {
					for i := range 100 {
						s.Inflight(+1)
						if i < answered {
							s.Answered(20 * ms)
						} else {
							s.GivenUp(time.Second)
						}
						s.Inflight(-1)
						s.GivenUp(ms)
						time.Sleep(10 * ms)
					}
				}
				s.wants(t, UpstreamP99, 0.95, 1.1)
				if v, ok := s.Recent(UpstreamP99); !ok || v < 0.95 || v > 1.1 {
					t.Errorf("of late %v, %t", v, ok)
				}
				for range 12 {
					s.Answered(20 * ms)
					s.GivenUp(ms)
					time.Sleep(time.Second)
				}
				s.wants(t, UpstreamP99, 0.019, 0.022)
			})
		})
	}
}

func TestInflightIsAnAverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdle()
		s.wants(t, UpstreamInflight, 0, 0)
		s.Inflight(+100) // a moment of it
		time.Sleep(inflightEvery)
		s.wants(t, UpstreamInflight, 4, 6)
		s.Inflight(-100)
		s.Inflight(+10)
		for range 100 {
			time.Sleep(inflightEvery)
			s.Signal(UpstreamInflight)
		}
		s.wants(t, UpstreamInflight, 9.9, 10.1)
		s.Inflight(-10)
		time.Sleep(time.Minute) // nobody asks
		s.wants(t, UpstreamInflight, 0, 0.01)
	})
}

func TestLoadExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdle()
		for _, bad := range []float64{-0.1, math.NaN(), math.Inf(1)} {
			if s.Push(bad) == nil {
				t.Errorf("%v was taken for a load", bad)
			}
		}
		if _, ok := s.Signal(Load); ok {
			t.Error("there is a load that nobody pushed")
		}
		if err := s.Push(0.7); err != nil {
			t.Fatal(err)
		}
		time.Sleep(LoadLasts - 1)
		s.wants(t, Load, 0.7, 0.7)
		if !s.Below(Load, 1) {
			t.Error("no room below 1")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := s.Signal(Load); ok || s.Below(Load, 1) {
			t.Error("a load outlives who pushed it")
		}
	})
}

// An elastic limit of 10/minute, up to 2x, before an upstream that becomes slow.
func TestElasticLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdle()
		set, err := rules.Parse("rules.yaml", []byte(`
version: 1
rules: [{ name: feed, per: everyone, limits: 10/minute, over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } } }]
`), rules.Config{Signals: s})
		if err != nil {
			t.Fatal(err)
		}
		gate := tidegate.NewGate(set, memory.New())
		f := func(upstream time.Duration, want int) {
			t.Helper()
			passed := 0
			for range 100 {
				if gate.Decide(context.Background(), &tidegate.Request{Method: "GET", Path: "/"}).OK {
					s.Answered(upstream)
					passed++
				}
			}
			if passed != want {
				t.Errorf("upstream takes %v: %d pass, want %d", upstream, passed, want)
			}
			time.Sleep(61 * time.Second)
		}
		f(20*ms, 20)
		s.Answered(300 * ms)
		f(300*ms, 10)
		f(20*ms, 20) // the window is empty again: idle
		s.Answered(205 * ms)
		f(205*ms, 20) // near the bound it stays
	})
}

func TestAllocs(t *testing.T) {
	s := newIdle()
	s.Answered(ms)
	s.Below(UpstreamP99, 0.2)
	got := testing.AllocsPerRun(1000, func() {
		s.Inflight(1)
		s.Below(UpstreamP99, 0.2)
		s.Below(UpstreamInflight, 50)
		s.Below(CPU, 0.9)
		s.Answered(ms)
		s.Inflight(-1)
	})
	if got >= 1 { // now and then a second begins
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkBelow(b *testing.B) {
	s := newIdle()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Below(UpstreamP99, 0.2)
		}
	})
}

func BenchmarkAnswered(b *testing.B) {
	s := newIdle()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Answered(ms)
		}
	})
}
