package main

import (
	"fmt"

	"tidegate.dev/tidegate"
)

const (
	// debtors have used up their quota before the flood comes.
	debtors = 10_000
	// quota is per day, so that none of it comes back during the run.
	quota = 10
	// keyBytes is the most of the bound that a key may take: 5M keys in 200 MB.
	keyBytes = 40
	// slack is what a process needs beside the table: runtime, stacks, and what
	// the table sheds as it grows.
	slack = 64_000_000
)

// size is how big the flood and the store are.
type size struct {
	keys     int
	maxBytes int64
}

// floodCase is one kind of flood.
type floodCase struct {
	name, about string
	cost        int64 // of each fresh key, out of quota
	onFull      tidegate.OnFull
}

var cases = []floodCase{
	{"light", "each fresh key spends 1 of 10; those who used up theirs have to stay", 1, tidegate.EvictLeast},
	{"heavy-evict", "each fresh key uses up its quota; on_full: evict", quota, tidegate.EvictLeast},
	{"heavy-refuse", "each fresh key uses up its quota; on_full: refuse", quota, tidegate.RefuseNew},
}

// full reports whether each fresh key uses up its quota, as the debtors have.
func (c floodCase) full() bool { return c.cost == quota }

// broken lists the promises that o breaks.
func (c floodCase) broken(s size, o outcome) []string {
	var all []string
	promise := func(holds bool, format string, args ...any) {
		if !holds {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	promise(o.Came == int64(s.keys), "%d of %d keys came within %s", o.Came, s.keys, floodTime)
	promise(o.MaxTable <= s.maxBytes, "the table had %d bytes, its bound is %d", o.MaxTable, s.maxBytes)
	room := min(s.maxBytes/keyBytes, debtors+o.Admitted)
	promise(o.MaxKeys >= room, "the table held at most %d keys, its bound is room for %d", o.MaxKeys, room)
	promise(o.PeakRSS <= s.maxBytes+slack, "the process had %d bytes resident, more than the bound of %d and %d beside it", o.PeakRSS, s.maxBytes, slack)
	promise(o.Again+o.AsNew <= o.Forgotten, "the store knew %d debtors no more, but only %d keys were counted as forgotten", o.Again+o.AsNew, o.Forgotten)
	promise(o.Refused == o.RefusedFull, "%d keys were refused for want of room, but %d were counted", o.Refused, o.RefusedFull)
	promise(o.Wrong == 0, "%d fresh keys got an answer that is neither admitted nor out of room", o.Wrong)
	entered := debtors + o.Admitted + o.Again
	promise(o.Keys+o.Forgotten == entered, "%d keys entered, but %d are held and %d counted as forgotten", entered, o.Keys, o.Forgotten)
	if !c.full() || c.onFull == tidegate.RefuseNew {
		promise(o.Again+o.AsNew == 0, "%d of %d debtors were forgotten", o.Again+o.AsNew, debtors)
	}
	if c.onFull == tidegate.EvictLeast {
		promise(o.Refused == 0, "%d keys were refused for want of room although others are to be evicted", o.Refused)
	}
	if c.onFull == tidegate.RefuseNew {
		promise(o.Forgotten == o.Evicted, "%d keys that hold somebody back were forgotten although new ones are to be refused", o.Forgotten-o.Evicted)
	}
	return all
}
