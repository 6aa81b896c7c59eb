// Package edits changes a rule file at random while nodes use it, and checks the promises
// about such changes. It is for tests of stores: each node has a version of the rules in
// force, and an edit puts another version into force on one node.
//
// Start with [Run].
package edits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
)

// Run makes so many edits of rule files for each kind of change: of the numbers of a limit,
// which all nodes count together, and of its algorithm too, so that versions count
// elsewhere. open returns a store for each node, all on the same counters and on the clock now.
//
// Where the algorithm stays, the sum in any time W is at most the largest burst and the
// largest rate·W of the versions in force, over all nodes. Where it changes, that holds of
// each node: together they admit at most both limits. Nobody is refilled by an edit, and
// nobody is held longer than a refusal says.
func Run(t *testing.T, edits int, open func(t *testing.T, now func() time.Time) []tidegate.Store) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow} {
		t.Run("numbers of "+a.String(), func(t *testing.T) { series(t, edits, open, a) })
	}
	t.Run("algorithms that are exact", func(t *testing.T) {
		series(t, edits, open, tidegate.TokenBucket, tidegate.SlidingLog)
	})
	t.Run("algorithms", func(t *testing.T) {
		series(t, edits, open, tidegate.TokenBucket, tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow)
	})
}

// series plays files of a few edits each, until there were enough.
func series(t *testing.T, edits int, open func(*testing.T, func() time.Time) []tidegate.Store, among ...tidegate.Algorithm) {
	clock := new(time.Time)
	stores := open(t, func() time.Time { return *clock })
	done := 0
	for seed := uint64(0); done < edits; seed++ {
		*clock = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(seed) * 24 * time.Hour)
		p := &play{T: t, rand: rand.New(rand.NewPCG(seed, 8)), clock: clock, among: among, rule: fmt.Sprint("rule-", seed)}
		for _, s := range stores {
			p.nodes = append(p.nodes, &node{store: s, had: map[tidegate.Algorithm]bool{}})
		}
		p.run()
		done += p.edits
		if t.Failed() {
			t.Fatalf("seed %d, edit %d", seed, p.edits)
		}
	}
	t.Logf("%d edits", done)
}

// play is the life of one rule file.
type play struct {
	*testing.T
	rand  *rand.Rand
	clock *time.Time
	among []tidegate.Algorithm
	rule  string // its name
	nodes []*node
	old   []*version // that were in force somewhere
	edits int
	books []*book
}

// node decides by one version.
type node struct {
	store   tidegate.Store
	live    *rules.Live
	gate    *tidegate.Gate
	version *version
	had     map[tidegate.Algorithm]bool // in force here at any time
}

func (p *play) run() {
	for _, n := range p.nodes {
		p.edit(n, p.any())
	}
	p.open()
	for most := p.edits + p.rand.IntN(12); !p.Failed(); {
		n := p.nodes[p.rand.IntN(len(p.nodes))]
		switch p.rand.IntN(40) {
		case 0:
			if p.edits >= most {
				return
			}
			p.edit(n, p.any())
		case 1:
			p.switches(n)
		case 2, 3, 4, 5, 6, 7:
			most := []time.Duration{period / 100, period / 10, period / 3, 3 * period}[p.rand.IntN(4)]
			p.later(time.Duration(p.rand.Int64N(int64(most))))
		default:
			p.ask(n)
		}
	}
}

// later lets time pass, in whole microseconds: the clock of Redis has no others.
func (p *play) later(d time.Duration) {
	*p.clock = p.clock.Add((d + time.Microsecond - 1).Truncate(time.Microsecond))
}

// edit puts a version into force on a node.
func (p *play) edit(n *node, v *version) {
	p.edits++
	set, err := rules.Parse("rules.yaml", []byte(v.file(p.rule)), rules.Config{Now: func() time.Time { return *p.clock }})
	if err != nil {
		p.Fatal(err)
	}
	if n.live == nil {
		n.live = rules.NewLive(set)
		n.gate = tidegate.NewGate(n.live, n.store)
	} else {
		n.live.Swap(set)
	}
	n.version = v
	n.had[v.algorithm] = true
	p.old = append(p.old, v)
	for _, b := range p.books {
		b.widen()
	}
}

// any returns a new version, or one that was in force before: a rollback.
func (p *play) any() *version {
	if len(p.old) > 0 && p.rand.IntN(3) == 0 {
		return p.old[p.rand.IntN(len(p.old))]
	}
	return p.random()
}

// caller is somebody who asks, in a tier.
type caller struct {
	user string
	pro  bool
}

func (c caller) Value(string) (string, bool) { return "", false }

func (c caller) Identity(name string) (string, bool) {
	switch {
	case name == "user":
		return c.user, true
	case name == "plan" && c.pro:
		return "pro", true
	}
	return "", name == "plan"
}

var users = []string{"ann", "bob"}

// take sends a request, and holds what is admitted to the bounds.
func (p *play) take(n *node, c caller) tidegate.Decision {
	d := n.gate.Decide(context.Background(), &tidegate.Request{Method: "GET", Path: "/", Values: c})
	if d.Err != nil {
		p.Fatal(d.Err)
	}
	if d.OK {
		for _, b := range p.books {
			b.admit(p, n, c)
		}
	}
	return d
}

func (p *play) caller() caller { return caller{users[p.rand.IntN(len(users))], p.rand.IntN(2) == 0} }

// ask asks a node. A caller that is refused sometimes comes back at the time it was told.
func (p *play) ask(n *node) {
	c := p.caller()
	d := p.take(n, c)
	switch {
	case d.OK:
		return
	case d.RetryAfter <= 0 || d.RetryAfter > 2*hour:
		p.Errorf("%s is refused with %+v", n.version, d)
	case p.rand.IntN(5) == 0:
		p.later(d.RetryAfter)
		if again := p.take(n, c); !again.OK {
			p.Errorf("%s: told to come back in %s by %s, and then in %s by %s", n.version, d.RetryAfter, d.Limit, again.RetryAfter, again.Limit)
		}
	}
}

// switches uses up what a caller has, and has the rules changed in everything but their
// numbers: the caller must not be refilled, nor be held longer than was told.
func (p *play) switches(n *node) {
	c := p.caller()
	told := tidegate.Decision{OK: true}
	for told.OK {
		told = p.take(n, c)
	}
	was := n.version
	p.edit(n, p.like(was))
	if d := p.take(n, c); d.OK {
		p.Errorf("%s to %s: refilled, %d more", was, n.version, d.Remaining)
		return
	}
	if p.rand.IntN(2) == 0 { // or asks for all there is before that
		p.later(time.Duration(p.rand.Int64N(int64(told.RetryAfter))))
		for p.take(n, c).OK {
		}
		return
	}
	p.later(told.RetryAfter + was.rounding(n.version))
	again := p.take(n, c)
	switch {
	case again.OK || !was.plain():
	case again.Limit.Terms.Answer.Nominal == nil && p.elsewhere(n): // what others have used counts, too
	case told.Limit.Terms.Answer.Nominal != nil && told.Limit.Identity() == again.Limit.Identity():
		// It counts there again, at its own pace and no longer at that of the rules before.
	default:
		p.Errorf("%s to %s: told to come back in %s by %s, and then in %s by %s", was, n.version, told.RetryAfter, told.Limit, again.RetryAfter, again.Limit)
	}
}

// elsewhere reports whether another node counted by the algorithm that n has now.
func (p *play) elsewhere(n *node) bool {
	for _, other := range p.nodes {
		if other != n && other.had[n.version.algorithm] {
			return true
		}
	}
	return false
}
