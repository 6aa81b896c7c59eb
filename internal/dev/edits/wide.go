package edits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
)

// RunWide makes so many edits of whatever a rule can say about its limits: numbers, bursts, algorithms,
// periods, what may pass above a limit, what is set aside, costs, and how many limits there are.
// Requests cost several events, and some give them back.
//
// What a node admits in any time W is at most the largest burst and the largest rate·W of its
// versions (of those of all nodes, where there are several), and what was given back; where they count
// in several counters, a burst more. Nobody is refilled by an edit, nor held longer than a refusal says,
// and what fits into the limits in force is never refused for good.
func RunWide(t *testing.T, edits int, open func(t *testing.T, now func() time.Time) []tidegate.Store) {
	clock := new(time.Time)
	var stores []tidegate.Store
	done, stats := 0, wideStats{}
	for seed := uint64(0); done < edits; seed++ {
		if seed%200 == 0 { // a store in memory counts windows until the year 2112
			stores = open(t, func() time.Time { return *clock })
		}
		*clock = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(seed%200) * 50 * 24 * time.Hour)
		w := &wide{T: t, rand: rand.New(rand.NewPCG(seed, 21)), clock: clock, rule: fmt.Sprint("wide-", seed), stats: &stats, kinds: map[wideKind]bool{}}
		for _, s := range stores[:1+seed%2] {
			w.nodes = append(w.nodes, &wideNode{store: s})
		}
		w.run()
		done += w.edits
		if t.Failed() {
			t.Log(strings.Join(w.history, "\n"))
			t.Fatalf("seed %d, edit %d", seed, w.edits)
		}
	}
	t.Logf("%d edits, %+v", done, stats)
	if stats.Came*50 < stats.Asked || stats.Switched*5 < done || stats.Returned == 0 {
		t.Error("the test has lost its point")
	}
}

type wideStats struct{ Asked, Admitted, Came, Switched, Returned int }

type wide struct {
	*testing.T
	rand    *rand.Rand
	clock   *time.Time
	rule    string
	nodes   []*wideNode
	old     []*wideVersion
	edits   int
	history []string
	stats   *wideStats
	kinds   map[wideKind]bool // of counters, that were in force
}

type wideKind struct {
	algorithm tidegate.Algorithm
	period    time.Duration
}

type wideNode struct {
	store   tidegate.Store
	live    *rules.Live
	gate    *tidegate.Gate
	version *wideVersion
	book    map[string]*wideBook // by user
}

// Signal leaves elastic limits no room.
func (w *wide) Signal(string) (float64, bool) { return 0.9, true }

