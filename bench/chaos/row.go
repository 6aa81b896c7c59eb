package main

import (
	"cmp"
	"context"
	"time"
)

// row is one fault and what is expected of it.
type row struct {
	name string
	what string
	site func(*stage) []string
	// fault breaks it, and returns after about so long; mend repairs it.
	fault func(*stage, time.Duration)
	mend  func(*stage)
	lasts time.Duration // 0 means the usual time

	rules    string  // other than rulesText, if not ""
	heals    bool    // by itself, while the fault lasts
	affected int     // how many nodes must find out
	maybe    bool    // they may find out or not: it is about single calls
	partial  bool    // it is about one rule: the others notice nothing
	over     float64 // part of the limits that may pass beyond, as k/N when k of N nodes are cut off
	bursts   float64 // that may pass beyond, per key, when the counters are lost
}

const (
	usually  = 8 * time.Second
	ahead    = 3 * time.Second // before the fault
	behind   = 5 * time.Second // after it
	hotEach  = 120.0           // a second on each node
	hourEach = 25.0
	fewEach  = 5.0
)

var (
	calmRates  = demand{hotPath: hotEach, openPath: fewEach, closedPath: fewEach}
	faultRates = demand{hotPath: hotEach, hourPath: hourEach, openPath: fewEach, closedPath: fewEach}
)

// run plays the row.
func (r row) run(ctx context.Context) (*outcome, error) {
	o := &outcome{row: r}
	c := cast{site: r.site, rules: []string{cmp.Or(r.rules, rulesText)}}
	if err := onStage(ctx, c, func(s *stage) { r.play(s, o) }); err != nil {
		return nil, err
	}
	o.check()
	return o, nil
}

func (r row) play(s *stage, o *outcome) {
	l := newLoad(s)
	l.spend(hourPath, hourMax/2)
	o.memory[0] = l.rest(nil)
	o.before = l.begin(calmRates)
	s.pause(ahead)
	l.end(o.before)

	o.during = l.begin(faultRates)
	w := watchHealth(s)
	lasts := r.lasts
	if lasts == 0 {
		lasts = usually
	}
	r.fault(s, lasts)
	l.end(o.during)
	if r.heals {
		o.recovery = w.recovered(o.during.began)
	}

	o.after = l.begin(faultRates)
	if !r.heals {
		mended := time.Now()
		r.mend(s)
		o.recovery = w.awaitRecovery(mended)
	}
	s.pause(behind - time.Since(o.after.began))
	l.end(o.after)
	o.affected, o.noticed, o.why = w.end(o.during.began)
	o.memory[1] = l.rest(&o.memory[0])
}

// rest lets everything come to rest and takes stock: the worst of all nodes. It waits
// for a while for things to be as they were.
func (l *load) rest(was *figures) (now figures) {
	l.client.CloseIdleConnections()
	l.s.upstream.hangUp()
	for end := time.Now().Add(5 * time.Second); ; {
		l.s.pause(500 * time.Millisecond)
		now = figures{}
		for _, n := range l.s.fleet {
			f, err := n.figures(l.s.ctx, true)
			l.s.must(err)
			now.Goroutines = max(now.Goroutines, f.Goroutines)
			now.Heap = max(now.Heap, f.Heap)
			now.RSS = max(now.RSS, f.RSS)
		}
		if was == nil || len(leftBehind(was, &now)) == 0 || time.Now().After(end) {
			return now
		}
	}
}
