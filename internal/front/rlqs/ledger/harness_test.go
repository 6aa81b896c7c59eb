package ledger_test

import (
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate/internal/dev/quotafilter"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

const step = time.Millisecond

// simulation is ledgers, filters that each has a stream to one of them, and time.
type simulation struct {
	*rand.Rand
	now   time.Duration
	limit ledger.Limit
	times ledger.Times
	every time.Duration // between two reports

	shared  *shared // nil means there is one ledger, with a fund of its own
	ledgers []*ledger.Ledger
	filters []*filter
	streams int

	sent     map[ledger.Node][]sending
	admitted []time.Duration
	asked    int
	changes  int
	loses    int // one word in so many is not sent; 0 means none

	shares map[*ledger.Ledger]*shared // nil means the shared bucket answers; otherwise what each ledger has meanwhile
}

// shared is the bucket of a fleet.
type shared struct {
	level, perSecond, burst, floor float64
	at                             time.Duration
	taken, spilt                   float64 // spilt: not refilled, because it was full
	calls                          int
}

func (s *shared) pay(now time.Duration, tokens, spare int64) (left int64, enough bool) {
	level := s.level + s.perSecond*(now-s.at).Seconds()
	s.level, s.at = min(level, s.burst), now
	s.spilt += level - s.level
	s.calls++
	if s.level-float64(tokens) >= s.floor+float64(spare) {
		s.level -= float64(tokens)
		s.taken += float64(tokens)
		enough = true
	}
	return int64(s.level - s.floor), enough
}

// cutOff has every ledger decide by its share of the bucket: its own copy, in which everything costs as many times
// as there are ledgers.
func (w *simulation) cutOff() {
	w.shares = make(map[*ledger.Ledger]*shared)
	for _, l := range w.ledgers {
		own := *w.shared
		w.shares[l] = &own
	}
}

// rejoin charges what was taken meanwhile to the shared bucket, which answers again.
func (w *simulation) rejoin() {
	level := 0.0
	for _, own := range w.shares {
		own.pay(w.now, 0, 0)
		level += own.level / float64(len(w.shares))
	}
	w.shared.level, w.shared.at, w.shares = level, w.now, nil
}

// pay takes from the shared bucket, or from the share of a ledger.
func (w *simulation) pay(l *ledger.Ledger, tokens, spare int64) (left int64, enough bool) {
	if own := w.shares[l]; own != nil {
		_, enough = own.pay(w.now, tokens*int64(len(w.ledgers)), spare)
		return ledger.Away, enough
	}
	return w.shared.pay(w.now, tokens, spare)
}

// filter is an Envoy with one bucket.
type filter struct {
	quotafilter.Bucket
	node   ledger.Node
	ledger *ledger.Ledger // nil means it has no stream
	words  []word         // under way, in order
	report time.Duration  // the next one
	demand func(now time.Duration) float64
	some   float64 // of a request
	alive  bool

	admitted []time.Duration
}

// word is an assignment under way.
type word struct {
	arrives time.Duration
	strategy
}

type strategy = ledger.Strategy

func newSimulation(seed uint64, l ledger.Limit, t ledger.Times, ledgers int, ahead bool) *simulation {
	w := &simulation{Rand: rand.New(rand.NewPCG(seed, 1)), limit: l, times: t, every: 100 * time.Millisecond, sent: make(map[ledger.Node][]sending)}
	var how *ledger.Ahead
	if ahead {
		a, err := ledger.NewAhead(l, t)
		if err != nil {
			panic(err)
		}
		how = &a
		perSecond := float64(l.Events) / l.Period.Seconds()
		w.shared = &shared{level: float64(l.Burst), perSecond: perSecond, burst: float64(l.Burst), floor: float64(a.Floor)}
	}
	for range ledgers {
		w.ledgers = append(w.ledgers, ledger.New(l, t, how, 0))
	}
	return w
}

func constant(perSecond float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return perSecond }
}

