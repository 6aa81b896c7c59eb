package rules

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// index finds the entries that may apply to a request, at a cost that does not depend on how many
// others there are: by pattern and, where many share a pattern, by the value that their when
// requires.
type index struct {
	tree      *route.Tree
	byPattern []patternEntries // by number of the pattern in tree
	// everywhere holds what has no pattern.
	everywhere patternEntries
}

// patternEntries has the entries of one pattern.
type patternEntries struct {
	always  []ref
	byValue []valueIndex
}

// valueIndex has the entries that require a value of one identity.
type valueIndex struct {
	id   *identity
	refs map[string][]ref
}

// ref is an entry and the number of the pattern by which it was found.
type ref struct{ entry, pattern int32 }

// entry is a class, an exemption or a rule. All are numbered in this order, so that the number of a
// class is that of its entry.
type entry struct {
	conds    *whenUnless
	patterns []string         // as written; empty means every request
	rule     *rule            // nil means an exemption or a class
	exempt   *rulefile.Exempt // nil means a rule or a class
}

// fewRefs is the largest number of entries requiring a value of one identity for which testing one
// by one is faster than a lookup.
const fewRefs = 4

// newIndex returns the index of entries, with the patterns of each.
func newIndex(entries []entry, patterns [][]rulefile.Pattern, ignoreCase bool) index {
	x := index{tree: route.New()}
	x.tree.IgnoreCase = ignoreCase
	numbers := make(map[route.Pattern]int) // by the pattern as written
	var refs [][]ref                       // by number
	var everywhere []ref
	for i := range entries {
		e := &entries[i]
		if e.rule != nil && e.rule.mode == rulefile.Disabled {
			continue
		}
		if len(patterns[i]) == 0 {
			everywhere = append(everywhere, ref{entry: int32(i)})
		}
		for j := range patterns[i] {
			w := &patterns[i][j]
			written := route.Pattern{Method: w.Method, Host: w.Host, Path: w.Path}
			n, ok := numbers[written]
			if !ok {
				n = len(refs)
				numbers[written] = n
				refs = append(refs, nil)
				x.tree.Add(w.Route(), n)
			}
			refs[n] = append(refs[n], ref{int32(i), int32(j)})
		}
	}
	for _, r := range refs {
		x.byPattern = append(x.byPattern, newPatternEntries(entries, r))
	}
	x.everywhere = newPatternEntries(entries, everywhere)
	return x
}

// newShelf sorts refs into those that are always tested and those that are looked up.
func newPatternEntries(entries []entry, refs []ref) patternEntries {
	common := make(literals)
	for _, r := range refs {
		common.add(entries[r.entry].conds.when)
	}
	var s patternEntries
	waiting := make(map[*identity][]ref)
	var ids []*identity // in order, so that a file always gives the same index
	for _, r := range refs {
		c := common.best(entries[r.entry].conds.when)
		if c == nil {
			s.always = append(s.always, r)
			continue
		}
		if waiting[c.id] == nil {
			ids = append(ids, c.id)
		}
		waiting[c.id] = append(waiting[c.id], r)
	}
	for _, id := range ids {
		if len(waiting[id]) <= fewRefs {
			s.always = append(s.always, waiting[id]...)
			continue
		}
		x := valueIndex{id: id, refs: make(map[string][]ref)}
		for _, r := range waiting[id] {
			for _, v := range common.best(entries[r.entry].conds.when).values() {
				x.refs[v] = append(x.refs[v], r)
			}
		}
		s.byValue = append(s.byValue, x)
	}
	return s
}

// collect finds the hits of the current reading, in the order of the entries, each once.
func (st *state) collect() {
	x, r := &st.set.index, st.request
	st.take(&x.everywhere, -1)
	if len(x.byPattern) > 0 {
		st.routes = x.tree.Match(r.Method, r.Host, st.readings[st.way], st.routes)
	}
	for i := range st.routes {
		st.take(&x.byPattern[st.routes[i].ID], i)
	}
	if len(st.hits) < 2 {
		return
	}
	slices.SortFunc(st.hits, func(a, b hit) int {
		if a.entry != b.entry {
			return int(a.entry - b.entry)
		}
		return int(a.pattern - b.pattern)
	})
	st.onceEach()
}

// onceEach keeps one hit of each entry: of several patterns that match, the first written one
// counts.
func (st *state) onceEach() {
	kept := st.hits[:0]
	for _, h := range st.hits {
		if n := len(kept); n > 0 && kept[n-1].entry == h.entry {
			continue
		}
		kept = append(kept, h)
	}
	clear(st.hits[len(kept):])
	st.hits = kept
}

func (st *state) take(s *patternEntries, at int) {
	st.add(s.always, at)
	for i := range s.byValue {
		if v, ok := st.find(s.byValue[i].id, nil); ok {
			st.add(s.byValue[i].refs[v.text], at)
		}
	}
}

func (st *state) add(refs []ref, at int) {
	for _, r := range refs {
		st.hits = append(st.hits, hit{ref: r, route: int32(at)})
	}
}
