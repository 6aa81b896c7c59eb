package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/keybuf"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/store/memory"
)

const (
	// blocked addresses have used up each of the lasting rules before the flood.
	blocked = 5_000
	// steady clients spend 60 of the 100 a minute of their rule.
	steady = 500
	// pace is how many keys are invented in a second of virtual time.
	pace = 5_000
)

// rulesCase floods one rule of six; the answers of the other five may not change.
type rulesCase struct {
	algorithm tidegate.Algorithm
	onFull    tidegate.OnFull
}

// rulesCases returns the default kinds and every algorithm that counts, evicting and
// refusing.
func rulesCases() (all []rulesCase) {
	for a := range tidegate.Deny {
		all = append(all, rulesCase{a, tidegate.EvictLeast})
		if a != tidegate.Concurrency { // slots are never forgotten
			all = append(all, rulesCase{a, tidegate.RefuseNew})
		}
	}
	return all
}

func (c rulesCase) name() string {
	name := "default"
	if c.algorithm != tidegate.Auto {
		name = c.algorithm.String()
	}
	if c.onFull == tidegate.RefuseNew {
		return name + "-refuse"
	}
	return name + "-evict"
}

// limit is so many events in a period or, of a quota, in the calendar's.
func (c rulesCase) limit(name string, events int64, period time.Duration, calendar tidegate.Calendar) *tidegate.Limit {
	s := tidegate.Spec{Name: name, Algorithm: c.algorithm, Events: events, Period: period, OnFull: c.onFull}
	switch c.algorithm {
	case tidegate.Quota:
		s.Period, s.Calendar = 0, calendar
	case tidegate.LeakyBucket:
		s.Burst = events - 1
	case tidegate.Concurrency:
		s.Events = min(events, 20) // a slot in use takes 16 bytes
	}
	return tidegate.MustLimit(s)
}

// rulesOutcome is what the process of a rulesCase answers.
type rulesOutcome struct {
	Came, Refused int64 // invented keys; those that found no room
	Tried, Again  int64 // how often blocked addresses tried, and were admitted
	Asked, Held   int64 // how often steady clients asked, and were refused
	Forgotten     int64 // keys of the flooded rule
	OthersLost    int64 // keys of the other rules that were forgotten, or found no room
	MaxTable      int64
	PeakRSS       int64
	Took, Slowest time.Duration // the flood, and the most that the processor had to do for one of its keys
}

// rulesPlayer asks as six rules would, at a clock that the flood moves.
type rulesPlayer struct {
	store   *memory.Store
	now     time.Time
	flooded *tidegate.Limit
	lasting []*tidegate.Limit
	steady  *tidegate.Limit
	check   [1]tidegate.Check
	keys    keybuf.Buffer
}

func (c rulesCase) player(s size) *rulesPlayer {
	const day = 24 * time.Hour
	p := &rulesPlayer{now: time.Date(2026, 11, 17, 1, 0, 0, 0, time.UTC)} // no period ends soon
	p.store = memory.Open(memory.Config{MaxBytes: s.maxBytes, Now: func() time.Time { return p.now }})
	p.flooded = c.limit("flooded", 5, 7*day, tidegate.Week)
	p.lasting = []*tidegate.Limit{
		c.limit("five a day", 5, day, tidegate.Day), c.limit("twenty a day", 20, day, tidegate.Day),
		c.limit("hundred a week", 100, 7*day, tidegate.Week), c.limit("thousand a month", 1000, 30*day, tidegate.Month),
	}
	p.steady = c.limit("hundred a minute", 100, time.Minute, tidegate.Year)
	if c.algorithm == tidegate.Quota {
		p.steady = c.limit("a quota that lasts", 1_000_000, 0, tidegate.Year)
	}
	return p
}

func (p *rulesPlayer) take(l *tidegate.Limit, kind string, i int, cost int64) (tidegate.Decision, error) {
	p.check[0] = tidegate.Check{Limit: l, Key: p.keys.Key(kind, i), Cost: cost}
	if l.Algorithm == tidegate.LeakyBucket {
		p.check[0].MaxWait = 366 * 24 * time.Hour // it waits for its turn
	}
	return p.store.Take(context.Background(), p.check[:], 1)
}

// play runs the case.
func (c rulesCase) play(ctx context.Context, s size) (o rulesOutcome, err error) {
	p := c.player(s)
	for _, l := range p.lasting {
		for i := range blocked {
			for range 5 {
				if d, err := p.take(l, "blocked", i, l.Events/5); err != nil || !d.OK {
					return o, fmt.Errorf("%s: blocked %d could not use up its limit: %+v (%v)", l, i, d, err)
				}
			}
		}
	}
	if err = c.flood(ctx, p, s, &o); err != nil {
		return o, err
	}
	for i := range blocked { // after it, everybody tries once more
		if err := p.try(&o, i); err != nil {
			return o, err
		}
	}
	o.Forgotten = p.store.LimitStats(p.flooded).Forgotten
	for _, l := range append(p.lasting, p.steady) {
		st := p.store.LimitStats(l)
		o.OthersLost += st.Forgotten + st.RefusedFull
	}
	o.PeakRSS, err = process.PeakRSS()
	return o, err
}

