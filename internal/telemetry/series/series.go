// Package series remembers what was decided in the last fifteen minutes, second by second, by
// rule and outcome: what a live view shows. Its memory is bounded, and it does not grow with
// traffic or keys.
//
// It is not for what Prometheus keeps. Start with [New].
package series

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// Steps is how many steps are remembered.
	Steps = 900
	// Step is the length of a step.
	Step = time.Second
	// maxLines bounds the memory, to 3.6 KB each. All further ones are counted as Other.
	maxLines = 256
)

// Other stands for all rules beyond maxLines.
const Other = "(other)"

// Requests stands for requests as a whole, in place of a rule: several rules may apply to one, or none.
const Requests = "(requests)"

// Total is how often decisions of a rule had an outcome, since the process began.
type Total struct {
	Rule, Outcome string
	Count         uint64
}

// Line is how often decisions of a rule had an outcome in each step, the oldest first.
type Line struct {
	Rule, Outcome string
	Counts        []uint32
}

type key struct{ rule, outcome string }

// Recorder reads totals once per step. Use [New].
type Recorder struct {
	read func() []Total

	mu    sync.Mutex
	was   map[key]uint64         // totals at the last step; under mu
	lines map[key]*[Steps]uint32 // rings; under mu
	steps int64                  // recorded so far; under mu
	end   time.Time              // of the last step; under mu
}

// New returns a Recorder of totals that only grow, except for those of removed rules. Call Run, or
// Record once per step.
func New(read func() []Total) *Recorder {
	r := &Recorder{read: read, was: make(map[key]uint64), lines: make(map[key]*[Steps]uint32)}
	for _, t := range read() {
		r.was[key{t.Rule, t.Outcome}] = t.Count
	}
	return r
}

// Run records until done is closed.
func (r *Recorder) Run(done <-chan struct{}) {
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			r.Record(now)
		}
	}
}

// Record ends a step at now. Steps that were missed are empty.
func (r *Recorder) Record(now time.Time) {
	totals := r.read()
	r.mu.Lock()
	defer r.mu.Unlock()
	missed := int64(0)
	if !r.end.IsZero() {
		missed = max(int64((now.Sub(r.end)+Step/2)/Step)-1, 0)
	}
	for range min(missed, Steps) {
		r.begin()
	}
	r.begin()
	r.end = now
	at := (r.steps - 1) % Steps
	is := make(map[key]uint64, len(totals))
	for _, t := range totals {
		k := key{t.Rule, t.Outcome}
		is[k] = t.Count
		was := r.was[k]
		if t.Count < was { // the rule went away and came back
			was = 0
		}
		if n := t.Count - was; n > 0 {
			ring := r.line(k)
			ring[at] = uint32(min(uint64(ring[at])+n, 1<<32-1))
		}
	}
	r.was = is
}

// begin begins a step with empty counts.
func (r *Recorder) begin() {
	at := r.steps % Steps
	r.steps++
	for k, ring := range r.lines {
		if ring[at] = 0; r.steps%60 == 0 && *ring == [Steps]uint32{} {
			delete(r.lines, k)
		}
	}
}

// line returns the ring of k, or that of Other if there are too many.
func (r *Recorder) line(k key) *[Steps]uint32 {
	if ring := r.lines[k]; ring != nil {
		return ring
	}
	if len(r.lines) >= maxLines {
		if k.rule = Other; r.lines[k] != nil {
			return r.lines[k]
		}
	}
	ring := new([Steps]uint32)
	r.lines[k] = ring
	return ring
}

// Lines returns what is remembered, and when the first step began. All lines have the same length.
// Rules without decisions are left out.
func (r *Recorder) Lines() (from time.Time, lines []Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int(min(r.steps, Steps))
	for k, ring := range r.lines {
		l := Line{k.rule, k.outcome, make([]uint32, n)}
		for i := range l.Counts {
			l.Counts[i] = ring[(r.steps-int64(n)+int64(i))%Steps]
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Outcome, b.Outcome))
	})
	return r.end.Add(-time.Duration(n) * Step), lines
}
