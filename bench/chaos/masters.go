package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Each caller is on one master: what is done to another is nothing to it.
const masterRules = `version: 1
identify: { caller: "path {caller}" }
rules:
  - { name: greedy, match: "GET /greedy/{caller}", per: caller, limits: { rate: 50/second, algorithm: token_bucket }, on_store_failure: local }
  - { name: honest, match: "GET /honest/{caller}", per: caller, limits: { rate: 100/second, algorithm: token_bucket }, on_store_failure: local }
`

const (
	greedyRate = 50.0
	greedyEach = 60.0 // a second on each node
	honestEach = 10.0

	masterAhead  = 2 * time.Second
	masterStops  = 12 * time.Second
	masterBehind = 5 * time.Second
	healthySlack = 0.05
)

var masterHead = []string{"one master stopped for 12 s", "healthy: decided locally", "healthy: honest refused", "healthy: 50/s admitted", "due", "dead: decided locally", "dead: honest refused", "dead: 50/s admitted", "at most", "slowest answer, ms", "log lines of each gateway"}

// masterFault is a way to lose a master.
type masterFault struct {
	name, what string
	args       []string // of the servers
	steady     bool     // it is back before others take it for dead
	noFailover bool     // its replica must not take over
	nodes      bool     // it is the master with the list of instances
	// down reports that the whole cluster may refuse commands for a while: it was
	// configured to.
	down bool
}

var masterFaults = []masterFault{
	{
		name: "full coverage yes, back before its timeout", what: "a master stands still for 12 s and is missed by nobody but its callers",
		args: []string{"--cluster-require-full-coverage", "yes"}, steady: true, noFailover: true,
	},
	{
		name: "full coverage no, back before its timeout", what: "the master with the list of instances stands still for 12 s",
		args: []string{"--cluster-require-full-coverage", "no"}, steady: true, noFailover: true, nodes: true,
	},
	{
		name: "full coverage no, its slots uncovered", what: "a master is found dead and nobody takes over",
		args: []string{"--cluster-require-full-coverage", "no", "--cluster-replica-no-failover", "yes"}, noFailover: true, nodes: true,
	},
	{
		name: "full coverage no, its replica takes over", what: "a master is found dead, its replica takes over and it comes back as a replica",
		args: []string{"--cluster-require-full-coverage", "no"},
	},
	{
		name: "full coverage yes, its replica takes over", what: "the same; until the replica does, Redis itself refuses everybody's commands",
		args: []string{"--cluster-require-full-coverage", "yes"}, down: true,
	},
}

func masterTrials() (all []trial) {
	for _, m := range masterFaults {
		all = append(all, trial{"master stopped, " + m.name, m.what, func(ctx context.Context) (result, error) { return m.play(ctx) }})
	}
	return all
}

func (m masterFault) play(ctx context.Context) (*finding, error) {
	f := new(finding)
	site := clustered
	if m.steady {
		site = steadyCluster
	}
	c := cast{rules: []string{masterRules}, site: func(s *stage) []string { return site(s, m.args...) }}
	err := onStage(ctx, c, func(s *stage) {
		l := newLoad(s)
		callers := s.callers(l)
		dead := 0
		if m.nodes {
			dead = s.indexOf(s.holder(":nodes"))
		}
		of := demand{}
		for _, c := range callers {
			of["/greedy/"+c], of["/honest/"+c] = greedyEach, honestEach
		}
		l.begin(of)
		s.pause(masterAhead) // the bursts are used up
		printed := s.logSizes()
		var outage clusterDown
		p := l.next(of)
		s.servers[dead].Pause()
		stop := outage.watch(s, dead)
		s.pause(masterStops)
		s.servers[dead].Resume()
		s.pause(masterBehind)
		stop()
		l.settle(p)
		f.checkMasters(m, p, callers, dead, outage.lasted, s.logChangesSince(printed))
		if kept := strings.HasPrefix(s.servers[dead].Do("ROLE"), "master"); kept != m.noFailover {
			f.miss("the row is void: the master that stood still is a master afterwards: %t", kept)
		}
	})
	return f, err
}

// callers finds a caller for each master.
func (s *stage) callers(l *load) []string {
	found := make([]string, masters)
	for i, n := 0, 0; n < masters; i++ {
		name := fmt.Sprint("c", i)
		l.spend("/honest/"+name, 1)
		if at := s.indexOf(s.holder("=" + name + "}")); found[at] == "" {
			found[at] = name
			n++
		}
	}
	return found
}

