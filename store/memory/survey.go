package memory

import (
	"context"
	"errors"
	"runtime"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Survey calls f for every key that something is counted for in each of several counters, with
// what each limit asked about would leave for it now: 0 where one more event would be refused.
// asked[i] are checks without keys, whose limits share the Identity of counter i. It charges
// nothing and, unlike Take with limits that are not in force, changes nothing. Keys are kept
// as hashes, so key is "" unless it is one of names[i]. left is reused. seen[i] is the share of
// the keys that f was called for, which is 1 here.
func (s *Store) Survey(ctx context.Context, asked [][]tidegate.Check, names [][]string, f func(i int, key string, left []int64)) (seen []float64, err error) {
	defer runtime.KeepAlive(s)
	seen = make([]float64, len(asked))
	for i, checks := range asked {
		var known []string
		if i < len(names) {
			known = names[i]
		}
		if err := s.surveyOne(ctx, checks, known, func(key string, left []int64) { f(i, key, left) }); err != nil {
			return seen, err
		}
		seen[i] = 1
	}
	return seen, nil
}

func (s *Store) surveyOne(ctx context.Context, asked []tidegate.Check, names []string, f func(key string, left []int64)) error {
	if len(asked) == 0 {
		return nil
	}
	for i := range asked {
		if asked[i].Limit == nil || asked[i].Limit.Identity() != asked[0].Limit.Identity() {
			return errors.New("memory: Survey: the limits are not of one counter")
		}
	}
	s.mu.Lock()
	t := s.byID[asked[0].Limit.Identity()]
	s.mu.Unlock()
	if t == nil {
		return nil
	}
	v := newSurvey(s, t, asked, names)
	for at, more := uint64(0), true; more; { // the first tag not yet seen
		if err := ctx.Err(); err != nil {
			return err
		}
		at, more = v.copyFrom(at)
		v.tell(f) // without a lock, so nothing waits for f
	}
	return nil
}

// survey is what a Survey needs while it goes through a table.
type survey struct {
	*Store
	table *table
	laws  []*compiledLimit // not attached to the table: sweeps do not go by them
	asks  []algo.Ask
	names map[keyHash]string

	copies []copied
	words  []uint64 // of the records of copies
	record []uint64
	left   []int64
}

// copied is a key as it stood.
type copied struct {
	keyHash
	cell
	from, to int // its record in words
}

func newSurvey(s *Store, t *table, asked []tidegate.Check, names []string) *survey {
	v := &survey{Store: s, table: t, names: make(map[keyHash]string), left: make([]int64, len(asked))}
	for _, name := range names {
		v.names[s.hash.sum(name, t.salt)] = name
	}
	for i := range asked {
		v.laws = append(v.laws, newCompiledLimit(asked[i].Limit, t, &s.budget))
		v.asks = append(v.asks, ask(0, asked[i].MaxWait, 1))
	}
	return v
}

// copyFrom copies the keys of the segment that a tag leads to, and returns the first tag behind
// it: splits before or behind it make no difference.
func (v *survey) copyFrom(at uint64) (next uint64, more bool) {
	v.copies, v.words = v.copies[:0], v.words[:0]
	for {
		g := v.table.segment(keyHash{tag: at})
		g.mu.Lock()
		if v.table.segment(keyHash{tag: at}) != g {
			g.mu.Unlock()
			continue
		}
		v.copySegment(g)
		depth, prefix := g.depth, g.prefix
		g.mu.Unlock()
		return (prefix + 1) << (64 - depth), prefix+1 != 1<<depth
	}
}

// copySegment copies the keys of g, whose lock the caller holds.
func (v *survey) copySegment(g *segment) {
	for i := range int(g.slots.Load()) {
		sl := &g.chunks[i/chunkSlots].Load()[i%chunkSlots]
		tag := sl.tag.Load()
		if tag == 0 {
			continue
		}
		word := sl.seize()
		meta := sl.meta.Load()
		c := copied{keyHash: keyHash{tag, meta &^ slowMask}, cell: cell{meta & slowMask, word & fastMask}, from: len(v.words)}
		if v.table.kind.inRecord() {
			var room entryRoom
			r := v.laws[0].record(c.cell, &room)
			for i := range r.Words() {
				v.words = append(v.words, r.Get(i))
			}
		}
		sl.word.Store(word)
		c.to = len(v.words)
		v.copies = append(v.copies, c)
	}
}

// tell calls f for the copied keys that are not idle.
func (v *survey) tell(f func(key string, left []int64)) {
	now := v.now()
	for i := range v.copies {
		c := &v.copies[i]
		live := false
		for j := range v.laws {
			v.left[j] = v.leftOf(c, j, now)
			live = live || !v.idle(c, j, now)
		}
		if live {
			f(v.names[c.keyHash], v.left)
		}
	}
}

// leftOf returns what one of the limits would leave for a key.
func (v *survey) leftOf(c *copied, i int, now int64) int64 {
	lim, verdict := v.laws[i], algo.Verdict{}
	switch {
	case lim.kind == runs:
		verdict, _ = lim.runs.Take(v.recordOf(c), now, v.asks[i])
	case lim.kind == leases:
		verdict, _ = lim.lease.Take(v.recordOf(c), now, now, v.asks[i])
	default:
		_, verdict = v.take(lim, c.cell, now, v.asks[i])
	}
	if verdict.Granted == 0 {
		return 0
	}
	return max(verdict.Remaining, 1)
}

func (v *survey) idle(c *copied, i int, now int64) bool {
	lim := v.laws[i]
	switch lim.kind {
	case runs:
		return lim.runs.Idle(v.recordOf(c), now)
	case leases:
		return lim.lease.Idle(v.recordOf(c), now)
	}
	return v.Store.idle(lim, c.cell, now)
}

// recordOf returns a copy of the record that the laws may write.
func (v *survey) recordOf(c *copied) *algo.Record {
	v.record = append(v.record[:0], v.words[c.from:c.to]...)
	r := new(algo.Record)
	r.SetWords(v.record)
	return r
}
