package main

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// fair is the rate, per second, that uses a limit up.
const fair = float64(events) / 60

const (
	hour = 3600.0
	day  = 24 * hour
)

// start is a whole minute, so that second 0 of a client is where windows and
// parts begin.
var start = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC).UnixMicro()

// traffic is the requests of one client, being made.
type traffic struct {
	*rand.Rand
	client   int
	requests []int64 // µs
}

// newTraffic seeds each client by itself, so that the numbers do not depend on
// who runs it, or when.
func newTraffic(seed uint64, shape string, client int, buf []int64) *traffic {
	h := fnv.New64a()
	h.Write([]byte(shape))
	return &traffic{rand.New(rand.NewPCG(seed^h.Sum64(), uint64(client))), client, buf[:0]}
}

// at adds a request at a second of the client's time.
func (t *traffic) at(second float64) {
	t.requests = append(t.requests, start+int64(second*1e6))
}

// poisson adds requests at a mean rate.
func (t *traffic) poisson(from, to, rate float64) {
	for s := from + t.ExpFloat64()/rate; s < to; s += t.ExpFloat64() / rate {
		t.at(s)
	}
}

// onOff alternates between silence and a rate, both exponentially long.
func (t *traffic) onOff(to, on, off, rate float64) {
	for s := t.Float64() * 60; s < to; {
		end := s + t.ExpFloat64()*on
		t.poisson(s, min(end, to), rate)
		s = end + t.ExpFloat64()*off
	}
}

// cron adds n requests within spread seconds of each minute's same second. How
// a windowed count takes it depends on that second, so sixty clients cover all.
func (t *traffic) cron(to float64, n int, spread float64) {
	for s := float64(t.client%60) + t.Float64(); s < to; s += 60 {
		for range n {
			t.at(s + t.Float64()*spread)
		}
	}
}

// evenly adds n requests from one second to another, the end excluded.
func (t *traffic) evenly(n int, from, to float64) {
	for i := range n {
		t.at(from + (to-from)*float64(i)/float64(n))
	}
}

// diurnal adds page loads at a mean rate that swings over the day; one in four
// brings a clump of up to six requests.
func (t *traffic) diurnal(to, rate float64) {
	const peak = 1.8
	phase := t.Float64() * 4 * hour
	for s := 0.0; ; {
		s += t.ExpFloat64() / (rate * peak)
		if s >= to {
			return
		}
		if t.Float64()*peak >= 1+0.8*math.Sin(2*math.Pi*(s+phase)/day) {
			continue
		}
		clump := 1
		if t.IntN(4) == 0 {
			clump += t.IntN(6)
		}
		for i := range clump {
			t.at(s + float64(i)*0.05)
		}
	}
}

// sorted returns the requests in order of time.
func (t *traffic) sorted() []int64 {
	slices.Sort(t.requests)
	return t.requests
}
