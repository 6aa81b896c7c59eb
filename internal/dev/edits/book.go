package edits

import (
	"time"

	"tidegate.dev/tidegate"
)

// book is what was admitted of one user, and the largest numbers that were in force on any
// node: where two of them count by the same algorithm, one may let what the other counts
// drain at its own pace.
type book struct {
	user     string
	of       *node // nil means of all nodes, which count together
	nodes    []*node
	admitted []admission
	since    numbers // in force since the last of them
}

type admission struct {
	at time.Time
	numbers
}

// numbers are the largest of versions that were in force.
type numbers struct {
	burst int64
	rate  float64 // events per nanosecond
	rough bool    // twice the limit may pass: around a boundary, or where what is older is weighed
}

// open makes the books: one of all nodes where they count together, else one of each.
func (p *play) open() {
	for _, u := range users {
		if len(p.among) == 1 {
			p.books = append(p.books, &book{user: u, nodes: p.nodes})
			continue
		}
		for _, n := range p.nodes {
			p.books = append(p.books, &book{user: u, nodes: p.nodes, of: n})
		}
	}
	for _, b := range p.books {
		b.widen()
	}
}

func (b *book) widen() {
	for _, n := range b.nodes {
		v := n.version
		for _, t := range []tier{v.free, v.pro} {
			b.since.burst = max(b.since.burst, t.burst)
			b.since.rate = max(b.since.rate, float64(t.events)/float64(period))
		}
		b.since.rough = b.since.rough || v.algorithm == tidegate.FixedWindow || v.algorithm == tidegate.SlidingWindow
	}
}

func (b *book) admit(p *play, n *node, c caller) {
	if b.user != c.user || b.of != nil && b.of != n {
		return
	}
	b.admitted = append(b.admitted, admission{*p.clock, b.since})
	b.since = numbers{}
	b.widen()
	b.bounded(p, n)
	if b.of == nil {
		b.fits(p, n, c)
	}
}

// bounded wants no time W to have more than the largest burst and the largest rate·W.
func (b *book) bounded(p *play, n *node) {
	var sum int64
	var largest numbers
	for i := len(b.admitted) - 1; i >= 0; i-- {
		a := b.admitted[i]
		sum++
		largest.burst, largest.rate = max(largest.burst, a.burst), max(largest.rate, a.rate)
		largest.rough = largest.rough || a.rough
		most := float64(largest.burst) + largest.rate*float64(p.clock.Sub(a.at))
		if largest.rough {
			most += float64(largest.burst)
		}
		if float64(sum) > most+1e-6 {
			p.Errorf("%d in %s, the last under %s: at most %.3f by the versions in force", sum, p.clock.Sub(a.at), n.version, most)
			return
		}
	}
}

// fits wants the window of the last admission not to have more than its own limit.
func (b *book) fits(p *play, n *node, c caller) {
	t := n.version.free
	if c.pro {
		t = n.version.pro
	}
	start := p.clock.Add(-period)
	switch n.version.algorithm {
	case tidegate.TokenBucket:
		return
	case tidegate.FixedWindow, tidegate.SlidingWindow: // what is in the present window counts whole
		start = p.clock.Truncate(period).Add(-1)
	}
	var sum int64
	for i := len(b.admitted) - 1; i >= 0 && b.admitted[i].at.After(start); i-- {
		if sum++; sum > t.events {
			p.Errorf("%d in one window, the last under %s", sum, n.version)
			return
		}
	}
}
