package client_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/client"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// apiRate is how many calls a second the API allows.
const apiRate = 50

// Processes share 50 calls a second of an API. They use it up and are hardly ever refused; when one
// is told to come back later, none of them asks earlier; when the server comes back after an
// outage, no more arrive than before.
//
// TIDEGATE_LONG=1 has twenty processes call servers of every kind, and holds them to bars: 95 % of
// the limit used, less than 1 % refused, and no more than 1.2 times the rate after an outage. On a
// machine that is too busy for its processes to be in time it fails, and says so.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of real processes")
	}
	if os.Getenv("TIDEGATE_LONG") != "1" {
		f := newProcesses(t, 5, tidegate.Spec{Algorithm: tidegate.TokenBucket})
		if u := f.measure(2 * time.Second); u.refused > 0 && u.stood < time.Second/2 {
			t.Error(u)
		}
		f.checkStop(2 * time.Second)
		f.checkOutage(time.Second)
		return
	}
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket},
		{Algorithm: tidegate.FixedWindow},
		{Algorithm: tidegate.SlidingLog},
		{Algorithm: tidegate.SlidingWindow},
	} {
		t.Run(spec.Algorithm.String(), func(t *testing.T) {
			f := newProcesses(t, 20, spec)
			f.checkUse(30 * time.Second)
			f.checkStop(4 * time.Second)
			f.checkOutage(5 * time.Second)
		})
	}
}

// processes are the instances of a fleet, and their server.
type processes struct {
	*testing.T
	server  *server
	workers int // of all instances
	limit   *tidegate.Limit
}

// newProcesses starts instances that call a server under spec, and returns when all have called.
func newProcesses(t *testing.T, instances int, spec tidegate.Spec) *processes {
	t.Helper()
	const workers = 4
	spec.Events, spec.Period = apiRate, time.Second
	redis := testdep.Redis(t)
	s := newServer(t, tidegate.New(memory.New(), tidegate.MustLimit(spec)))
	f := &processes{T: t, server: s, workers: instances * workers, limit: client.Pace(apiRate, time.Second)}
	for i := range instances {
		instance{Redis: redis.Addr, URL: "http://" + s.addr, Name: fmt.Sprint(i), Workers: workers, Spec: f.limit.Spec}.start(t)
	}
	s.await(t, "every instance has called", time.Time{}, func(all []arrival) bool {
		seen := map[string]bool{}
		for _, a := range all {
			seen[a.instance] = true
		}
		return len(seen) == instances
	})
	return f
}

// rate is how many calls a second the fleet makes at most.
func (f *processes) rate() float64 { return float64(f.limit.Events) / f.limit.Period.Seconds() }

// use is what became of the limit in a span.
type use struct {
	share           float64
	served, refused int
	most            int           // sent within a second
	stood           time.Duration // the longest standstill of a process
	lost            float64       // the share of the time for which processes stood still
	delay           time.Duration // the longest from sending a request to its decision
}

func (u use) String() string {
	return fmt.Sprintf("%.1f %% of the limit is used, %d of %d requests are refused, at most %d were sent within a second; "+
		"a process stood still for up to %s, for %.1f %% of the time, and the server decided up to %s after a request was sent",
		100*u.share, u.refused, u.served+u.refused, u.most, u.stood.Round(time.Millisecond), 100*u.lost, u.delay.Round(time.Millisecond))
}

// measure lets a span pass.
func (f *processes) measure(span time.Duration) (u use) {
	f.Helper()
	from := time.Now()
	time.Sleep(span) // the measurement
	var lost time.Duration
	instances := map[string]bool{}
	var sent []arrival
	for _, a := range f.server.since(from) {
		if a.at.After(from.Add(span)) {
			continue
		}
		if a.status == http.StatusOK {
			u.served++
		} else {
			u.refused++
		}
		instances[a.instance] = true
		u.delay = max(u.delay, a.at.Sub(a.sent))
		u.stood = max(u.stood, a.stood)
		if a.stood > f.slack() {
			lost += a.stood
		}
		a.at = a.sent
		sent = append(sent, a)
	}
	u.most = most(sent, time.Second)
	u.share = float64(u.served) / (span.Seconds() * apiRate)
	u.lost = lost.Seconds() / span.Seconds() / float64(len(instances))
	f.Log(u)
	return u
}

// slack is by how much a call may be late.
func (f *processes) slack() time.Duration { return f.limit.Period / 64 }

// checkUse holds what a fleet uses to the bars.
func (f *processes) checkUse(span time.Duration) {
	f.Helper()
	u := f.measure(span)
	switch {
	case u.share >= 0.95 && u.refused*100 < u.served+u.refused:
	case u.stood > f.slack() || u.delay > f.slack():
		f.Errorf("this machine is too busy to tell: %v", u)
	default:
		f.Error(u)
	}
}

// checkStop has one request refused for a while. Each worker may have one on its way that knows
// nothing of it.
func (f *processes) checkStop(wait time.Duration) {
	f.Helper()
	s := f.server
	s.mu.Lock()
	s.refuse = wait
	s.mu.Unlock()
	s.await(f, "a request is refused and others come again", time.Now(), func(all []arrival) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.refused.IsZero() && len(all) > 0 && all[len(all)-1].at.After(s.refused.Add(wait))
	})
	flying, early := 0, 0
	for _, a := range s.since(s.refused) {
		switch after := a.at.Sub(s.refused); {
		case after > wait || a.status != http.StatusOK:
		case a.sent.Sub(s.refused) < time.Second+a.stood: // whenever it was decided
			flying++
		default:
			early++
		}
	}
	f.Logf("after a Retry-After of %s, %d requests were on their way and %d came early", wait, flying, early)
	if early > 0 || flying > f.workers {
		f.Errorf("after a Retry-After of %s, %d requests were on their way and %d came early", wait, flying, early)
	}
}

// checkOutage kills the server for a while.
func (f *processes) checkOutage(outage time.Duration) {
	f.Helper()
	s := f.server
	s.stop()
	time.Sleep(outage)
	s.start(f)
	back := time.Now()
	var again time.Duration
	here := testdep.Standstill(func() {
		s.await(f, "the rate is back", back, func(all []arrival) bool {
			again = time.Since(back)
			recent := 0
			for _, a := range all {
				if time.Since(a.at) < 2*time.Second {
					recent++
				}
			}
			return float64(recent) >= 2*f.rate()*0.8
		})
	})
	all := s.since(back)
	stood := here
	for _, a := range all {
		stood = max(stood, a.stood)
	}
	highest := float64(most(all, time.Second))
	f.Logf("after an outage of %s the rate is back in %s, with at most %.0f requests in a second; processes stood still for up to %s",
		outage, again.Round(100*time.Millisecond), highest, stood.Round(time.Millisecond))
	if late := f.rate() * stood.Seconds(); highest > 1.2*f.rate()+late {
		f.Errorf("after an outage %.0f requests came in a second, of %.1f; %.0f of them may have been late", highest, f.rate(), late)
	}
}

// most is how many of all arrived within a span.
func most(all []arrival, span time.Duration) (most int) {
	slices.SortFunc(all, func(a, b arrival) int { return a.at.Compare(b.at) })
	for i, from := 0, 0; i < len(all); i++ {
		for all[i].at.Sub(all[from].at) > span {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
