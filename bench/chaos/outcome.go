package main

import (
	"fmt"
	"io"
	"time"
)

// outcome is what came of a row.
type outcome struct {
	row
	before, during, after *phase
	memory                [2]figures // before and after
	affected              int        // nodes that noticed
	noticed               time.Duration
	why                   string // they say they are degraded
	recovery              time.Duration
	missed                []string
}

const (
	grace        = 10 * time.Millisecond // beyond the deadline, see docs/chaos.md
	mostRecovery = 5 * time.Second
	mostHealing  = 10 * time.Second // a failover has to be found necessary first

	goroutineSlack = 10
	heapSlack      = 4 << 20
	rssSlack       = 16 << 20
)

func (o *outcome) miss(format string, args ...any) {
	o.missed = append(o.missed, fmt.Sprintf(format, args...))
}

var phaseNames = []string{"before", "during", "after"}

func (o *outcome) phases() map[string]*phase {
	return map[string]*phase{"before": o.before, "during": o.during, "after": o.after}
}

// check compares with the bounds.
func (o *outcome) check() {
	for _, name := range phaseNames {
		p := o.phases()[name]
		if awake := p.inside.awake; awake > deadline+grace {
			o.miss("%s: the slowest answer took %s and the oversleep of its process, want at most %s + %s", name, ms(awake), ms(deadline), ms(grace))
		}
		if n := p.failures() + int64(p.inside.Errors); n > 0 {
			o.miss("%s: %d requests failed", name, n)
		}
		low, high := o.hotBounds(name)
		if n := p.passed(hotPath); n < low || n > high {
			o.miss("%s: %d admitted at 100/s, want %d to %d", name, n, low, high)
		}
		if open := p.paths[openPath]; open.passed.Load() != open.sent.Load() {
			o.miss("%s: %d of %d admitted where the fallback is to allow", name, open.passed.Load(), open.sent.Load())
		}
	}
	low, high := o.hourBounds()
	if n := o.hour(); n < low || n > high {
		o.miss("%d admitted of 1000 an hour, want %d to %d", n, low, high)
	}
	if o.affected != o.row.affected && !o.maybe {
		o.miss("%d nodes said that they are degraded, want %d: %s", o.affected, o.row.affected, o.why)
	}
	if denied := o.during.paths[closedPath].denied.Load(); (denied > 0) != (o.row.affected > 0 && !o.partial) && !o.maybe {
		o.miss("%d denied where the fallback is to deny", denied)
	}
	most := mostRecovery
	if o.heals {
		most = mostHealing
	}
	if o.recovery > most {
		o.miss("well again after %s, want at most %s", ms(o.recovery), ms(most))
	}
	o.missed = append(o.missed, leftBehind(&o.memory[0], &o.memory[1])...)
}

func (o *outcome) misses() []string { return o.missed }

// disturbed reports whether a process stood still for as long as the deadline: then calls
// miss it though nothing is wrong with Redis or Tidegate, and the row says little.
func (o *outcome) disturbed() bool {
	return max(o.before.inside.still, o.during.inside.still, o.after.inside.still) > deadline
}

// leftBehind tells what is more than it was.
func leftBehind(was, is *figures) (all []string) {
	if is.Goroutines > was.Goroutines+goroutineSlack {
		all = append(all, fmt.Sprintf("%d goroutines, there were %d", is.Goroutines, was.Goroutines))
	}
	if is.Heap > was.Heap+heapSlack {
		all = append(all, fmt.Sprintf("%s in use, it was %s", mib(is.Heap), mib(was.Heap)))
	}
	if is.RSS > was.RSS+rssSlack {
		all = append(all, fmt.Sprintf("%s resident, it was %s", mib(is.RSS), mib(was.RSS)))
	}
	return all
}

func (p *phase) passed(path string) int64 { return p.paths[path].passed.Load() }

// hotBounds are a tenth of burst + rate·time around rate·time: the bucket is used up
// when the fault comes, and the first burst is spent before.
func (o *outcome) hotBounds(name string) (low, high int64) {
	p := o.phases()[name]
	due := hotRate * p.lasted().Seconds()
	tenth := (hotRate + due) / 10
	over := due + tenth
	switch name {
	case "before":
		over += hotRate
	case "during":
		over += due * o.over
	case "after":
		over += hotRate * o.bursts
	}
	return int64(due - tenth), int64(over)
}

// hour returns how many were admitted in all.
func (o *outcome) hour() int64 {
	return hourMax/2 + o.during.passed(hourPath) + o.after.passed(hourPath)
}

func (o *outcome) hourBounds() (low, high int64) {
	const tenth = hourMax / 10
	return hourMax - tenth, hourMax + tenth + int64(hourMax*(o.over+o.bursts))
}

// tell prints it for people.
func (o *outcome) tell(out io.Writer) {
	for _, name := range phaseNames {
		p := o.phases()[name]
		f := p.inside
		low, high := o.hotBounds(name)
		fmt.Fprintf(out, "  %-7s %5d requests, slowest %s inside (oversleep %s), %s at the client, %d failed; 100/s: %d (%d to %d)\n",
			name, p.sent(), ms(f.Slowest), ms(f.Oversleep), ms(time.Duration(p.slowest.Load())), p.failures()+int64(f.Errors), p.passed(hotPath), low, high)
	}
	low, high := o.hourBounds()
	fmt.Fprintf(out, "  1000/hour: %d in all (%d to %d); %d nodes degraded after %s, well again after %s; goroutines %d, %d; heap %s, %s; resident %s, %s\n",
		o.hour(), low, high, o.affected, ms(o.noticed), ms(o.recovery), o.memory[0].Goroutines, o.memory[1].Goroutines,
		mib(o.memory[0].Heap), mib(o.memory[1].Heap), mib(o.memory[0].RSS), mib(o.memory[1].RSS))
}

func ms(d time.Duration) string {
	if d == never {
		return "never"
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
