package main

import (
	"fmt"
	"math"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of Tidegate on Redis.
type summary struct {
	redisRate, throttled float64 // times their decisions/s, with the worst number of callers
	hot                  float64 // times the decisions/s of a call per decision
	hotCPU               float64 // that many times less CPU of Redis
	attack               float64 // times the decisions/s without the deny cache
	twoLimits            float64 // times the CPU per decision of one limit, of two of one user
	threeSubjects        float64 // the same, of limits of three subjects
	cluster              float64 // times the CPU per decision of one Redis, of three masters
}

func (f *figures) summary() summary {
	s := summary{redisRate: math.Inf(1), throttled: math.Inf(1)}
	for _, es := range f.keys {
		s.redisRate = min(s.redisRate, es[byKeysTidegate].against(es[byKeysRate], (*tally).rate))
		s.throttled = min(s.throttled, es[byKeysTidegate].against(es[byKeysThrottled], (*tally).rate))
	}
	if len(f.hot) > 0 {
		s.hot = f.hot[hotTidegate].against(f.hot[hotPlain], (*tally).rate)
		s.hotCPU = f.hot[hotPlain].against(f.hot[hotTidegate], (*tally).micros)
	}
	if len(f.attack) > 0 {
		s.attack = f.attack[attackWith].against(f.attack[attackWithout], (*tally).rate)
	}
	if len(f.multi) > 0 {
		one := f.multi[multiOne]
		s.twoLimits = f.multi[multiTwo].against(one, (*tally).micros)
		s.threeSubjects = f.multi[multiThree].against(one, (*tally).micros)
	}
	if len(f.cluster) > 0 {
		s.cluster = f.cluster[clusterThree].against(f.cluster[clusterOne], (*tally).micros)
	}
	return s
}

func (s summary) String() string {
	return fmt.Sprintf("bench-redis: redis_rate %.1fx throttled %.1fx hot %.1fx hot-cpu 1/%.0f attack %.1fx two-limits %.2fx three-subjects %.2fx cluster %.1fx",
		s.redisRate, s.throttled, s.hot, s.hotCPU, s.attack, s.twoLimits, s.threeSubjects, s.cluster)
}

const (
	leastRedisRate = 2.0
	leastThrottled = 3.3
	leastHot       = 9.0
	leastHotCPU    = 20.0
	leastAttack    = 6.0
	mostTwo        = 1.5
	mostThree      = 2.2
	mostCluster    = 1.15
)

func (s summary) missed() []string {
	missed := rig.Missed(
		rig.Bar{Name: "redis_rate", Got: s.redisRate, Want: leastRedisRate, Unit: "x"},
		rig.Bar{Name: "throttled", Got: s.throttled, Want: leastThrottled, Unit: "x"},
		rig.Bar{Name: "hot", Got: s.hot, Want: leastHot, Unit: "x"},
		rig.Bar{Name: "attack", Got: s.attack, Want: leastAttack, Unit: "x"},
		rig.Bar{Name: "two-limits", Got: s.twoLimits, Want: mostTwo, AtMost: true, Unit: "x"},
		rig.Bar{Name: "three-subjects", Got: s.threeSubjects, Want: mostThree, AtMost: true, Unit: "x"},
		rig.Bar{Name: "cluster", Got: s.cluster, Want: mostCluster, AtMost: true, Unit: "x"})
	if !(s.hotCPU >= leastHotCPU) {
		missed = append(missed, fmt.Sprintf("hot-cpu is 1/%.3g, the bar is at most 1/%.3g", s.hotCPU, leastHotCPU))
	}
	return missed
}
