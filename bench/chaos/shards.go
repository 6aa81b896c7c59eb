package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// shardsField is what the settings of a store begin with that has shards.
const shardsField = "shards: "

// sharded is three servers that know nothing of each other.
func sharded(s *stage) []string {
	for range masters {
		s.servers = append(s.servers, testdep.Redis(s, onDisk...))
	}
	return []string{shardsField + s.shardList(masters)}
}

// shardList returns the first n servers as a list of shards: a, b, c, …
func (s *stage) shardList(n int) string {
	var all []string
	for i, r := range s.servers[:n] {
		all = append(all, fmt.Sprintf("{ name: %c, url: %q }", 'a'+i, "redis://"+r.Addr))
	}
	return "[ " + strings.Join(all, ", ") + " ]"
}

const shardStops = 10 * time.Second

var shardHead = append([]string{"one of three shards is gone for 10 s"}, masterHead[1:]...)

func shardTrials() []trial {
	way := func(name string, end, begin func(*testdep.RedisServer)) trial {
		return trial{
			"shard " + name, "one of three shards is " + name + " for 10 s: callers of the others notice nothing",
			func(ctx context.Context) (result, error) { return playShard(ctx, name, end, begin) },
		}
	}
	return []trial{
		way("killed", (*testdep.RedisServer).Kill, (*testdep.RedisServer).Start),
		way("stopped", (*testdep.RedisServer).Pause, (*testdep.RedisServer).Resume),
	}
}

// playShard does to a shard what other rows do to a master.
func playShard(ctx context.Context, name string, end, begin func(*testdep.RedisServer)) (*finding, error) {
	f := new(finding)
	err := onStage(ctx, cast{rules: []string{masterRules}, site: sharded}, func(s *stage) {
		l := newLoad(s)
		callers := s.callers(l)
		const dead = 1
		of := demand{}
		for _, c := range callers {
			of["/greedy/"+c], of["/honest/"+c] = greedyEach, honestEach
		}
		l.begin(of)
		s.pause(masterAhead) // the bursts are used up
		printed := s.logSizes()
		p := l.next(of)
		end(s.servers[dead])
		s.pause(shardStops)
		begin(s.servers[dead])
		s.pause(masterBehind)
		l.settle(p)
		f.checkMasters(masterFault{name: name}, p, callers, dead, 0, s.logChangesSince(printed))
	})
	return f, err
}

const (
	addedRules = `version: 1
identify: { caller: "path {caller}" }
rules:
  - { name: hour, match: "GET /hour/{caller}", per: caller, limits: { rate: 100/hour, algorithm: sliding_window }, on_store_failure: local }
`
	addedCallers = 24
	addedBudget  = 100
	addedEach    = 4.0 // a second of each caller on each node
	addedStep    = 3 * time.Second
	// addedDeadline is longer than usual: the rows are not about time.
	addedDeadline = 250 * time.Millisecond
)

var addedHead = []string{"a fourth shard is added under load", "callers", "that moved", "admitted of each that stayed", "of each that moved", "at most"}

func addedTrials() []trial {
	way := func(name string, was bool) trial {
		return trial{
			"shard added, " + name, "gateways with a fourth shard replace those with three, one after the other; callers have 100 an hour",
			func(ctx context.Context) (result, error) { return playAdded(ctx, name, was) },
		}
	}
	return []trial{way("with the former list", true), way("without it", false)}
}

// playAdded replaces the gateways one by one while callers use up their budgets, and counts
// what all of them admit.
func playAdded(ctx context.Context, name string, was bool) (*finding, error) {
	f := &finding{bears: addedDeadline / 2}
	err := onStage(ctx, cast{rules: []string{addedRules}, site: sharded, deadline: addedDeadline}, func(s *stage) {
		s.servers = append(s.servers, testdep.Redis(s, onDisk...))
		next := shardsField + s.shardList(masters+1)
		if was {
			next += ", was: " + s.shardList(masters)
		}
		of := demand{}
		for i := range addedCallers {
			of[fmt.Sprint("/hour/c", i)] = addedEach
		}
		admitted := make(map[string]int64)
		l := newLoad(s)
		play := func() {
			p := l.begin(of)
			s.pause(addedStep)
			l.settle(p)
			f.still = max(f.still, p.inside.still)
			for path := range of {
				admitted[path] += p.passed(path)
			}
			if failed := p.failures() + int64(p.inside.Errors); failed > 0 {
				f.miss("%d requests failed", failed)
			}
		}
		play()
		for i, old := range s.fleet {
			n := s.startNode(nodes+i, next, addedRules, addedDeadline)
			s.must(n.await(s.ctx, nodes+1))
			s.fleet[i] = n
			old.end()
			play()
		}
		for range 3 {
			play()
		}
		f.checkAdded(s, name, was, admitted)
	})
	return f, err
}

// checkAdded holds what callers were admitted to their budget, and without the former list
// those that moved to two.
func (f *finding) checkAdded(s *stage, name string, was bool, admitted map[string]int64) {
	const stayed, moved = 0, 1
	var count [2]int
	least, most := [2]int64{1 << 40, 1 << 40}, [2]int64{}
	for path, n := range admitted {
		of := stayed
		if s.servers[masters].Do("KEYS", "*="+strings.TrimPrefix(path, "/hour/")+"}*") != "" {
			of = moved
		}
		count[of]++
		least[of], most[of] = min(least[of], n), max(most[of], n)
		bound := int64(addedBudget)
		if of == moved && !was {
			bound *= 2
		}
		if n > bound || n < addedBudget {
			f.miss("%s: %d admitted, want %d to %d", path, n, addedBudget, bound)
		}
	}
	if count[stayed] == 0 || count[moved] == 0 {
		f.miss("the row is void: %d callers have moved, and %d have not", count[moved], count[stayed])
	}
	bound := addedBudget
	if !was {
		bound *= 2
	}
	f.cells = []string{
		name, fmt.Sprint(len(admitted)), fmt.Sprint(count[moved]),
		fmt.Sprintf("%d to %d", least[stayed], most[stayed]), fmt.Sprintf("%d to %d", least[moved], most[moved]), fmt.Sprint(bound),
	}
}
