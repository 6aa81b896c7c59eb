package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// load is a Subject under load, with the results.
type load struct {
	*Subject
	run       *run
	perSecond float64
	keys      []string

	mu      sync.Mutex
	logs    [][]admission // by key
	points  [bins]Point
	worst   time.Duration // the longest that an answer took
	errs    int64         // errors, if the fail mode is FailLocal: then there must be none
	failure error         // the last of errs
	alone   int64         // decisions that nodes made themselves, because Redis did not
	lost    int64         // slots whose lease was lost
	dropped int64         // answers that nobody got, as the node had crashed
	holding []int         // slots in use now, by key
	most    []int         // the highest values that holding ever had, by key
}

// admission is a request that was admitted.
type admission struct {
	at    int64 // ns of the server's clock since the beginning
	local bool  // Redis did not decide: the node did, or a portion, or counts of its own
	place int   // the region
}

// bins is how many points of time a plot has.
const bins = 240

func newLoad(r *run, i int) *load {
	sub := &r.s.Subjects[i]
	l := &load{Subject: sub, run: r, perSecond: sub.PerSecond}
	if l.perSecond == 0 {
		l.perSecond = sub.Load * sub.admits(sub.Versions[0], r.s.Lasts) / r.s.Lasts.Seconds()
	}
	l.keys = make([]string, sub.Keys)
	for k := range l.keys {
		l.keys[k] = fmt.Sprint("key", k)
	}
	l.logs = make([][]admission, sub.Keys)
	l.holding, l.most = make([]int, sub.Keys), make([]int, sub.Keys)
	return l
}

// fails returns the fail mode: what decides when Redis does not.
func (l *load) fails() tidegate.FailMode {
	if limit := l.Versions[0]; limit.Terms != nil && limit.Terms.Handling.OnStoreFailure != tidegate.FailDefault {
		return limit.Terms.Handling.OnStoreFailure
	}
	return tidegate.FailLocal
}

// request is a request that arrived at a node.
type request struct {
	load      *load
	in        *instance
	node, key int
	now       time.Duration
}

// send sends a request for a random key to a random node, or to the first if the Shape is One.
// Goroutines are used again: growing a new stack takes longer than a decision.
func (l *load) send(rnd *rand.Rand, now time.Duration) {
	q := request{load: l, now: now, key: rnd.IntN(len(l.keys))}
	if l.run.s.Shape != One {
		q.node = rnd.IntN(l.run.s.Nodes)
	}
	r := l.run
	q.in = r.fleet[q.node].Load()
	r.unanswered.Add(1)
	select {
	case r.work <- q:
	default:
		go r.serve(q)
	}
}

// serve makes request q, and then others from r.work until that is closed.
func (r *run) serve(q request) {
	for ok := true; ok; q, ok = <-r.work {
		q.load.ask(q.in, q.node, q.key, q.now)
		r.unanswered.Done()
	}
}

// version returns the version of the limit that a node has at a time.
func (l *load) version(node int, now time.Duration) *tidegate.Limit {
	s := l.run.s
	if s.Rollout == (Span{}) {
		return l.Versions[node%len(l.Versions)]
	}
	if now < s.Rollout.From+(s.Rollout.To-s.Rollout.From)*time.Duration(node)/time.Duration(s.Nodes) {
		return l.Versions[0]
	}
	return l.Versions[len(l.Versions)-1]
}

// ask makes one request, records the answer, and holds the slot if it got one.
func (l *load) ask(in *instance, node, key int, now time.Duration) {
	if in.dead.Load() {
		return // nothing listens there
	}
	checks := [1]tidegate.Check{{Key: l.keys[key], Limit: l.version(node, now), Cost: l.Cost}}
	began := time.Now()
	d, err := in.take(checks[:])
	took := time.Since(began)
	l.run.decided.Add(1)
	held := l.note(&d, err, in.dead.Load(), node, key, now, took)
	if held {
		l.hold(in, &d, checks[:], key)
	}
}

// note records the answer to a request, and reports whether the request now holds a slot.
func (l *load) note(d *tidegate.Decision, err error, dead bool, node, key int, now, took time.Duration) (holds bool) {
	r := l.run
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.points[min(int(now*bins/r.s.Lasts), bins-1)]
	p.Offered++
	l.worst = max(l.worst, took)
	if err == nil {
		err = d.Err
	}
	if err != nil && l.fails() == tidegate.FailLocal {
		l.errs++
		l.failure = err
	}
	if dead {
		l.dropped++
		return false
	}
	if o := d.Receipt.Origin; o == tidegate.OriginLocal || o == tidegate.OriginRule {
		l.alone++
	}
	if !d.OK {
		p.Refused++
		return false
	}
	p.Admitted++
	at, local := d.Receipt.At, d.Receipt.Origin != tidegate.OriginStore
	if local || at == 0 {
		p.Local++
		at = r.server.now().Sub(r.start).Nanoseconds()
	} else {
		at = at/1024*1000 + at%1024*1000/1024 - r.start.UnixNano()
	}
	if isSlot(tidegate.Check{Limit: l.Versions[0]}) {
		l.holding[key]++
		l.most[key] = max(l.most[key], l.holding[key])
		return true
	}
	l.logs[key] = append(l.logs[key], admission{at, local, node % len(r.places)})
	return false
}

// hold holds a slot for a while, renewing its lease, and then gives it back.
func (l *load) hold(in *instance, d *tidegate.Decision, checks []tidegate.Check, key int) {
	lost := false
	for left := l.Hold; left > 0; {
		nap := min(left, checks[0].Limit.Period/3)
		time.Sleep(nap)
		if left -= nap; left > 0 && !in.dead.Load() {
			err := in.queue.Renew(context.Background(), d.Receipt, checks)
			lost = lost || errors.Is(err, tidegate.ErrLeaseLost)
		}
	}
	l.mu.Lock()
	l.holding[key]--
	if lost {
		l.lost++
	}
	l.mu.Unlock()
	if !in.dead.Load() {
		checks[0].Cost = -checks[0].Cost
		_ = in.queue.Adjust(context.Background(), d.Receipt, checks)
	}
}

// poisson draws a number of arrivals, with the given mean.
func poisson(rnd *rand.Rand, mean float64) int {
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rnd.NormFloat64())))
	}
	n, p, least := 0, rnd.Float64(), math.Exp(-mean)
	for p > least {
		p *= rnd.Float64()
		n++
	}
	return n
}
