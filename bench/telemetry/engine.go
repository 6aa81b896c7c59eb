package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const users = 1 << 14

// typical is the site whose ratio is told in the last line: the request of bench-rules. What it
// costs to watch a decision hardly depends on the decision, so that the ratio is worse for the
// cheapest one there is.
const typical = 1

// sites are rule files, and the path that is asked for.
var sites = []struct{ name, path, text string }{
	{"one rule, one limit", "/api/orders/4711", `version: 1
identify: { user: header X-User }
rules:
  - { name: api, match: /api/, per: user, limits: { rate: 1000000/day, algorithm: token_bucket } }
`},
	{"three rules, four limits", "/api/orders/4711", `version: 1
identify: { user: header X-User }
rules:
  - { name: site, per: user, limits: { rate: 100000/second, burst: 1000000, algorithm: token_bucket } }
  - { name: api, match: /api/, per: user, limits: [1000000/hour, 10000000/day] }
  - { name: orders, match: "POST /api/orders/{id}", per: [user, route], limits: 200000/second }
`},
}

// engine is a Gate as tidegate serve has it.
type engine struct {
	gate  *tidegate.Gate
	close func()
}

// newEngine returns a Gate that is watched as tidegate serve does, or not at all.
func newEngine(text string, watched bool) (*engine, error) {
	set, err := rules.Parse("bench.yaml", []byte(text), rules.Config{})
	if err != nil {
		return nil, err
	}
	live := rules.NewLive(set)
	if !watched {
		return &engine{gate: tidegate.NewGate(live, queue.New(chain.Adapt(memory.New()))), close: func() {}}, nil
	}
	metrics := telemetry.New(prometheus.NewRegistry(), "memory")
	lists := offenders.New(offenders.Options{})
	metrics.Tell(lists)
	metrics.SetRules(set.Rules(), set.Limits())
	lists.SetRules(set.Rules())
	store := queue.New(chain.Adapt(memory.New())).Time(metrics.Takes())
	gate := tidegate.NewGate(metrics.Matcher(live), store).Observe(metrics.Observe)
	return &engine{gate: gate, close: lists.Close}, nil
}

// measureEngine compares Gates with everything on and with nothing on, on all cores.
func measureEngine(ctx context.Context, rounds int, heat time.Duration, s *summary) error {
	t := report.Table{
		Title: "Decisions of a Gate, watched and not",
		Note: fmt.Sprintf("%d goroutines decide about %d users in memory; medians of %d rounds. Decisions per second of CPU time, which stands still while a neighbour has the core.",
			runtime.GOMAXPROCS(0), users, rounds),
		Head: []string{"", "off, ns", "on, ns", "decisions/s on against off"},
	}
	for i, site := range sites {
		var off, on []float64 // decisions per second of CPU time, by round
		for round := range rounds {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if round%5 == 0 {
				rig.Progress("engine, %s: round %d of %d", site.name, round, rounds)
			}
			rates, err := playRound(site.text, site.path, heat)
			if err != nil {
				return err
			}
			off, on = append(off, rates[0]), append(on, rates[1])
		}
		ratio := report.MedianRatio(on, off)
		if i == typical {
			s.engine = ratio
		}
		t.Add(site.name, fmt.Sprintf("%.0f", 1e9/report.Median(off)), fmt.Sprintf("%.0f", 1e9/report.Median(on)), fmt.Sprintf("%.3fx", ratio))
	}
	s.tables = append(s.tables, t)
	return nil
}

// playRound lets a Gate that is not watched and one that is take turns for a heat each, and returns
// the rates of both. Each round has new ones: where the counters lie in memory is worth 2 %.
func playRound(text, path string, heat time.Duration) (rates [2]float64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var both [2]*engine
	for i := range both {
		if both[i], err = newEngine(text, i == 1); err != nil {
			return rates, err
		}
		defer both[i].close()
	}
	runtime.GC()
	if _, err := decide(both, path, heat/4); err != nil { // keys are new, and sampling adapts
		return rates, err
	}
	return decide(both, path, heat)
}

// turn is how long a Gate decides before it is the other's turn, on all cores at once. It is so short
// that neighbours, the clock of the processor and the sampling of the lists see one steady load.
const turn = 5 * time.Millisecond

// decide decides for a heat with each Gate on every core, and returns how many decisions each makes
// in a second of CPU time.
func decide(both [2]*engine, path string, heat time.Duration) (rates [2]float64, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var decisions [2]int
	var took [2]time.Duration
	begun := time.Now()
	for core := range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var own [2]int
			var cpu [2]time.Duration
			wrong := 0
			r := new(tidegate.Request)
			who := caller{user: []byte("user-00000000")}
			for last := process.CPUTime(); ; {
				since := time.Since(begun)
				if since >= 2*heat {
					break
				}
				which := int(since/turn) % 2
				const block = 128
				for range block {
					own[which]++
					who.be(own[which]*7919 + core*4099)
					r.Reset()
					r.Method, r.Host, r.Path, r.Values = "POST", "shop.example.com", path, &who
					if d := both[which].gate.Decide(context.Background(), r); !d.OK || d.Limit == nil {
						wrong++
					}
				}
				now := process.CPUTime()
				cpu[which] += now - last
				last = now
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range own {
				decisions[i] += own[i]
				took[i] += cpu[i]
			}
			if wrong > 0 {
				err = fmt.Errorf("%d decisions were not the expected one, so that the comparison is void", wrong)
			}
		})
	}
	all.Wait()
	for i := range rates {
		rates[i] = float64(decisions[i]) / took[i].Seconds()
	}
	return rates, err
}
