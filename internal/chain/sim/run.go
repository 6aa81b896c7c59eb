package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// run is a Scenario that is under way.
type run struct {
	s      *Scenario
	start  time.Time
	server *server // that of the first region
	places []*place
	fleet  []atomic.Pointer[instance]
	loads  []*load
	dir    string // for copies of counters

	mu    sync.Mutex
	links []*link // under mu: of all instances that ever were

	unanswered sync.WaitGroup // requests
	work       chan request   // to goroutines that have done one before
	decided    atomic.Int64
	backlog    int64                 // sumBacklogs at the end
	told       func(decisions int64) // the progress of Run
}

// Run plays a Scenario in virtual time and returns the results. progress, unless nil, is called
// from time to time with how many decisions were made since its last call.
func Run(s Scenario, in Bubble, progress func(decisions int64)) *Report {
	s.complete()
	r := &run{s: &s, told: progress}
	began := time.Now()
	in(r.play)
	report := r.report()
	report.Took = time.Since(began)
	return report
}

// complete fills in the defaults of s.
func (s *Scenario) complete() {
	s.Nodes = max(s.Nodes, 1)
	s.Subjects = slices.Clone(s.Subjects)
	for i := range s.Subjects {
		sub := &s.Subjects[i]
		sub.Keys, sub.Cost = max(sub.Keys, 1), max(sub.Cost, 1)
		if sub.Hold == 0 {
			sub.Hold = 100 * time.Millisecond
		}
		if sub.Name == "" {
			sub.Name = sub.Versions[0].Name
		}
	}
}

// play runs the scenario, in a Bubble.
func (r *run) play() {
	r.start = time.Now()
	r.work = make(chan request)
	r.openRegions()
	r.fleet = make([]atomic.Pointer[instance], r.s.Nodes)
	for i := range r.fleet {
		r.fleet[i].Store(r.newInstance(i, true)) // as after a while
	}
	for i := range r.s.Subjects {
		r.loads = append(r.loads, newLoad(r, i))
	}
	time.Sleep(10 * time.Millisecond) // all are counted
	var faults sync.WaitGroup
	faults.Go(r.playRegionFaults)
	for _, f := range r.s.Faults {
		faults.Go(func() { r.playFault(f) })
	}
	r.press()
	faults.Wait()
	r.unanswered.Wait()
	for _, f := range r.s.Faults {
		r.sleepUntil(f.At + f.For)
	}
	time.Sleep(settle) // backlogs are paid
	r.backlog = r.sumBacklogs()
	for i := range r.fleet {
		r.fleet[i].Load().close()
	}
	r.closeRegions()
	close(r.work)
	time.Sleep(2 * time.Second) // calls that are out end
	_ = os.RemoveAll(r.dir)
}

// sumBacklogs returns how many counters live nodes still have a backlog for. A counter is summed
// once for each node that has one.
func (r *run) sumBacklogs() (sum int64) {
	for i := range r.fleet {
		sum += r.fleet[i].Load().node.Health().Backlog
	}
	return sum
}

// clock returns what the server's clock shows at a time, in ns since the run began by the nodes' clocks.
func (r *run) clock(t time.Duration) int64 {
	return r.server.clockAt(r.start.Add(t)).Sub(r.start).Nanoseconds()
}

// sleepUntil sleeps until a time since the beginning.
func (r *run) sleepUntil(t time.Duration) { time.Sleep(t - time.Since(r.start)) }

// playFault plays the part of a fault that happens to the server or to nodes. The links play the
// rest.
func (r *run) playFault(f Fault) {
	switch f.Kind {
	case Empty:
		r.sleepUntil(f.At)
		r.server.loseAll()
	case Failover:
		r.sleepUntil(f.At - f.Lag)
		if r.dir == "" {
			r.dir, _ = os.MkdirTemp("", "tidegate-sim")
		}
		err := r.server.replicate(f.At, r.dir)
		r.sleepUntil(f.At)
		if err == nil {
			err = r.server.failOver(f.At)
		}
		if err != nil {
			panic(fmt.Sprintf("sim: %v", err))
		}
	case Crash:
		r.sleepUntil(f.At)
		var ends sync.WaitGroup
		for _, i := range r.hit(f) {
			ends.Go(func() { r.fleet[i].Load().crash() })
		}
		r.sleepUntil(f.At + f.For)
		ends.Wait()
		for _, i := range r.hit(f) {
			r.fleet[i].Store(r.newInstance(i, false))
		}
	}
}

// hit returns the nodes that a fault hits.
func (r *run) hit(f Fault) (nodes []int) {
	for i := range r.s.Nodes {
		if f.hits(i) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// tick is how often requests arrive.
const tick = 500 * time.Microsecond

// press sends requests until the run is over.
func (r *run) press() {
	rnd := rand.New(rand.NewPCG(r.s.Seed, 0))
	told := int64(0)
	for n := 0; ; n++ {
		now := time.Since(r.start)
		if now >= r.s.Lasts {
			break
		}
		x := r.s.Shape.at(now, r.s.Lasts)
		for _, l := range r.loads {
			for range poisson(rnd, l.perSecond*x*tick.Seconds()) {
				l.send(rnd, now)
			}
		}
		if r.told != nil && n%1000 == 0 {
			sum := r.decided.Load()
			r.told(sum - told)
			told = sum
		}
		time.Sleep(tick)
	}
	r.unanswered.Wait()
	if r.told != nil {
		r.told(r.decided.Load() - told)
	}
}