func (s *stage) indexOf(r *testdep.RedisServer) int {
	for i, one := range s.servers {
		if one == r {
			return i
		}
	}
	s.Fatalf("%s is not of this stage", r.Addr)
	return -1
}

// checkMasters holds the callers of the healthy masters to Redis, and those of the dead
// one to the bounds of the fallback.
func (f *finding) checkMasters(m masterFault, p *phase, callers []string, dead int, down time.Duration, printed []changes) {
	f.still = p.inside.still
	due := greedyRate * p.lasted().Seconds()
	tenth := (greedyRate + due) / 10
	var local [2]int
	var refused, honest, admitted [2]int64
	for i, c := range callers {
		of := 0
		if i == dead {
			of = 1
		}
		for _, path := range []string{"/greedy/" + c, "/honest/" + c} {
			n, _ := p.inside.decided(path)
			local[of] += n
		}
		refused[of] += p.paths["/honest/"+c].refused.Load()
		honest[of] += p.paths["/honest/"+c].sent.Load()
		admitted[of] += p.passed("/greedy/" + c)
	}
	f.cells = []string{
		m.name, fmt.Sprint(local[0]), fmt.Sprintf("%d of %d", refused[0], honest[0]), fmt.Sprint(admitted[0]), fmt.Sprintf("%.0f", due*(masters-1)),
		fmt.Sprint(local[1]), fmt.Sprintf("%d of %d", refused[1], honest[1]), fmt.Sprint(admitted[1]), fmt.Sprintf("%.0f", due+tenth),
		tenths(p.inside.Slowest), "",
	}
	if m.down {
		// What Redis refuses, the fallback decides: for as long as it does so, and until the
		// circuit has closed again.
		f.cells[1] += fmt.Sprintf(" (refused by Redis for %.1f s)", down.Seconds())
		if most := (masters - 1) * nodes * (greedyEach + honestEach) * (down.Seconds() + 1.5); float64(local[0]) > most {
			f.miss("%d requests of healthy masters' callers were decided locally, want at most %.0f", local[0], most)
		}
	} else if local[0] > 0 {
		f.miss("%d requests of healthy masters' callers were decided locally", local[0])
	}
	if refused[0]*100 > honest[0] {
		f.miss("%d of %d honest requests to healthy masters were refused", refused[0], honest[0])
	}
	healthy := due * (masters - 1)
	if off := float64(admitted[0]) - healthy; off > healthySlack*healthy || off < -healthySlack*healthy {
		f.miss("%d admitted at 50/s by each of the healthy masters, want %.0f", admitted[0], healthy)
	}
	if n := float64(admitted[1]); n > due+tenth || n < due-tenth {
		f.miss("%.0f admitted at 50/s by the dead master, want %.0f to %.0f", n, due-tenth, due+tenth)
	}
	if failed := p.failures() + int64(p.inside.Errors); failed > 0 {
		f.miss("%d requests failed", failed)
	}
	if awake := p.inside.awake; awake > deadline+grace {
		f.miss("the slowest answer took %s and the oversleep of its process, want at most %s + %s", ms(awake), ms(deadline), ms(grace))
	}
	var lines []string
	for i, c := range printed {
		lines = append(lines, fmt.Sprint(c.lines()))
		for what, times := range c {
			if times > 1 { // it begins once, and is over once
				f.miss("gateway %d wrote %d times: %s", i+1, times, what)
			}
		}
	}
	f.cells[len(f.cells)-1] = strings.Join(lines, ", ")
}

// logSizes returns how much each node has written.
func (s *stage) logSizes() (all []int64) {
	for _, n := range s.fleet {
		all = append(all, n.wrote())
	}
	return all
}

// logChangesSince returns what each node has written about its store since.
func (s *stage) logChangesSince(from []int64) (all []changes) {
	for i, n := range s.fleet {
		all = append(all, n.logChanges(from[i]))
	}
	return all
}

// clusterDown is how long a healthy master said that the cluster is down.
type clusterDown struct{ lasted time.Duration }

// watch asks the first healthy master until it is told to stop.
func (c *clusterDown) watch(s *stage, dead int) (stop func()) {
	at := s.servers[(dead+1)%masters]
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		const look = 20 * time.Millisecond
		for last := time.Now(); ctx.Err() == nil; time.Sleep(look) {
			now := time.Now()
			if printed, err := at.Try("CLUSTER", "INFO"); err == nil && strings.Contains(printed, "cluster_state:fail") {
				c.lasted += now.Sub(last)
			}
			last = now
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
