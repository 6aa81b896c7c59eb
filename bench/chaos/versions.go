package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// version is two nodes that hold one counter to different limits, as while a change is
// rolled out.
type version struct {
	name   string
	limits [2]string     // of each node
	asked  float64       // a second, of each node
	most   allowance     // in any stretch of time
	window time.Duration // if not 0: no more than most.burst in any stretch so long
	least  allowance     // over the whole run
	edits  []string      // limits that the first node gets one after the other, if any
}

const (
	versionsLast = 8 * time.Second
	editEvery    = 400 * time.Millisecond

	// versionDeadline is long, so that Redis decides: what a node counts by itself
	// is for other rows.
	versionDeadline = time.Second

	// Each node has a path of its own to be counted by; the rule has both.
	firstPath = hotPath + "/first"
	otherPath = hotPath + "/other"
)

var versionHead = []string{"two versions", "asked", "admitted by each", "in all", "at most", "too many in any stretch of time"}

var versions = []version{
	{
		name:   "10/hour beside 20/hour, token_bucket",
		limits: [2]string{"{ rate: 10/hour, algorithm: token_bucket }", "{ rate: 20/hour, algorithm: token_bucket }"},
		asked:  20, most: allowance{20, 20.0 / 3600}, least: allowance{burst: 20},
	},
	{
		name:   "100/s beside 50/s, token_bucket",
		limits: [2]string{"{ rate: 100/second, algorithm: token_bucket }", "{ rate: 50/second, algorithm: token_bucket }"},
		asked:  150, most: allowance{100, 100}, least: allowance{rate: 50},
	},
	{
		name:   "bursts of 100 and 20 at 50/s, token_bucket",
		limits: [2]string{"{ rate: 50/second, burst: 100, algorithm: token_bucket }", "{ rate: 50/second, burst: 20, algorithm: token_bucket }"},
		asked:  100, most: allowance{100, 50}, least: allowance{rate: 50},
	},
	{
		name:   "100/s, burst 20, beside 20/s, burst 200, token_bucket",
		limits: [2]string{"{ rate: 100/second, burst: 20, algorithm: token_bucket }", "{ rate: 20/second, burst: 200, algorithm: token_bucket }"},
		asked:  150, most: allowance{200, 100}, least: allowance{rate: 20},
	},
	{
		name:   "30 beside 60 in 3 s, sliding_log",
		limits: [2]string{"{ rate: 30/3s, algorithm: sliding_log }", "{ rate: 60/3s, algorithm: sliding_log }"},
		asked:  50, most: allowance{60, 20}, window: 3 * time.Second, least: allowance{rate: 19},
	},
	{
		name:   "50 beside 100 in 2 s, sub_windows",
		limits: [2]string{"{ rate: 50/2s, algorithm: sub_windows }", "{ rate: 100/2s, algorithm: sub_windows }"},
		asked:  100, most: allowance{100, 50}, least: allowance{rate: 45},
	},
	{
		name:   "sliding_log beside sub_windows, 60 in 3 s",
		limits: [2]string{"{ rate: 60/3s, algorithm: sliding_log }", "{ rate: 60/3s, algorithm: sub_windows, parts: 6 }"},
		asked:  50, most: allowance{60, 20}, least: allowance{rate: 15},
	},
	{
		name:   "50/s beside 100/s, sliding_window",
		limits: [2]string{"{ rate: 50/second, algorithm: sliding_window }", "{ rate: 100/second, algorithm: sliding_window }"},
		asked:  150, most: allowance{100, 100}, least: allowance{rate: 50},
	},
	{
		name:   "60 beside 120 a minute, fixed_window",
		limits: [2]string{"{ rate: 60/minute, algorithm: fixed_window }", "{ rate: 120/minute, algorithm: fixed_window }"},
		asked:  50, most: allowance{burst: 240}, least: allowance{burst: 120}, // the minute may end meanwhile
	},
	{
		name:   "another family: token_bucket beside sliding_log, 60 in 3 s, each its own counter",
		limits: [2]string{"{ rate: 60/3s, algorithm: token_bucket }", "{ rate: 60/3s, algorithm: sliding_log }"},
		asked:  50, most: allowance{120, 40}, least: allowance{rate: 20},
	},
	{
		name:   "edited under load: 100/s, 50/s, burst 20, 80/s, back again",
		limits: [2]string{"{ rate: 100/second, algorithm: token_bucket }", "{ rate: 100/second, algorithm: token_bucket }"},
		asked:  150, most: allowance{100, 100}, least: allowance{rate: 50},
		edits: []string{
			"{ rate: 50/second, algorithm: token_bucket }", "{ rate: 100/second, burst: 20, algorithm: token_bucket }",
			"{ rate: 80/second, burst: 100, algorithm: token_bucket }", "{ rate: 100/second, algorithm: token_bucket }",
		},
	},
}

func versionTrials() (all []trial) {
	for _, v := range versions {
		what := fmt.Sprintf("two nodes with different limits on one counter, each asked %.0f times a second", v.asked)
		all = append(all, trial{v.name, what, func(ctx context.Context) (result, error) { return v.play(ctx) }})
	}
	return all
}

func versionRules(limits string) string {
	return fmt.Sprintf("version: 1\nrules:\n  - { name: hot, match: \"GET /hot/{node}\", per: everyone, limits: %s, on_store_failure: local }\n", limits)
}

func (v version) play(ctx context.Context) (*finding, error) {
	f := new(finding)
	c := cast{site: single(), nodes: 2, deadline: versionDeadline, rules: []string{versionRules(v.limits[0]), versionRules(v.limits[1])}}
	err := onStage(ctx, c, func(s *stage) {
		l := newLoad(s)
		p := l.begin(demand{firstPath: v.asked}, demand{otherPath: v.asked})
		v.edit(s)
		l.settle(p)
		v.check(f, p)
	})
	return f, err
}

// edit lets the run last, while the first node's rules change.
func (v version) edit(s *stage) {
	if len(v.edits) == 0 {
		s.pause(versionsLast)
		return
	}
	for i := range int(versionsLast / editEvery) {
		file := filepath.Join(filepath.Dir(s.fleet[0].log), "rules.yaml")
		s.must(os.WriteFile(file+".new", []byte(versionRules(v.edits[i%len(v.edits)])), 0o600))
		s.must(os.Rename(file+".new", file))
		s.pause(editEvery)
	}
}

func (v version) check(f *finding, p *phase) {
	one, other := p.paths[firstPath], p.paths[otherPath]
	passes := append(append([]span(nil), one.passes...), other.passes...)
	n, over := len(passes), excess(passes, v.most)
	f.still = p.inside.still
	f.cells = []string{
		v.name, fmt.Sprint(p.sent()), fmt.Sprintf("%d, %d", one.passed.Load(), other.passed.Load()), fmt.Sprint(n),
		fmt.Sprintf("%.0f", v.most.in(p.lasted())), fmt.Sprintf("%.1f", over),
	}
	if over > 0 {
		f.miss("%.1f more than %.3g + %.3g/s admitted in some stretch of time", over, v.most.burst, v.most.rate)
	}
	if in := mostIn(passes, v.window); v.window > 0 && float64(in) > v.most.burst {
		f.miss("%d admitted in some %s, want at most %.0f", in, v.window, v.most.burst)
	}
	if least := v.least.in(p.lasted()); float64(n) < 0.95*least {
		f.miss("%d admitted, want %.0f at least", n, least)
	}
	if failed := p.failures() + int64(p.inside.Errors); failed > 0 {
		f.miss("%d requests failed", failed)
	}
}
