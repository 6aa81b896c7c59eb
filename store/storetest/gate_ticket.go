package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// testUnreportedBlocks: a request whose outcome nobody reports counts as a failure from the
// start, and blocks as one. A report with another outcome gives its place back, and what it
// counted towards the block. Requests of callers that have promised to report are in flight
// until they do. All kinds share the counters of a key. Many short histories are played, and
// some long ones.
func testUnreportedBlocks(s *subject) {
	if _, ok := reserver(s.store); !ok {
		return
	}
	r := rand.New(rand.NewPCG(2, 12))
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency || k.spec.Algorithm == tidegate.LeakyBucket {
			return // as in testSettledBlocks
		}
		played := 0
		play := func(capacity int, steps []int) {
			s.Helper()
			played++
			w := newWrongPasswords(k.slow("login", int64(capacity)), fmt.Sprint("ann ", played))
			w[0].Limit = asked(w[0].Limit)
			store := s.whole("vectors", "returns", "reservations")
			gates := []*tidegate.Gate{tidegate.NewGate(w, store), tidegate.NewGate(w, store)}
			if err := playTickets(gates, capacity, steps); err != nil {
				s.Fatal(err)
			}
		}
		for n := 0; n < ticketSteps*ticketSteps*ticketSteps; n += lessIf(s.brief, 4, 32) {
			play(1, []int{n % 3, n % ticketSteps, n / ticketSteps % ticketSteps, n / ticketSteps / ticketSteps, 0, 0})
		}
		for range lessIf(s.brief, 40, 5) {
			steps := make([]int, 40)
			for i := range steps {
				steps[i] = r.IntN(ticketSteps)
			}
			play(3, steps)
		}
	})
}

// asked returns l without a deny cache, which may refuse for a moment after a place was given back.
func asked(l *tidegate.Limit) *tidegate.Limit {
	spec := l.Spec
	terms := *spec.Terms
	terms.Handling.NoDenyCache = true
	spec.Terms = &terms
	return tidegate.MustLimit(spec)
}

// ticketSteps is how many steps there are: 0 asks and may report, 1 asks and will, 2 asks and
// never does; others settle a ticket, the oldest or the latest, in one of three ways.
const ticketSteps = 9

// issued is a ticket of a key.
type issued struct {
	ticket   *tidegate.Ticket
	promised bool
}

// playTickets lets steps happen to a key that several gates decide about, and to the model. A
// step that makes no sense is none.
func playTickets(gates []*tidegate.Gate, capacity int, steps []int) error {
	m := tries{capacity: capacity}
	var open []issued
	for i, step := range steps {
		gate := gates[i%len(gates)]
		if step > 2 {
			if len(open) == 0 {
				continue
			}
			which := (step - 3) / 3 * (len(open) - 1)
			if err := settleTry(gate, &m, open[which], []int{401, 200, 0}[step%3]); err != nil {
				return fmt.Errorf("%v: step %d: %w", steps, i+1, err)
			}
			open = append(open[:which], open[which+1:]...)
			continue
		}
		var d tidegate.Decision
		one := issued{promised: step == 1}
		ctx, r := context.Background(), &tidegate.Request{Unattended: true}
		switch step {
		case 0:
			d, one.ticket = gate.IssueSettled(ctx, r)
		case 1:
			d, one.ticket = gate.Issue(ctx, r)
		case 2:
			d = gate.Decide(ctx, r)
		}
		ok := m.enter()
		switch {
		case d.OK != ok:
			return fmt.Errorf("%v: step %d admitted %t: %+v, want %+v", steps, i+1, d.OK, d, m)
		case !ok:
			if m.blocked != (d.RetryAfter > time.Second) {
				return fmt.Errorf("%v: step %d is told to come back in %s: want %+v", steps, i+1, d.RetryAfter, m)
			}
			continue
		}
		if !one.promised {
			m.end(401)
		}
		if one.ticket != nil {
			open = append(open, one)
		}
	}
	return nil
}

func settleTry(gate *tidegate.Gate, m *tries, one issued, status int) error {
	switch {
	case one.promised:
		m.end(status)
	case status == 200:
		m.failed--
	}
	return gate.Settle(context.Background(), one.ticket, tidegate.Outcome{Status: status})
}

// testTicketOnce: a ticket is settled once, also if what it was to be settled once by had no room:
// nothing of that was charged, and what was charged to others is given back for the first report.
func testTicketOnce(s *subject) {
	if _, ok := reserver(s.store); !ok {
		return
	}
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency || k.spec.Algorithm == tidegate.LeakyBucket {
			return // as in testSettledBlocks
		}
		counts := func(name string, status int) *tidegate.Limit {
			spec := k.slow(name, 4).Spec
			spec.Terms = &tidegate.Terms{AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: status, To: status}}}}
			return tidegate.MustLimit(spec)
		}
		tried, errs := counts("tried", 401), counts("errors", 500)
		store := s.whole("vectors", "advisory", "returns", "reservations")
		gate := tidegate.NewGate(wrongPasswords{advisory(tried, "ann", 1), check(errs, "ann", 1)}, store)
		var given []*tidegate.Ticket
		for range 4 {
			if d, t := gate.Issue(context.Background(), &tidegate.Request{}); d.OK && t != nil {
				given = append(given, t)
			}
			s.adjust(tidegate.Receipt{}, check(tried, "ann", 4))
		}
		if len(given) != 4 {
			s.Fatalf("%d of 4 requests got a ticket", len(given))
		}
		for i, want := range []error{nil, tidegate.ErrSettled, tidegate.ErrSettled} {
			if err := gate.Settle(context.Background(), given[3], tidegate.Outcome{Status: 200}); !errors.Is(err, want) {
				s.Errorf("report %d: %v, want %v", i+1, err, want)
			}
			s.wantLeft(1, check(errs, "ann", 1))
		}
	})
}
