package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// link is a node's connection to the server. It is the chain.Shared that the node and its
// heartbeats get.
type link struct {
	Network
	node   int
	known  bool // the node knew the others when it started
	born   time.Duration
	server *server
	faults timeline
	start  time.Time
	// deadline is after how long a call is overdue.
	deadline time.Duration

	mu    sync.Mutex
	rand  *rand.Rand
	there time.Time // when the last message to the server arrives: none overtakes it
	back  time.Time // the same for messages from the server
	heard time.Time // when the last answer came
	asked time.Time // when the first call was sent after that
	cut   bool      // the node has crashed
	out   int       // calls without an answer that are not overdue yet
	most  int       // the highest value that out ever had
	stood []Span    // when messages were late because one was lost; in no order
}

var _ chain.Shared = (*link)(nil)

var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset by peer")
)

// resend is after how long TCP sends a lost message again.
const resend = 200 * time.Millisecond

// messageLocked returns when a message arrives that is sent at now. last is when the one before it
// arrives, which it does not overtake; messageLocked updates it.
func (l *link) messageLocked(now time.Time, last *time.Time) time.Time {
	takes := l.Latency/2 + l.faults.extra(l.node, now.Sub(l.start))
	if l.Jitter > 0 {
		takes += time.Duration(l.rand.Int64N(int64(l.Jitter/2) + 1))
	}
	if l.Loss > 0 && l.rand.Float64() < l.Loss {
		from := now.Sub(l.start) + takes
		takes += resend
		l.stood = append(l.stood, Span{from, from + resend})
	}
	at := now.Add(takes)
	if at.Before(*last) {
		at = *last
	}
	*last = at
	return at
}

// silent reports whether messages get lost at now.
func (l *link) silent(now time.Time) bool {
	_, is := l.faults.until(Silent, l.node, now.Sub(l.start))
	return is
}

// operation is what the server does for a call.
type operation struct {
	calls int // how much work it is: that of so many calls
	do    func(*server)
	// late returns do for a caller that no longer waits and may have reused what do refers to.
	late func() func(*server)
}

// call has an operation done, and returns when the answer is here or the time is up.
func (l *link) call(ctx context.Context, op operation) error {
	defer l.underWay(op.calls)()
	now := time.Now()
	l.mu.Lock()
	if l.cut || l.faults.down(now.Sub(l.start)) {
		l.mu.Unlock()
		return errRefused
	}
	if !l.asked.After(l.heard) {
		l.asked = now
	}
	lost := l.silent(now)
	arrives := l.messageLocked(now, &l.there)
	l.mu.Unlock()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = now.Add(time.Hour)
	}
	if lost {
		return expire(deadline)
	}
	if arrives.After(deadline) {
		l.doLater(arrives, op.late())
		return expire(deadline)
	}
	time.Sleep(arrives.Sub(now))
	if end, stands := l.faults.until(Stall, l.node, arrives.Sub(l.start)); stands {
		resumes := l.start.Add(end)
		if resumes.After(deadline) {
			l.doLater(resumes, op.late())
			return expire(deadline)
		}
		time.Sleep(time.Until(resumes))
	}
	if l.faults.down(time.Since(l.start)) {
		return errReset
	}
	op.do(l.server)
	return l.answer(deadline, l.server.work(op.calls))
}

// underWay counts calls that are out, until they return or are overdue.
func (l *link) underWay(calls int) (back func()) {
	add := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.out += n
		l.most = max(l.most, l.out)
	}
	add(calls)
	overdue := time.AfterFunc(l.deadline, func() { add(-calls) })
	return func() {
		if overdue.Stop() {
			add(-calls)
		}
	}
}

// answer waits for the answer, which leaves the server when its work is done.
func (l *link) answer(deadline time.Time, work time.Duration) error {
	now := time.Now()
	l.mu.Lock()
	returns := l.messageLocked(now.Add(work), &l.back)
	lost := l.silent(returns)
	l.mu.Unlock()
	if lost || returns.After(deadline) {
		return expire(deadline)
	}
	time.Sleep(returns.Sub(now))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errReset
	}
	l.heard = returns
	return nil
}

// doLater has the server do at a later time what no caller waits for any more.
func (l *link) doLater(at time.Time, do func(*server)) {
	time.AfterFunc(time.Until(at), func() {
		if !l.faults.down(time.Since(l.start)) {
			do(l.server)
		}
	})
}

// expire waits for the deadline, and returns context.DeadlineExceeded.
func expire(deadline time.Time) error {
	time.Sleep(time.Until(deadline))
	return context.DeadlineExceeded
}

