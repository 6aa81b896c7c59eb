package offenders

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// Snapshot returns the lists that q asks for, also those without an entry if a key that is not listed
// may have been counted: [Merge] needs to know how often.
func (of *Offenders) Snapshot(q Query) Report {
	report := Report{At: time.Now(), Nodes: []string{of.o.Node}, Lists: []List{}}
	since := time.Since(of.started)
	for name, r := range *of.table.all.Load() {
		if q.Rule != "" && q.Rule != name {
			continue
		}
		for _, raw := range of.copyLists(r, sliceAt(since), q) {
			if l := of.render(raw, q); len(l.Entries) > 0 || l.OthersAtMost > 0 {
				l.Rule = name
				l.Seconds = math.Round(raw.window.covers(since).Seconds()*10) / 10
				report.Lists = append(report.Lists, l)
			}
		}
	}
	sortLists(report.Lists)
	return report
}

// series is figures of the minutes of a window, in the order of time.
type series [minutes]uint32

// rawList is the copy of a list over a window.
type rawList struct {
	kind    kind
	window  window
	entries []rawEntry
	floors  series // what a key that is not listed has at most
	weights series // of the decisions looked at
}

type rawEntry struct {
	key     string
	limit   *tidegate.Limit
	counted series
	most    series // with what may have been missed
}

// copyLists copies the lists of a rule, so that requests do not wait while they are rendered.
func (of *Offenders) copyLists(r *Rule, now slice, q Query) (all []rawList) {
	of.mu.Lock()
	defer of.mu.Unlock()
	of.now = max(of.now, now) // as the next tick would
	of.advance(r)
	of.markSampled(r)
	for k, l := range r.lists {
		if l == nil || q.By != "" && q.By != order[k] {
			continue
		}
		for _, w := range windows(of.now) {
			if q.Minutes == 0 || q.Minutes == w.minutes {
				all = append(all, of.pool.copy(l, w))
			}
		}
	}
	return all
}

func (p *pool) copy(l *list, w window) rawList {
	raw := rawList{kind: l.kind, window: w}
	first := w.from.minute()
	for m := first; m <= w.to.minute(); m++ {
		raw.floors[m-first], raw.weights[m-first] = l.floor[cellOf(m)], 1<<l.weight[cellOf(m)]
	}
	p.each(l, func(_ uint16, e *entry) {
		one := rawEntry{limit: e.limit, counted: l.counted(e, w)}
		if one.counted == (series{}) {
			return
		}
		one.key = string(e.key[:e.length])
		one.most = one.counted
		for m := first; m <= w.to.minute() && e.since >= w.from; m++ {
			one.most[m-first] = l.kind.join(one.most[m-first], l.missed(e, m))
		}
		raw.entries = append(raw.entries, one)
	})
	return raw
}

// counted returns the counts of e in w, by minute.
func (l *list) counted(e *entry, w window) (all series) {
	for s := w.from; s <= w.to; s++ {
		m := s.minute() - w.from.minute()
		if w.minutes == 1 {
			all[m] = l.kind.join(all[m], e.fine[s.cell()])
		} else {
			all[m] = e.coarse[cellOf(s.minute())]
		}
	}
	return all
}

// render turns a copy into the list that operators see.
func (of *Offenders) render(raw rawList, q Query) List {
	l := List{By: order[raw.kind], Minutes: raw.window.minutes, Entries: []Entry{}}
	if w := slices.Max(raw.weights[:]); w > 1 {
		l.Sampled = int64(w)
	}
	for i := range raw.entries {
		e := &raw.entries[i]
		shown := Entry{Subject: of.o.Subject(e.limit, e.key), Limit: limitText(e.limit)}
		if q.Search != "" && !matches(shown.Subject, q.Search) {
			continue
		}
		if raw.kind == nearest {
			shown.Used = float64(slices.Max(e.counted[:])) / wholeLimit
		} else {
			shown.Count, shown.AtLeast, _ = bounds(&e.counted, &raw.weights)
			_, _, shown.AtMost = bounds(&e.most, &raw.weights)
		}
		l.Entries = append(l.Entries, shown)
	}
	if raw.kind == nearest {
		l.OthersUsed = float64(max(slices.Max(raw.floors[:]), nearShare)) / wholeLimit
	} else {
		_, _, l.OthersAtMost = bounds(&raw.floors, &raw.weights)
	}
	sortEntries(l.Entries)
	l.cut(q.top())
	return l
}

// sigmas is how many standard deviations the bounds of an estimate are away: by Chernoff's
// bound one in 250,000 is wrong by more.
const sigmas = 5

// bounds returns an estimate of the sum of counts per minute, and bounds of the true number. Each
// decision that was looked at stands for at most the weight of its minute.
func bounds(counts, weights *series) (count, least, most int64) {
	var exact, sampled int64
	var variance, widest float64
	for i, n := range counts {
		w := float64(weights[i])
		if w <= 1 {
			exact += int64(n)
			continue
		}
		sampled += int64(n)
		variance += w * float64(n)
		widest = max(widest, w)
	}
	off := sigmas * math.Sqrt(variance)
	count = exact + sampled
	least = exact + max(int64(float64(sampled)-off), 0)
	most = count + int64(math.Ceil(off+sigmas*sigmas*widest))
	return count, least, most
}

func sortEntries(all []Entry) {
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Used, a.Used), cmp.Compare(a.text(), b.text()))
	})
}

func sortLists(all []List) {
	first := func(l *List) (float64, int64) {
		if len(l.Entries) == 0 {
			return l.OthersUsed, 0
		}
		return l.Entries[0].Used, l.Entries[0].Count
	}
	slices.SortFunc(all, func(a, b List) int {
		aUsed, aCount := first(&a)
		bUsed, bCount := first(&b)
		return cmp.Or(cmp.Compare(slices.Index(order[:], a.By), slices.Index(order[:], b.By)),
			cmp.Compare(bCount, aCount), cmp.Compare(bUsed, aUsed), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Minutes, b.Minutes))
	})
}

// matches reports whether a part of a subject contains the search text.
func matches(subject []Part, search string) bool {
	lower := strings.ToLower(search)
	for _, p := range subject {
		if strings.Contains(strings.ToLower(p.Value), lower) || p.Hashed && p.Value == Hash(search) {
			return true
		}
	}
	return false
}

// Hash returns the hash that is shown in place of a value that may be a secret, as in the access log.
func Hash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:8])
}

// limitText returns the limit without the name of the rule, which is said apart.
func limitText(l *tidegate.Limit) string { return strings.TrimPrefix(l.String(), l.Name+": ") }
