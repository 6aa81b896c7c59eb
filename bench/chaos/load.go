package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tally is what became of requests.
type tally struct {
	sent, passed, refused, failed, denied atomic.Int64

	mu     sync.Mutex
	passes []span // under mu: when each was sent and answered that passed
}

// phase is a stretch of time: its requests are those that were sent in it.
type phase struct {
	began, ended time.Time
	paths        map[string]*tally
	slowest      atomic.Int64 // as a client sees it, over loopback
	inside       figures      // of the probes, the worst of all nodes
}

func newPhase(more ...string) *phase {
	p := &phase{paths: map[string]*tally{}}
	for _, path := range append(more, hotPath, hourPath, openPath, closedPath) {
		p.paths[path] = new(tally)
	}
	return p
}

func (p *phase) lasted() time.Duration { return p.ended.Sub(p.began) }

func (p *phase) sent() (n int64) {
	for _, t := range p.paths {
		n += t.sent.Load()
	}
	return n
}

// failures are requests without an answer, or with an error that nobody asked for.
func (p *phase) failures() (n int64) {
	for _, t := range p.paths {
		n += t.failed.Load()
	}
	return n
}

// load asks all nodes, in an open loop: requests come when they come, however long the
// answers take.
type load struct {
	s       *stage
	client  *http.Client
	phase   atomic.Pointer[phase]
	stop    context.CancelFunc
	streams sync.WaitGroup
	flying  sync.WaitGroup
	places  chan struct{} // bounds how many are under way
}

func newLoad(s *stage) *load {
	return &load{
		s: s, places: make(chan struct{}, 512),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}},
	}
}

// ask sends one request and counts it.
func (l *load) ask(n *node, path string) (passed bool) {
	p := l.phase.Load()
	t := p.paths[path]
	t.sent.Add(1)
	began := time.Now()
	res, err := l.client.Get(n.gateway + path)
	if err != nil {
		t.failed.Add(1)
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	ended := time.Now()
	took := int64(ended.Sub(began))
	for was := p.slowest.Load(); took > was && !p.slowest.CompareAndSwap(was, took); was = p.slowest.Load() {
	}
	switch {
	case res.StatusCode == http.StatusOK:
		t.pass(span{began, ended})
	case res.StatusCode == http.StatusTooManyRequests:
		t.refused.Add(1)
	case res.StatusCode == http.StatusServiceUnavailable && strings.HasPrefix(path, closedPath):
		t.denied.Add(1) // as the rule says
	default:
		t.failed.Add(1)
	}
	return res.StatusCode == http.StatusOK
}

func (t *tally) pass(when span) {
	t.passed.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passes = append(t.passes, when)
}

// spend has n requests pass, from one node after the other, and is counted nowhere else.
func (l *load) spend(path string, n int) {
	l.phase.Store(newPhase(path))
	for i := range n {
		if !l.ask(l.s.fleet[i%len(l.s.fleet)], path) {
			l.s.Fatalf("request %d to %s does not pass before the fault", i+1, path)
		}
	}
}

// demand is how often a second each path is asked for.
type demand map[string]float64

// begin starts a phase, in which each node is asked as its demand says; that of the last
// holds for more nodes.
func (l *load) begin(of ...demand) *phase {
	ctx, stop := context.WithCancel(l.s.ctx)
	l.stop = stop
	p := l.next(of...)
	for i, n := range l.s.fleet {
		for path, rate := range of[min(i, len(of)-1)] {
			l.streams.Go(func() { l.stream(ctx, n, path, rate) })
		}
	}
	return p
}

// next begins another phase of the demand that is under way.
func (l *load) next(of ...demand) *phase {
	p := newPhase()
	for _, d := range of {
		for path := range d {
			p.paths[path] = new(tally)
		}
	}
	l.worst(new(figures)) // forget what was before
	p.began = time.Now()
	if was := l.phase.Swap(p); was != nil && was.ended.IsZero() {
		was.ended = p.began
	}
	return p
}

// end ends the phase and takes what the probes say of it.
func (l *load) end(p *phase) {
	p.ended = time.Now()
	l.stop()
	l.streams.Wait()
	l.flying.Wait()
	l.worst(&p.inside)
}

// settle is end, and waits for the last lines of the access logs: for rows that count
// them.
func (l *load) settle(p *phase) {
	p.ended = time.Now()
	l.stop()
	l.streams.Wait()
	l.flying.Wait()
	l.s.pause(150 * time.Millisecond)
	l.worst(&p.inside)
}

// worst is the worst that the probes of all nodes have seen. Each process has a bar of
// its own, as each oversleeps for itself.
func (l *load) worst(of *figures) {
	of.still = max(of.still, l.s.own.take().Oversleep)
	for _, n := range l.s.fleet {
		f, err := n.figures(l.s.ctx, false)
		l.s.must(err)
		of.Requests += f.Requests
		of.Errors += f.Errors
		of.awake = max(of.awake, f.Slowest-f.Oversleep)
		of.still = max(of.still, f.Oversleep)
		for path, by := range f.By {
			for who, n := range by {
				of.count(path, who, n)
			}
		}
		if f.Slowest > of.Slowest {
			of.Slowest, of.Oversleep = f.Slowest, f.Oversleep
		}
	}
}

func (l *load) stream(ctx context.Context, n *node, path string, rate float64) {
	began, sent := time.Now(), 0
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for due := int(time.Since(began).Seconds() * rate); sent < due; sent++ {
			select {
			case l.places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			l.flying.Go(func() {
				l.ask(n, path)
				<-l.places
			})
		}
	}
}