// add adds an Envoy that has a stream.
func (w *simulation) add(demand func(time.Duration) float64) *filter {
	f := &filter{demand: demand, alive: true}
	w.filters = append(w.filters, f)
	w.connect(f)
	return f
}

// connect opens a stream to one of the ledgers. The first report comes with it.
func (w *simulation) connect(f *filter) {
	w.disconnect(f)
	w.streams++
	f.node, f.ledger, f.report = ledger.Node(w.streams), w.ledgers[w.IntN(len(w.ledgers))], w.now
}

// disconnect ends the stream. What is under way may be lost.
func (w *simulation) disconnect(f *filter) {
	if f.ledger == nil {
		return
	}
	f.ledger.Close(w.now, f.node)
	f.ledger = nil
	f.words = f.words[:w.IntN(len(f.words)+1)]
}

// run lets time pass.
func (w *simulation) run(until time.Duration, each func()) {
	for ; w.now < until; w.now += step {
		if each != nil {
			each()
		}
		for _, f := range w.filters {
			w.filter(f)
		}
		if w.now%max((w.times.Renewal()/4).Truncate(step), step) == 0 {
			for _, l := range w.ledgers {
				w.tick(l)
			}
		}
	}
}

// filter is what an Envoy does in a step.
func (w *simulation) filter(f *filter) {
	for len(f.words) > 0 && f.words[0].arrives <= w.now {
		s := f.words[0].strategy
		f.Assign(w.now, quotafilter.TokenBucket{MaxTokens: uint32(s.Max), TokensPerFill: uint32(s.Fill), FillInterval: s.Interval}, w.times.TTL)
		f.words = f.words[1:]
	}
	if f.alive {
		for f.some += f.demand(w.now) * step.Seconds(); f.some >= 1; f.some-- {
			w.asked++
			if f.Admit(w.now) {
				f.admitted = append(f.admitted, w.now)
				w.admitted = append(w.admitted, w.now)
			}
		}
	}
	if f.ledger != nil && w.now >= f.report {
		allowed, denied := f.Report()
		f.ledger.Report(w.now, f.node, allowed+denied)
		f.report = w.now + w.every
		w.tick(f.ledger)
	}
}

// tick has a ledger tell its nodes.
func (w *simulation) tick(l *ledger.Ledger) {
	for _, a := range l.Tick(w.now, func(tokens, spare int64) (int64, bool) { return w.pay(l, tokens, spare) }) {
		if a.New && !a.Denies() {
			w.changes++
		}
		for _, f := range w.filters {
			switch {
			case f.ledger != l || f.node != a.Node:
			case w.loses > 0 && w.IntN(w.loses) == 0:
				l.Lost(w.now, a.Node)
			default:
				w.send(f, a.Strategy)
			}
		}
	}
}

// send has a word arrive later, by less than Delivery, and after those before it.
func (w *simulation) send(f *filter, s ledger.Strategy) {
	w.sent[f.node] = append(w.sent[f.node], sending{w.now, s})
	at := w.now + time.Duration(w.Int64N(int64(w.times.Delivery/step)))*step
	if n := len(f.words); n > 0 {
		at = max(at, f.words[n-1].arrives)
	}
	f.words = append(f.words, word{at, s})
}

// above asks the oracle about what was admitted, and about what could have been.
func (w *simulation) above() (int, float64) {
	if most := worst(w.sent, w.limit, w.times); most > 1e-6*float64(w.limit.Burst) {
		return 1, most
	}
	return quotafilter.Above(w.admitted, float64(w.limit.Events)/w.limit.Period.Seconds(), float64(w.limit.Burst))
}

// rate is how many a second were admitted from then on.
func rate(times []time.Duration, from, to time.Duration) float64 {
	n := 0
	for _, t := range times {
		if t >= from && t < to {
			n++
		}
	}
	return float64(n) / (to - from).Seconds()
}
