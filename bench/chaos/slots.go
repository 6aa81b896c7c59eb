package main

import (
	"context"
	"fmt"
	"time"
)

const slotRules = `version: 1
rules:
  - { name: slots, match: GET /slow, per: everyone, concurrency: { slots: 20, lease: 30s }, on_store_failure: local }
`

const (
	slowPath  = "/slow"
	slowTakes = 100 * time.Millisecond // a request at the upstream
	slotsAll  = 20
	slotsEach = 30.0 // a second of each node, so that 9 slots are in use on average

	slotsBefore = 2 * time.Second
	slotsSlow   = 5 * time.Second
	slotsReturn = 2 * time.Second // that recovery may take
	slotsAfter  = 6 * time.Second
)

var slotHead = []string{"answers come late by", "asked before, while and after", "refused before, while and after", "slots in use in Redis a second after the last request"}

func slotTrials() (all []trial) {
	for _, d := range []time.Duration{30, 150} {
		d *= time.Millisecond
		all = append(all, trial{
			fmt.Sprintf("slots, %s late", d), fmt.Sprintf("9 of 20 slots are in use, and for %s every answer of Redis comes %s late", slotsSlow, d),
			func(ctx context.Context) (result, error) { return playSlots(ctx, d) },
		})
	}
	return all
}

func playSlots(ctx context.Context, late time.Duration) (*finding, error) {
	f := new(finding)
	err := onStage(ctx, cast{site: proxied, rules: []string{slotRules}}, func(s *stage) {
		l, of := newLoad(s), demand{slowPath: slotsEach}
		before := l.begin(of)
		s.pause(slotsBefore)
		while := l.next(of)
		for _, p := range s.proxies {
			p.late = late
		}
		turn(delayed)(s)
		s.pause(slotsSlow)
		turn(passing)(s)
		s.pause(slotsReturn)
		after := l.next(of)
		s.pause(slotsAfter)
		l.settle(after)
		s.pause(time.Second)
		inUse, err := s.fleet[0].used(ctx, "slots", "")
		s.must(err)
		f.checkSlots(late, inUse, before, while, after)
	})
	return f, err
}

func (f *finding) checkSlots(late time.Duration, inUse int64, phases ...*phase) {
	var asked, refused string
	for i, p := range phases {
		t := p.paths[slowPath]
		f.still = max(f.still, p.inside.still)
		comma := ", "
		if i == 0 {
			comma = ""
		}
		asked += comma + fmt.Sprint(t.sent.Load())
		refused += comma + fmt.Sprint(t.refused.Load())
		if failed := p.failures(); failed > 0 {
			f.miss("%d requests failed", failed)
		}
		if n := t.refused.Load(); i != 1 && n*100 > t.sent.Load() {
			f.miss("%d of %d refused though half of the slots are free", n, t.sent.Load())
		}
	}
	f.cells = []string{late.String(), asked, refused, fmt.Sprint(inUse)}
	if inUse > 0 {
		f.miss("%d slots are in use though no request is", inUse)
	}
}
