package node

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// fleet is nodes that share a server and are asked for one key all the time. It
// lives in a synctest bubble.
type fleet struct {
	*testing.T
	server   common
	backends []*faulty
	nodes    []*Node
	check    tidegate.Check
	start    time.Time

	stop    chan struct{}
	workers sync.WaitGroup

	mu       sync.Mutex
	admitted []time.Duration // when; under mu
	slowest  time.Duration   // under mu
	failed   error           // under mu
}

func newFleet(t *testing.T, nodes int, l *tidegate.Limit) *fleet {
	f := &fleet{T: t, check: tidegate.Check{Key: "k", Limit: l, Cost: 1}, start: time.Now(), stop: make(chan struct{})}
	for range nodes {
		backend := &faulty{server: &f.server}
		f.backends = append(f.backends, backend)
		f.nodes = append(f.nodes, newNode(backend, forFew(Options{Instances: func() int { return nodes }, DenyEntries: -1})))
	}
	return f
}

// newWiredFleet is one whose nodes are wired as those of tidegate serve: refusals are
// remembered.
func newWiredFleet(t *testing.T, nodes int, l *tidegate.Limit) *fleet {
	f := newFleet(t, nodes, l)
	for i, backend := range f.backends {
		_ = f.nodes[i].Close()
		f.nodes[i] = newNode(backend, forFew(Options{Instances: func() int { return nodes }}))
	}
	return f
}

type fleetMaker func(t *testing.T, nodes int, l *tidegate.Limit) *fleet

// wirings are both kinds.
var wirings = map[string]fleetMaker{"alone": newFleet, "wired": newWiredFleet}

// press starts workers on every node that ask once in every.
func (f *fleet) press(workers int, every time.Duration) {
	for _, g := range f.nodes {
		for i := range workers {
			f.workers.Go(func() {
				time.Sleep(every * time.Duration(i) / time.Duration(workers))
				for {
					select {
					case <-f.stop:
						return
					default:
					}
					f.ask(g)
					time.Sleep(every)
				}
			})
		}
	}
}

func (f *fleet) ask(g *Node) {
	began := time.Now()
	d, err := g.Take(context.Background(), []tidegate.Check{f.check}, 1)
	took := time.Since(began)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slowest = max(f.slowest, took)
	if err == nil {
		err = d.Err
	}
	if err != nil {
		f.failed = err
	}
	if d.OK {
		f.admitted = append(f.admitted, time.Since(f.start))
	}
}

// each does something to every backend.
func (f *fleet) each(do func(*faulty)) {
	for _, w := range f.backends {
		do(w)
	}
}

// end lets everything go, and checks what always holds: nobody waited for longer than
// the deadline or got an error, all is well again, and no goroutine is left.
func (f *fleet) end() {
	f.Helper()
	close(f.stop)
	f.workers.Wait()
	f.each(func(w *faulty) { w.set(none) })
	time.Sleep(5 * time.Second)
	if f.slowest > DefaultDeadline {
		f.Errorf("the slowest answer took %s, want at most %s", f.slowest, DefaultDeadline)
	}
	if f.failed != nil {
		f.Errorf("a request failed: %v", f.failed)
	}
	for i, g := range f.nodes {
		if h := g.Health(); h.State != OK || h.InFlight != 0 || h.Backlog != 0 {
			f.Errorf("node %d: %+v", i, h)
		}
		_ = g.Close()
	}
	wantNoGoroutine(f.T)
}

// wantNoGoroutine looks for goroutines of this package, when all that have something to do have done
// it.
func wantNoGoroutine(t *testing.T) {
	t.Helper()
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, f := range []string{"node.(*sendQueue).work", "node.(*Node).workRest", "node.(*server).callInnerBy.func2", "node.(*server).repay"} {
		if n := bytes.Count(stacks, []byte(f+"(")); n > 0 {
			t.Errorf("%d goroutines in %s", n, f)
		}
	}
}

// between is how many were admitted in a stretch of time.
func (f *fleet) between(from, to time.Duration) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.admitted {
		if from <= at && at < to {
			n++
		}
	}
	return n
}

// want compares a number admitted with what is due, by a tenth of what bounds it.
func (f *fleet) want(what string, got, due, bound int) {
	f.Helper()
	f.Logf("%s: %d admitted, %d are due", what, got, due)
	if got > due+bound/10 || got < due-bound/10 {
		f.Errorf("%s: %d admitted, want %d ± %d", what, got, due, bound/10)
	}
}
