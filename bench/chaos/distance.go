package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

// distances are the round trips that are added to those over loopback.
var distances = []time.Duration{1, 5, 10, 12, 13, 14, 15, 16, 18, 20} // ms

var distanceHead = []string{"added round trip", "measured: half, 99 %, ms", "admitted, even", "due", "decided locally", "admitted, on one node", "due", "decided locally", "slowest answer, ms", "degraded nodes"}

const (
	distanceWarmUp = 2 * time.Second // the burst is used up by then
	distanceLasts  = 6 * time.Second
	distanceSlack  = 0.05
	distanceAsked  = 360.0 // a second, of all nodes together
)

func distanceTrials() (all []trial) {
	for _, d := range distances {
		d *= time.Millisecond
		all = append(all, trial{
			fmt.Sprintf("%s away", d), fmt.Sprintf("every answer of Redis comes %s later, 100/s asked for %.0f times a second", d, distanceAsked),
			func(ctx context.Context) (result, error) { return playDistance(ctx, d) },
		})
	}
	return all
}

func playDistance(ctx context.Context, d time.Duration) (*finding, error) {
	f := &finding{bears: deadline - d}
	f.cells = []string{d.String(), ""}
	c := cast{site: far(d), rules: []string{rulesText}}
	err := onStage(ctx, c, func(s *stage) {
		l := newLoad(s)
		w, trips := watchHealth(s), pingThrough(s)
		var slowest time.Duration
		for _, of := range [][]demand{
			{{hotPath: distanceAsked / nodes}},
			{{hotPath: distanceAsked}, {}},
		} {
			l.begin(of...)
			s.pause(distanceWarmUp)
			p := l.next(of...)
			s.pause(distanceLasts)
			l.settle(p)
			f.steady(p, hotPath, hotRate, distanceSlack)
			slowest = max(slowest, p.inside.Slowest)
			if p.inside.awake > deadline+grace {
				f.miss("the slowest answer took %s and the oversleep of its process, want at most %s + %s", ms(p.inside.awake), ms(deadline), ms(grace))
			}
		}
		half, most := trips()
		f.cells[1] = tenths(half) + ", " + tenths(most)
		f.cell("%s", tenths(slowest))
		affected, _, _ := w.end(time.Now())
		f.cell("%d", affected)
	})
	return f, err
}

// steady holds what a phase admitted to a rate, and tells it beside what is due and the
// share that was decided locally.
func (f *finding) steady(p *phase, path string, rate, slack float64) {
	f.still = max(f.still, p.inside.still)
	due := rate * p.lasted().Seconds()
	n := p.passed(path)
	f.cell("%d", n)
	f.cell("%.0f", due)
	local, all := p.inside.decided(path)
	f.cell("%.1f %%", 100*float64(local)/float64(max(all, 1)))
	if off := float64(n) - due; off > slack*due || off < -slack*due {
		f.miss("%d admitted, want %.0f, give or take %.0f %%", n, due, 100*slack)
	}
	if failed := p.failures() + int64(p.inside.Errors); failed > 0 {
		f.miss("%d requests failed", failed)
	}
}

// decided returns how many requests for a path were decided locally, of how many.
func (f *figures) decided(path string) (local, all int) {
	for by, n := range f.By[path] {
		all += n
		if by == "local" {
			local += n
		}
	}
	return local, all
}

// far is one Redis whose answers come so late.
func far(d time.Duration) func(*stage) []string {
	return func(s *stage) []string {
		urls := proxied(s)
		for _, p := range s.proxies {
			p.late = d
			s.must(p.set(delayed))
		}
		return urls
	}
}

// pingThrough measures the round trip through the first proxy until it is asked for the
// one that half of all, and that 99 in 100 were within.
func pingThrough(s *stage) (trips func() (half, most time.Duration)) {
	conn, err := net.Dial("tcp", s.proxies[0].address)
	s.must(err)
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	all := make(chan []time.Duration, 1)
	go func() {
		var took []time.Duration
		defer func() { all <- took }()
		for in := bufio.NewReader(conn); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			start := time.Now()
			if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
				return
			}
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			took = append(took, time.Since(start))
		}
	}()
	return func() (half, most time.Duration) {
		cancel()
		took := <-all
		if len(took) == 0 {
			s.Fatal("nothing came through the proxy")
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)*99/100]
	}
}