func (c rulesCase) flood(ctx context.Context, p *rulesPlayer, s size, o *rulesOutcome) error {
	runtime.LockOSThread() // as CPUTime asks for
	defer runtime.UnlockOSThread()
	start := time.Now()
	reported := start
	next := p.now
	for i := range s.keys {
		p.now = p.now.Add(time.Second / pace)
		before := process.CPUTime()
		d, err := p.take(p.flooded, "invented", i, 1)
		o.Slowest = max(o.Slowest, process.CPUTime()-before)
		if err != nil {
			return err
		}
		if o.Came++; !d.OK {
			o.Refused++
		}
		for !next.After(p.now) { // each steady client asks once a second
			if err := p.ask(o, next); err != nil {
				return err
			}
			next = next.Add(time.Second / steady)
		}
		if i%100 == 0 {
			if err := p.try(o, i/100%blocked); err != nil {
				return err
			}
		}
		if i%lookEvery == 0 {
			st := p.store.Stats()
			if o.MaxTable = max(o.MaxTable, st.Bytes); time.Since(reported) > sayEvery {
				reported = time.Now()
				rss, err := process.RSS()
				if err != nil {
					return err
				}
				rig.Progress("%s: %d keys came, %d held; table %.1f MB, process %.1f MB", c.name(), i+1, st.Keys, mb(st.Bytes), mb(rss))
			}
			if ctx.Err() != nil || time.Since(start) > floodTime {
				break
			}
		}
	}
	o.Took = time.Since(start)
	return ctx.Err()
}

// try lets a blocked address try each of the rules it has used up.
func (p *rulesPlayer) try(o *rulesOutcome, i int) error {
	for _, l := range p.lasting {
		d, err := p.take(l, "blocked", i, max(1, l.Events/20))
		if err != nil {
			return err
		}
		if o.Tried++; d.OK {
			o.Again++
		}
	}
	return nil
}

// ask lets the client whose turn it is spend one; a slot it gives back at once.
func (p *rulesPlayer) ask(o *rulesOutcome, at time.Time) error {
	d, err := p.take(p.steady, "steady", int(at.UnixNano()/int64(time.Second/steady)%steady), 1)
	if err != nil {
		return err
	}
	if o.Asked++; !d.OK {
		o.Held++
	} else if p.steady.Algorithm == tidegate.Concurrency {
		p.check[0].Cost = -1
		return p.store.Adjust(context.Background(), d.Receipt, p.check[:])
	}
	return nil
}

// broken lists the promises that o breaks.
func (c rulesCase) broken(s size, o rulesOutcome) []string {
	var all []string
	promise := func(holds bool, format string, args ...any) {
		if !holds {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	promise(o.Came == int64(s.keys), "%d of %d keys came within %s", o.Came, s.keys, floodTime)
	promise(o.MaxTable <= s.maxBytes, "the tables had %d bytes, their bound is %d", o.MaxTable, s.maxBytes)
	promise(o.PeakRSS <= s.maxBytes+slack, "the process had %d bytes resident, more than the bound of %d and %d beside it", o.PeakRSS, s.maxBytes, slack)
	promise(o.Tried > 0 && o.Again == 0, "blocked addresses were admitted %d times of %d", o.Again, o.Tried)
	promise(o.Asked > 0 && o.Held == 0, "steady clients were refused %d times of %d", o.Held, o.Asked)
	promise(o.OthersLost == 0, "%d keys of other rules were forgotten or found no room", o.OthersLost)
	promise(o.Refused == 0 || c.algorithm == tidegate.Concurrency, "%d invented keys were refused, though none of them holds anybody back", o.Refused)
	return all
}

func (o rulesOutcome) report(s size) string {
	return fmt.Sprintf("  %d invented keys in %s, %.0f ns each, at most %s of processor time; %d forgotten, %d refused\n"+
		"  table at most %.1f MB of %.1f; process at most %.1f MB\n"+
		"  blocked addresses admitted again: %d of %d tries; steady clients refused: %d of %d; other keys lost: %d\n",
		o.Came, o.Took.Round(time.Second/10), float64(o.Took)/float64(max(1, o.Came)), o.Slowest.Round(time.Microsecond), o.Forgotten, o.Refused,
		mb(o.MaxTable), mb(s.maxBytes), mb(o.PeakRSS), o.Again, o.Tried, o.Held, o.Asked, o.OthersLost)
}
