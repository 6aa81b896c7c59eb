package offenders

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// open returns lists whose sampling is the same in every run.
func open(t *testing.T, o Options) *Offenders {
	t.Helper()
	of := New(o)
	random := rand.New(rand.NewPCG(1, 2))
	of.draw = random.Uint32
	t.Cleanup(of.Close)
	return of
}

// limitOf returns a limit of a rule that counts by user.
func limitOf(rule string) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: rule, Scope: "user", Events: 100, Period: time.Minute, Terms: &tidegate.Terms{Rule: rule}})
}

// decided returns what a Gate tells of a request.
func decided(l *tidegate.Limit, key string, ok bool, remaining int64) ([]tidegate.Check, tidegate.Decision) {
	return []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, tidegate.Decision{OK: ok, Limit: l, Remaining: remaining}
}

func refuse(of *Offenders, l *tidegate.Limit, key string) {
	checks, d := decided(l, key, false, 0)
	of.Observe(nil, checks, d)
}

func admit(of *Offenders, l *tidegate.Limit, key string, remaining int64) {
	checks, d := decided(l, key, true, remaining)
	of.Observe(nil, checks, d)
}

// one returns the list that a query is about.
func one(t *testing.T, r Report, rule string, by By, minutes int) List {
	t.Helper()
	for _, l := range r.Lists {
		if l.Rule == rule && l.By == by && l.Minutes == minutes {
			return l
		}
	}
	return List{}
}

// brief writes a list as "user=42 30" per entry, with bounds where they differ.
func brief(l List) (all []string) {
	for _, e := range l.Entries {
		text := ""
		for _, p := range e.Subject {
			text += p.Name + "=" + p.Value + " "
		}
		switch {
		case l.By == Nearest:
			text += fmt.Sprintf("%.2f", e.Used)
		case e.AtLeast == e.Count && e.AtMost == e.Count:
			text += fmt.Sprint(e.Count)
		default:
			text += fmt.Sprintf("%d (%d to %d)", e.Count, e.AtLeast, e.AtMost)
		}
		all = append(all, text)
	}
	return all
}

// within reports what of a list contradicts the true counts, by key.
func within(l List, truth map[string]int64) error {
	listed := make(map[string]bool)
	for i, e := range l.Entries {
		key := e.Subject[0].Value
		listed[key] = true
		if n := truth[key]; n < e.AtLeast || n > e.AtMost || e.Count < e.AtLeast || e.Count > e.AtMost {
			return fmt.Errorf("%s is %d, listed as %d, between %d and %d", key, n, e.Count, e.AtLeast, e.AtMost)
		}
		if i > 0 && e.Count > l.Entries[i-1].Count {
			return fmt.Errorf("%s is listed behind a smaller one", key)
		}
	}
	for key, n := range truth {
		if !listed[key] && n > l.OthersAtMost {
			return fmt.Errorf("%s is not listed and has %d, more than %d", key, n, l.OthersAtMost)
		}
	}
	return nil
}

// sound reports what is broken in the pool.
func (of *Offenders) sound() error {
	of.mu.Lock()
	defer of.mu.Unlock()
	p := &of.pool
	used := 0
	var broken error
	for l := range of.lists() {
		p.each(l, func(slot uint16, e *entry) {
			used++
			if got, ok := p.find(l, e.hash, e.limit, string(e.key[:e.length])); !ok || got != slot || e.list != l || p.prev[p.next[slot]] != slot {
				broken = fmt.Errorf("slot %d of a list cannot be found, or is not linked", slot)
			}
		})
	}
	if broken != nil {
		return broken
	}
	indexed := 0
	for _, i := range p.index {
		if i != 0 {
			indexed++
		}
	}
	if used != indexed || used+len(p.free) != p.made || p.made > maxEntries {
		return fmt.Errorf("%d entries, %d in the index, %d free, %d made", used, indexed, len(p.free), p.made)
	}
	return nil
}

// decidedOnStack is decided without garbage.
func decidedOnStack(l *tidegate.Limit, key string, ok bool) ([1]tidegate.Check, tidegate.Decision) {
	return [1]tidegate.Check{{Key: key, Limit: l, Cost: 1}}, tidegate.Decision{OK: ok, Limit: l, Remaining: 10}
}

// lists are all that there are.
func (of *Offenders) lists() iter.Seq[*list] {
	return func(yield func(*list) bool) {
		for _, r := range *of.table.all.Load() {
			for _, l := range r.lists {
				if l != nil && !yield(l) {
					return
				}
			}
		}
	}
}
