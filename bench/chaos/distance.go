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
		var before []*phase
		for _, of := range [][]demand{
			{{hotPath: distanceAsked / nodes}},
			{{hotPath: distanceAsked}, {}},
		} {
			warm := l.begin(of...)
			s.pause(distanceWarmUp)
			p := l.next(of...)
			s.pause(distanceLasts)
			l.settle(p)
			before = append(before, warm)
			f.steady(p, hotPath, steadiness{hotRate, distanceSlack, credit(before, p), withheld(of)})
			before = append(before, p)
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

// credit is what the bucket had left when a phase began, after all that passed in those before
// it. If Redis has decided everything, that is nothing, because more is asked for than the rate. A
// node that decides locally admits its share; what it leaves stays in the bucket, up to
// a burst, and passes later.
func credit(before []*phase, p *phase) float64 {
	local, _ := p.inside.decided(hotPath)
	var passes []span
	for _, b := range before {
		n, _ := b.inside.decided(hotPath)
		local += n
		passes = append(passes, b.paths[hotPath].passes...)
	}
	if local == 0 {
		return 0
	}
	return allowance{hotRate, hotRate}.left(passes, p.began)
}

// withheld is which part of the limit nobody admits while those who are asked decide locally: the
// shares of the others.
func withheld(of []demand) float64 {
	if len(of) == 1 { // which holds for all nodes
		return 0
	}
	return 1 - 1.0/nodes
}

// steadiness is what a phase has to admit: a rate, by so much more or less.
type steadiness struct {
	rate, slack float64
	credit      float64 // that it may admit beside
	withheld    float64 // which part of the rate is not admitted by those who decide locally
}

// steady holds what a phase admitted to a rate, and tells it beside what is due and the
// share that was decided locally.
func (f *finding) steady(p *phase, path string, want steadiness) {
	f.still = max(f.still, p.inside.still)
	due := want.rate * p.lasted().Seconds()
	n := p.passed(path)
	f.cell("%d", n)
	f.cell("%.0f", due)
	local, all := p.inside.decided(path)
	share := float64(local) / float64(max(all, 1))
	f.cell("%.1f %%", 100*share)
	least, most := due*(1-want.slack-want.withheld*share), due*(1+want.slack)+want.credit
	if float64(n) < least || float64(n) > most {
		f.miss("%d admitted, want %.0f, and %.0f to %.0f where %.0f %% are decided locally and %.0f were left before", n, due, least, most, 100*share, want.credit)
	}
	if failed := p.failures() + int64(p.inside.Errors); failed > 0 {
		f.miss("%d requests failed", failed)
	}
}

// decided is how many requests for a path were decided locally, of how many.
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
