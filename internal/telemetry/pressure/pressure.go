// Package pressure measures the signals of elastic limits, and those that requests
// are shed by. An elastic limit has two steps and nothing between: while the signal is
// below its bound the ceiling decides, otherwise the nominal limit. This package also prevents flapping: values are
// averages over seconds, and what was decided stays while the value is near the bound, and
// for at least a second.
//
// It has no goroutine. The calls that ask for a value measure it, each value at
// most at a certain interval.
//
// Start with [New], report requests by Inflight, Unanswered, Serving and Answered, and hand it to
// rules.Config.
package pressure

import (
	"io/fs"
	"os"
	"sync/atomic"
	"time"
)

// The signals, as rule files name them.
const (
	UpstreamP99      = "upstream_p99"      // seconds
	UpstreamInflight = "upstream_inflight" // requests
	Inflight         = "inflight"          // requests
	CPU              = "cpu"               // share of 1
	Memory           = "memory"            // share of 1
	Load             = "load"              // as pushed
)

// Names are all the signals there are.
var Names = []string{UpstreamP99, UpstreamInflight, Inflight, CPU, Memory, Load}

// Signals implements rules.Signals, rules.Steady and rules.Recent. Use [New].
type Signals struct {
	start       time.Time // all times count from here, by the monotonic clock
	latency     latency
	recent      measured // the same over a shorter time
	inflight    inflight // at the upstream
	unanswered  unanswered
	serving     serving
	cpu         cpu
	memory      memoryUse
	load        atomic.Pointer[pushed]
	comparators comparators
}

// New returns Signals of an idle upstream on this machine.
func New() *Signals { return open(os.DirFS("/"), processTime) }

func open(root fs.FS, process func() (time.Duration, bool)) *Signals {
	s := &Signals{start: time.Now(), cpu: cpu{root: root, process: process}, memory: memoryUse{root: root}}
	s.cpu.last = s.cpu.look(0)
	return s
}

func (s *Signals) now() time.Duration { return time.Since(s.start) }

// Inflight adds delta to the number of requests at the upstream.
func (s *Signals) Inflight(delta int) { s.inflight.count.Add(int64(delta)) }

// Unanswered adds delta to the number of requests at the upstream that wait for the beginning of its
// answer.
func (s *Signals) Unanswered(delta int) { s.unanswered.add(delta, s.now()) }

// Serving sets the function that returns how many requests this process is busy with.
func (s *Signals) Serving(count func() int64) { s.serving.count.Store(&count) }

// Answered records how long the upstream took to begin its answer, or to fail.
func (s *Signals) Answered(took time.Duration) { s.latency.window.record(took, s.now()) }

// GivenUp records that a client left before the upstream began its answer, after it had waited for
// took. The upstream takes longer than that. Waits of at least half the p99 are counted like answers:
// if all clients of a slow upstream leave, there are no answers to count. A client that leaves early
// says nothing about the upstream.
func (s *Signals) GivenUp(took time.Duration) {
	now := s.now()
	if took.Seconds() >= p99(&s.recent, &s.latency.window, recentSlots, &s.unanswered, now)/2 {
		s.latency.window.record(took, now)
	}
}

// Signal returns the value of a signal; ok is false while the value is unknown.
func (s *Signals) Signal(name string) (value float64, ok bool) {
	return s.signal(name, s.now())
}

func (s *Signals) signal(name string, now time.Duration) (value float64, ok bool) {
	switch name {
	case UpstreamP99:
		return s.latency.p99(&s.unanswered, now), true
	case UpstreamInflight:
		return s.inflight.average(now), true
	case Inflight:
		return s.serving.average(now)
	case CPU:
		return s.cpu.share(now)
	case Memory:
		return s.memory.share(now)
	case Load:
		return s.pushed(now)
	}
	return 0, false
}

// Recent is like Signal, except that the p99 is that of the last three seconds: whatever sheds requests
// by a signal has to see the effect soon.
func (s *Signals) Recent(name string) (value float64, ok bool) {
	now := s.now()
	if name == UpstreamP99 {
		return p99(&s.recent, &s.latency.window, recentSlots, &s.unanswered, now), true
	}
	return s.signal(name, now)
}

// Below reports whether a signal is below a threshold, with hysteresis: see the package comment. An
// unknown signal is not below.
func (s *Signals) Below(name string, threshold float64) bool {
	now := s.now()
	value, ok := s.signal(name, now)
	return s.comparators.step(name, threshold, value, ok, now)
}