// simply returns the operation of one call that does do, which refers to nothing that its caller may
// reuse.
func simply(do func(*server)) operation {
	return operation{calls: 1, do: do, late: func() func(*server) { return do }}
}

// ownChecks copies checks whose slice and keys the caller may reuse.
func ownChecks(checks []tidegate.Check) []tidegate.Check {
	own := slices.Clone(checks)
	for i := range own {
		own[i].Key = strings.Clone(own[i].Key)
	}
	return own
}

// crash ends the connection: calls fail from now on, and answers under way are lost.
func (l *link) crash() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// MaxBatch implements chain.Backend, as store/redis does.
func (l *link) MaxBatch() int { return 32 }

// Server implements chain.Backend: there is one.
func (l *link) Server(*tidegate.Limit, string) int { return 0 }

var oneServer = []string{"redis"}

// Servers implements chain.Backend.
func (l *link) Servers() []string { return oneServer }

// Heard implements chain.Backend.
func (l *link) Heard(int) (heard, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard, l.asked
}

// Trouble implements chain.Shared.
func (l *link) Trouble() error { return nil }

// TakeBatch implements chain.Backend.
func (l *link) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return l.call(ctx, operation{
		calls: 1 + len(asks)/4,
		do:    func(s *server) { s.takeBatch(asks) },
		late: func() func(*server) {
			own := slices.Clone(asks)
			for i := range own {
				own[i].Checks = ownChecks(own[i].Checks)
			}
			return func(s *server) { s.takeBatch(own) }
		},
	})
}

// Take implements tidegate.Store.
func (l *link) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	asks := []chain.Ask{{Checks: ownChecks(checks), Copies: n}}
	if err := l.call(ctx, simply(func(s *server) { s.takeBatch(asks) })); err != nil {
		return tidegate.Decision{}, err
	}
	return asks[0].Granted, asks[0].Err
}

// effect calls with a function whose error is the answer.
func (l *link) effect(ctx context.Context, do func(*server) error) error {
	answer := make(chan error, 1)
	if err := l.call(ctx, simply(func(s *server) { answer <- do(s) })); err != nil {
		return err
	}
	return <-answer
}

// Adjust implements tidegate.Store.
func (l *link) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	checks = ownChecks(checks)
	return l.effect(ctx, func(s *server) error { return s.adjust(r, checks) })
}

// Renew implements tidegate.Renewer.
func (l *link) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	checks = ownChecks(checks)
	return l.effect(ctx, func(s *server) error { return s.renew(r, checks) })
}

// Post implements chain.Backend.
func (l *link) Post(ctx context.Context, p chain.Post) error {
	p.Check.Key = strings.Clone(p.Check.Key)
	return l.effect(ctx, func(s *server) error { return s.post(p) })
}

// Reserve implements tidegate.Reserver: nothing that is simulated reserves.
func (l *link) Reserve(context.Context, []tidegate.Check, time.Duration) (tidegate.Decision, error) {
	return tidegate.Decision{}, tidegate.ErrUnsupported
}

// Settle implements tidegate.Reserver.
func (l *link) Settle(context.Context, tidegate.Receipt, int64) error {
	return tidegate.ErrUnsupported
}

// Reset implements tidegate.Resetter.
func (l *link) Reset(context.Context, []tidegate.Check) error { return tidegate.ErrUnsupported }

// Beat implements chain.Shared.
func (l *link) Beat(ctx context.Context, h chain.Heartbeat) (chain.Roster, error) {
	answer := make(chan chain.Roster, 1)
	if err := l.call(ctx, simply(func(s *server) { answer <- s.beat(h) })); err != nil {
		return chain.Roster{}, err
	}
	return <-answer, nil
}

// Leave implements chain.Shared.
func (l *link) Leave(ctx context.Context, id string) error {
	return l.call(ctx, simply(func(s *server) { s.leave(id) }))
}

// Entries implements chain.Shared: nobody asks.
func (l *link) Entries(context.Context) ([]chain.Entry, error) { return nil, tidegate.ErrUnsupported }

// Table implements chain.Shared: no simulated instance has one.
func (l *link) Table() chain.Table { return nil }

// Tallies implements chain.Shared.
func (l *link) Tallies() chain.Tallies { return linkTallies{l} }

// Regions implements chain.Shared: the regions of a simulation have links of their own.
func (l *link) Regions() chain.Regions { return nil }

// Shelf implements chain.Shared: rules of a simulation do not come from Redis.
func (l *link) Shelf(string) chain.Shelf { return nil }