func (w *wide) note(format string, args ...any) {
	w.history = append(w.history, w.clock.Format("02 15:04:05.000000 ")+fmt.Sprintf(format, args...))
	if len(w.history) > 300 {
		w.history = w.history[1:]
	}
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func (w *wide) edit(n *wideNode, v *wideVersion) {
	w.edits++
	set, err := rules.Parse("rules.yaml", []byte(v.file(w.rule)), rules.Config{Now: func() time.Time { return *w.clock }, Signals: w})
	if err != nil {
		w.Fatalf("%v\n%s", err, v.file(w.rule))
	}
	if n.live == nil {
		n.live = rules.NewLive(set)
		n.gate = tidegate.NewGate(n.live, n.store)
		n.book = map[string]*wideBook{}
		for _, u := range users {
			n.book[u] = &wideBook{}
		}
	} else {
		n.live.Swap(set)
	}
	n.version = v
	w.old = append(w.old, v)
	w.note("node %d: %s", w.index(n), v)
	w.kinds[wideKind{v.free.algorithm, v.free.period}] = true
	for _, m := range w.nodes {
		for _, b := range m.book {
			b.widen(v)
		}
	}
}

func (w *wide) index(n *wideNode) int {
	for i := range w.nodes {
		if w.nodes[i] == n {
			return i
		}
	}
	return -1
}

type wideCaller struct {
	user string
	pro  bool
	high bool
}

func (c wideCaller) Value(string) (string, bool) { return "", false }

func (c wideCaller) Identity(name string) (string, bool) {
	return caller{c.user, c.pro}.Identity(name)
}

func (w *wide) request(c wideCaller) *tidegate.Request {
	path := "/"
	if c.high {
		path = "/high"
	}
	return &tidegate.Request{Method: "GET", Path: path, Values: c}
}

func (w *wide) caller() wideCaller {
	return wideCaller{users[w.rand.IntN(len(users))], w.rand.IntN(2) == 0, w.rand.IntN(3) == 0}
}

func (w *wide) run() {
	first := w.random()
	for _, n := range w.nodes {
		w.edit(n, first)
	}
	for most := w.edits + w.rand.IntN(12); !w.Failed(); {
		n := w.nodes[w.rand.IntN(len(w.nodes))]
		switch w.rand.IntN(40) {
		case 0:
			if w.edits >= most {
				return
			}
			if w.rand.IntN(3) == 0 {
				w.edit(n, pick(w.rand, w.old...))
			} else {
				w.edit(n, w.vary(n.version))
			}
		case 1:
			w.switches(n)
		case 2, 3, 4, 5, 6, 7:
			most := []time.Duration{period / 100, period / 10, period / 3, 3 * period}[w.rand.IntN(4)]
			w.later(time.Duration(w.rand.Int64N(int64(most))))
		default:
			w.ask(n)
		}
	}
}

func (w *wide) later(d time.Duration) {
	*w.clock = w.clock.Add((d + time.Microsecond - 1).Truncate(time.Microsecond))
}

func (w *wide) take(n *wideNode, c wideCaller) tidegate.Decision {
	var charge tidegate.Charge
	w.stats.Asked++
	d, visit := n.gate.EnterCharged(context.Background(), w.request(c), &charge)
	if d.Err != nil {
		w.Fatal(d.Err)
	}
	w.note("node %d %+v: %t %d left, retry %s reset %s by %v", w.index(n), c, d.OK, d.Remaining, d.RetryAfter, d.ResetAfter, d.Limit)
	if d.Never {
		w.never(n, c, d)
	}
	if !d.OK {
		return d
	}
	w.stats.Admitted++
	b := n.book[c.user]
	b.admitted = append(b.admitted, wideAdmission{*w.clock, n.version.cost, b.since})
	b.since = numbers{}
	b.widen(n.version)
	if len(w.nodes) > 1 { // what one counts may drain at the pace of what another counts there, or did before
		for _, v := range w.old {
			b.widen(v)
		}
	}
	w.bounded(n, c)
	if w.rand.IntN(12) == 0 {
		w.stats.Returned++
		w.note("returned")
		if err := charge.Return(context.Background()); err != nil {
			w.Fatal(err)
		}
		b.admitted = append(b.admitted, wideAdmission{*w.clock, -n.version.cost, b.since})
	} else {
		charge.Keep()
	}
	if visit != nil {
		if err := visit.End(tidegate.Outcome{Status: 200}); err != nil {
			w.Fatal(err)
		}
	}
	return d
}

func (w *wide) ask(n *wideNode) {
	c := w.caller()
	d := w.take(n, c)
	switch {
	case d.OK || d.Never:
		return
	case d.RetryAfter <= 0 || d.RetryAfter > 25*hour:
		w.Errorf("%s is refused with %+v", n.version, d)
	case w.rand.IntN(4) == 0 && (d.RetryAfter < hour || w.rand.IntN(10) == 0):
		w.stats.Came++
		w.later(d.RetryAfter)
		if again := w.take(n, c); !again.OK {
			w.Errorf("%s: told to come back in %s by %s, and then in %s by %s", n.version, d.RetryAfter, d.Limit, again.RetryAfter, again.Limit)
		}
	}
}

// switches uses up what a caller has, and changes what counts it, in numbers that are no larger.
func (w *wide) switches(n *wideNode) {
	c := w.caller()
	told := w.take(n, c)
	for i := 0; told.OK && i < 1000; i++ {
		told = w.take(n, c)
	}
	if told.Never {
		return
	}
	w.stats.Switched++
	was := n.version
	w.edit(n, w.like(was))
	if d := w.take(n, c); d.OK {
		w.Errorf("%s to %s: refilled, %d more", was, n.version, d.Remaining)
	}
}
