package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

const upgradeRules = `version: 1
identify: { caller: "path {caller}" }
rules:
  - { name: hot, match: GET /hot, per: everyone, limits: { rate: 100/second, algorithm: token_bucket }, on_store_failure: local }
  - { name: quota, match: "GET /quota/{caller}", per: caller, limits: 10/day, on_store_failure: local }
  - { name: strict, match: "GET /strict/{caller}", per: caller, limits: 5/hour, block: 15m, on_store_failure: local }
`

const (
	usedPath    = "/quota/used"     // used up before the outage
	blockedPath = "/strict/blocked" // blocked before the outage
	freshPath   = "/quota/fresh"    // asked for during the outage alone

	quotaMax  = 10
	strictMax = 5
	upgrades  = 3 // of each node
)

var upgradeHead = []string{"outage", "hand-overs", "quota used up: admitted again", "blocked: admitted again", "fresh quota of 10", "100/s admitted", "at most", "5xx or no answer", "slowest, as clients see it, ms"}

func upgradeTrials() []trial {
	f := func(name, what string, fault, mend func(*stage)) trial {
		return trial{name, what, func(ctx context.Context) (result, error) { return playUpgrades(ctx, name, fault, mend) }}
	}
	return []trial{
		f("hand-over while Redis is frozen", "every gateway is replaced three times (SIGUSR2) while Redis stands still",
			func(s *stage) { s.servers[0].Pause() }, func(s *stage) { s.servers[0].Resume() }),
		f("hand-over while Redis is gone", "every gateway is replaced three times (SIGUSR2) while Redis is killed",
			func(s *stage) { s.servers[0].Kill() }, func(s *stage) { s.servers[0].Start() }),
	}
}

func playUpgrades(ctx context.Context, name string, fault, mend func(*stage)) (*finding, error) {
	f := new(finding)
	err := onStage(ctx, cast{site: single(onDisk...), rules: []string{upgradeRules}}, func(s *stage) {
		l := newLoad(s)
		l.phase.Store(newPhase(usedPath, blockedPath, freshPath))
		used, blocked := l.each(usedPath, quotaMax), l.each(blockedPath, strictMax+1)
		if used != quotaMax || blocked != strictMax {
			s.Fatalf("%d of %d and %d of %d pass before the outage", used, quotaMax, blocked, strictMax)
		}
		l.begin(demand{hotPath: hotEach})
		s.pause(time.Second) // the burst is used up
		w := watchHealth(s)
		p := l.next(demand{hotPath: hotEach, usedPath: 0, blockedPath: 0, freshPath: 0})
		fault(s)
		w.awaitIll()
		fresh := l.each(freshPath, quotaMax)
		used, blocked = 0, 0
		for range upgrades {
			for _, n := range s.fleet {
				n.upgrade(s)
			}
			used += l.each(usedPath, 3)
			blocked += l.each(blockedPath, 3)
			fresh += l.each(freshPath, 3)
		}
		mended := time.Now()
		mend(s)
		recovery := w.awaitRecovery(mended)
		s.pause(time.Second)
		used += l.each(usedPath, 3)
		blocked += l.each(blockedPath, 3)
		l.settle(p)
		w.end(mended)
		f.checkUpgrades(name, p, used, blocked, fresh, recovery)
	})
	return f, err
}

func (f *finding) checkUpgrades(name string, p *phase, used, blocked, fresh int, recovery time.Duration) {
	f.still = p.inside.still
	due := hotRate * p.lasted().Seconds()
	most := due + (hotRate+due)/10
	failed, n := p.failures()+int64(p.inside.Errors), p.passed(hotPath)
	f.cells = []string{
		name, fmt.Sprint(upgrades * nodes), fmt.Sprint(used), fmt.Sprint(blocked), fmt.Sprint(fresh), fmt.Sprint(n), fmt.Sprintf("%.0f", most),
		fmt.Sprint(failed), tenths(time.Duration(p.slowest.Load())),
	}
	if used > 0 {
		f.miss("%d admitted of a quota that was used up", used)
	}
	if blocked > 0 {
		f.miss("%d admitted of who is blocked", blocked)
	}
	if fresh > quotaMax || fresh < quotaMax/nodes*nodes {
		f.miss("%d admitted of a fresh quota of %d", fresh, quotaMax)
	}
	if float64(n) > most || float64(n) < due-(hotRate+due)/10 {
		f.miss("%d admitted at 100/s, want %.0f to %.0f", n, due-(hotRate+due)/10, most)
	}
	if failed > 0 {
		f.miss("%d requests failed", failed)
	}
	if recovery > mostRecovery {
		f.miss("well again after %s, want at most %s", ms(recovery), ms(mostRecovery))
	}
}

// each asks every node so often for a path, and returns how many pass.
func (l *load) each(path string, times int) (passed int) {
	for range times {
		for _, n := range l.s.fleet {
			if l.ask(n, path) {
				passed++
			}
		}
	}
	return passed
}

// upgrade replaces the process of a node by a successor, and returns when that has taken
// over and the predecessor has left.
func (n *node) upgrade(s *stage) {
	was := n.process.Pid
	s.must(n.process.Signal(syscall.SIGUSR2))
	for end := time.Now().Add(20 * time.Second); ; s.pause(20 * time.Millisecond) {
		f, err := n.figures(s.ctx, false)
		if err == nil && f.PID != was {
			n.process, err = os.FindProcess(f.PID)
			s.must(err)
			return
		}
		if time.Now().After(end) {
			s.Fatal(n.failed("no successor took over"))
		}
	}
}

// awaitIll waits until all nodes say that they are not well.
func (w *healthWatch) awaitIll() {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); w.s.pause(10 * time.Millisecond) {
		w.mu.Lock()
		ill := 0
		for _, n := range w.nodes {
			if n.isIll {
				ill++
			}
		}
		w.mu.Unlock()
		if ill == len(w.nodes) {
			return
		}
	}
	w.s.Fatalf("the nodes do not notice the outage")
}
