package edits

import (
	"time"

	"tidegate.dev/tidegate"
)

type wideBook struct {
	admitted []wideAdmission
	since    numbers
}

type wideAdmission struct {
	at   time.Time
	cost int64 // below 0: returned
	numbers
}

func (b *wideBook) widen(v *wideVersion) {
	for _, t := range []wideTier{v.free, v.pro} {
		b.since.burst = max(b.since.burst, v.ceiling(t.burst))
		b.since.rate = max(b.since.rate, float64(v.ceiling(t.events))/float64(t.period))
		b.since.rough = b.since.rough || t.algorithm == tidegate.FixedWindow || t.algorithm == tidegate.SlidingWindow
	}
}

// never wants a request that can never be admitted to be above what the rule in force leaves.
func (w *wide) never(n *wideNode, c wideCaller, d tidegate.Decision) {
	t := n.version.free
	if c.pro {
		t = n.version.pro
	}
	least := t.burst // elastic without room
	if n.version.over == "soft" {
		least = n.version.ceiling(t.burst)
	}
	floor := int64(0)
	if n.version.aside > 0 && !c.high {
		floor = (least*int64(n.version.aside) + 99) / 100
		floor = min(floor, least-1)
	}
	if n.version.cost+floor <= least && (n.version.over != "elastic" || floor == 0) {
		w.Errorf("%s: can never pass by %s, floor %d", n.version, d.Limit, floor)
	}
}

// bounded wants no time W of a node to have more than the largest burst and the largest rate·W.
func (w *wide) bounded(n *wideNode, c wideCaller) {
	b := n.book[c.user]
	var sum, back int64
	var largest numbers
	for i := len(b.admitted) - 1; i >= 0; i-- {
		a := b.admitted[i]
		if a.cost < 0 {
			back -= a.cost
		} else {
			sum += a.cost
		}
		largest.burst, largest.rate = max(largest.burst, a.burst), max(largest.rate, a.rate)
		largest.rough = largest.rough || a.rough
		most := float64(largest.burst+back) + largest.rate*float64(w.clock.Sub(a.at))
		if largest.rough || len(w.kinds) > 1 { // what one does not count any more, another may have forgotten
			most += float64(largest.burst)
		}
		if a.cost > 0 && float64(sum) > most+1e-6 {
			w.Errorf("%s: %d in %s, the last under %s: at most %.3f by the versions in force", c.user, sum, w.clock.Sub(a.at), n.version, most)
			return
		}
	}
}
