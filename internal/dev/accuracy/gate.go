package main

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Each gate below is the law of one algorithm and the state of one key.

var one = algo.Ask{Cost: 1, Copies: 1}

type bucketGate struct {
	law   algo.BucketLaw
	state algo.Bucket
}

func (g *bucketGate) take(us int64) bool {
	var v algo.Verdict
	g.state, v = g.law.Take(g.state, us*algo.Micro, one)
	return v.Granted > 0
}

func (g *bucketGate) reset() { g.state = algo.Bucket{} }

type counterGate struct {
	law   algo.CounterLaw
	limit *tidegate.Limit
	state algo.Counter
}

func (g *counterGate) take(us int64) bool {
	now := us * algo.Micro
	var v algo.Verdict
	g.state, v = g.law.Take(g.state, algo.SpanAt(g.limit, now), now, one)
	return v.Granted > 0
}

func (g *counterGate) reset() { g.state = algo.Counter{} }

type slidingGate struct {
	law   algo.SlidingLaw
	state algo.Sliding
}

func (g *slidingGate) take(us int64) bool {
	var v algo.Verdict
	g.state, v = g.law.Take(g.state, us*algo.Micro, one)
	return v.Granted > 0
}

func (g *slidingGate) reset() { g.state = algo.Sliding{} }

// The records of the next two are created large enough for their limit, so Take never
// reports that one is too small.

type logGate struct {
	law    algo.LogLaw
	record algo.Runs
}

func (g *logGate) take(us int64) bool {
	v, _ := g.law.Take(g.record, us*algo.Micro, one)
	return v.Granted > 0
}

func (g *logGate) reset() { g.record.Empty() }

type partsGate struct {
	law    algo.PartsLaw
	record algo.Runs
}

func (g *partsGate) take(us int64) bool {
	v, _ := g.law.Take(g.record, us*algo.Micro, one)
	return v.Granted > 0
}

func (g *partsGate) reset() { g.record.Empty() }
