package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// timedSoft is what a request is held to: a limit that gives way for a while, and the ceiling
// above it.
type timedSoft struct {
	limit, ceiling *tidegate.Limit
	lasts          time.Duration
	cost, floor    int64
}

func newTimedSoft(k kind, name string, events, extra int64, lasts time.Duration) *timedSoft {
	spec := k.brisk(name, events).Spec
	spec.Terms = &tidegate.Terms{MaxOver: lasts}
	return &timedSoft{limit: tidegate.MustLimit(spec), ceiling: k.brisk(name+" ceiling", events+extra), lasts: lasts}
}

func (w *timedSoft) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, w.check(w.limit, w.cost), w.check(w.ceiling, w.cost))
}

func (w *timedSoft) check(l *tidegate.Limit, cost int64) tidegate.Check {
	c := check(l, "ann", cost)
	c.Floor = w.floor
	return c
}

// testGivesWay: a Gate on the store admits requests above a limit for as long as its MaxOver
// says, and then none until the limit has had room for as long. Random requests are compared
// with a model that looks at the limit at every step.
func testGivesWay(s *subject) {
	r := rand.New(rand.NewPCG(1, 26))
	played, soft, hard := 0, 0, 0
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency || k.spec.Algorithm == tidegate.LeakyBucket {
			return // these never give way
		}
		store := s.whole("token_bucket", "raw_time", "vectors", "advisory", "floors", "returns", "changes")
		histories, steps := lessIf(s.brief, 3, 1), lessIf(s.brief, 150, 80)
		if long() {
			histories *= 30
		}
		for i := range histories {
			h := graceHistory{s: s, r: r, step: k.period() / 60}
			// A bucket gets an event every so many steps.
			events := []int64{3, 5, 6, 10, 12}[r.IntN(5)]
			h.rule = newTimedSoft(k, fmt.Sprint("timed ", i), events, 1+r.Int64N(events), h.step*time.Duration(1+r.IntN(50)))
			h.rule.floor = r.Int64N(3) / 2 // for others, in one of three
			h.gate = tidegate.NewGate(h.rule, store)
			h.play(steps)
			played++
			soft, hard = soft+h.soft, hard+h.hard
		}
	})
	s.Logf("%d requests passed above their limit, %d were refused there", soft, hard)
	if played > 0 && (soft == 0 || hard == 0) {
		s.Errorf("%d requests passed above their limit and %d were refused there: the traffic does not test it", soft, hard)
	}
}

// graceHistory is one key, and what is known of it. Nothing happens between two steps, so that
// a limit that has no room at one has none until the next.
type graceHistory struct {
	s    *subject
	r    *rand.Rand
	gate *tidegate.Gate
	rule *timedSoft
	step time.Duration

	began bool      // a grace has begun, and no other may begin yet
	ends  time.Time // it ends
	room  time.Time // since when the limit has had room
	soft  int       // requests that passed above the limit
	hard  int       // requests that would have
}

func (h *graceHistory) play(steps int) {
	busy := false
	for range steps {
		h.s.clock.add(h.step)
		if h.r.IntN(12) == 0 {
			busy = !busy
		}
		h.look(false)
		requests := h.r.IntN(2)
		if busy {
			requests += h.r.IntN(4)
		}
		for range requests {
			h.ask()
		}
	}
}

// look notes whether the limit has room for an event, and whether it has had that for so long
// that another grace may begin.
func (h *graceHistory) look(soft bool) {
	now := h.s.clock.now()
	h.began = h.began && now.Before(h.room.Add(h.rule.lasts))
	switch {
	case h.left(h.rule.limit) == 0:
		h.room = now.Add(h.step)
	case soft:
		h.room = now
	}
}

func (h *graceHistory) left(l *tidegate.Limit) int64 {
	return h.s.takeN(1, h.rule.check(l, 0)).Remaining
}

// want returns what is to become of a request now.
func (h *graceHistory) want() (ok, soft bool) {
	if h.left(h.rule.ceiling) < h.rule.cost {
		return false, false
	}
	if h.left(h.rule.limit) >= h.rule.cost {
		return true, false
	}
	now := h.s.clock.now()
	if h.began && !now.Before(h.ends) {
		h.hard++
		return false, false
	}
	return true, true
}

// ask puts a request to the gate.
func (h *graceHistory) ask() {
	h.s.Helper()
	h.rule.cost = max(1, h.r.Int64N(6)-2)
	now := h.s.clock.now()
	ok, soft := h.want()
	told := h.gate.Peek(context.Background(), &tidegate.Request{})
	d := h.gate.Decide(context.Background(), &tidegate.Request{})
	if d.OK != ok || d.Soft != soft || d.Err != nil {
		h.s.Fatalf("%s with %s above for %s, cost %d, floor %d: %s, soft %t; want admitted %t, soft %t\nbegan %t, ends %s, room since %s, now %s",
			h.rule.limit, h.rule.ceiling, h.rule.lasts, h.rule.cost, h.rule.floor, show(d), d.Soft, ok, soft, h.began, h.ends, h.room, now)
	}
	if told.OK != d.OK || told.Soft != d.Soft || told.Never != d.Never || told.RetryAfter != d.RetryAfter {
		h.s.Fatalf("Peek says %s, soft %t, and then comes %s, soft %t", show(told), told.Soft, show(d), d.Soft)
	}
	switch {
	case soft:
		h.soft++
		if !h.began {
			h.began, h.ends, h.room = true, now.Add(h.rule.lasts), now
		}
	case !ok && !d.Never && h.r.IntN(8) == 0:
		h.retry(d.RetryAfter)
		return
	}
	h.look(soft)
}

// retry looks whether the request passes after the time that it was told, and not a moment
// earlier.
func (h *graceHistory) retry(after time.Duration) {
	h.s.Helper()
	if after <= 0 {
		h.s.Fatal("refused without a time to come back")
	}
	now, steps := h.s.clock.now(), (after+h.step-1)/h.step
	for i := range steps - 1 {
		h.s.at(now, (i+1)*h.step)
		h.look(false)
	}
	h.s.at(now, after-step)
	if d := h.gate.Peek(context.Background(), &tidegate.Request{}); d.OK && h.rule.cost == 1 {
		h.s.Fatalf("told to come back after %s, and admitted %s earlier: %s", after, step, show(d))
	}
	h.s.at(now, after)
	if d := h.gate.Peek(context.Background(), &tidegate.Request{}); !d.OK {
		h.s.Fatalf("told to come back after %s, and then refused: %s", after, show(d))
	}
	h.s.at(now, steps*h.step)
	h.look(false)
}
