package node

import (
	"slices"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// call is one call of the backend for a vector, with all its waiters. A waiter finds its answer
// by its index: grants go to waiters in the order of arrival, skipping those that have left.
// Everything is under shard.mu until done is set. After that, nothing that waiters read
// changes, and they read it without the lock.
type call struct {
	run          func() // calls workRest with this call; made once
	stream       *stream
	newer, older *call // neighbours in the list that begins at shard.first

	wake   chan struct{} // one token if there is one waiter; closed if there are more
	closed bool          // wake is closed

	deadlines []time.Duration // of the waiters, by index
	left      []int           // waiters that left without an answer, in order
	expired   int             // waiters before this index were woken because their deadlines have passed
	watched   int             // waiters from crowded up to this index were woken to watch their contexts

	ready   time.Duration // when it should be sent at the latest
	lag     time.Duration // how late its worker was in sending it
	sent    bool          // a worker has it
	stamp   stamp         // from before it was sent
	back    time.Duration // when it should have its reply
	overdue bool          // it had no reply by then
	early   bool          // a waiter with an earlier deadline was decided locally; that was recorded as no failure
	// windowed is true if it counts in the window of its queue: from when it is first sent until its first reply.
	windowed bool
	late     late
	name     tidegate.Handle // of the slots that it asks for
	givenUp  bool            // those slots are to be given back

	done         atomic.Bool
	alone        bool              // it had a single waiter, so it can be reused; see release
	releasedOnce atomic.Bool       // by the waiter or by the worker
	served       int               // how many waiters were granted: the first of those that have not left
	granted      tidegate.Decision // what served waiters got, if grants is empty
	grants       []granted         // what served waiters got, if it came from several replies
	refused      tidegate.Decision // what all other waiters get, unless there is an err
	err          error

	sole []tidegate.Check // the checks of the caller, if the call is not shared; Over is written there while it waits
	asks [1]chain.Ask
}

// granted is what some waiters were granted: those whose places (see call.place) are below until, and
// not below the until of the element before.
type granted struct {
	until int
	d     tidegate.Decision
}

// late tracks waiters that were decided locally before the reply came. The reply shows what of
// that has to go to the backlog.
type late struct {
	undecided int64 // copies that are just being decided locally
	admitted  int64 // copies admitted locally
	refused   int64 // copies refused locally, or served by the grants of another call for such copies
	replied   bool
	covered   int64   // copies of the reply that are kept for undecided ones
	grant     charged // what covered copies were charged
	unsure    bool    // it is not known whether the call was charged: nothing goes to the backlog
}

// again returns what remains to be tracked when the call is sent again.
func (l *late) again() late {
	return late{undecided: l.undecided, covered: l.covered, grant: l.grant}
}

// joinLocked adds a waiter and returns its index.
func (c *call) joinLocked(deadline time.Duration) int {
	c.deadlines = append(c.deadlines, deadline)
	return len(c.deadlines) - 1
}

// place returns how many waiters before index i have not left.
func (c *call) place(i int) int {
	if len(c.left) == 0 {
		return i
	}
	before, _ := slices.BinarySearch(c.left, i)
	return i - before
}

// waiting returns how many waiters have no answer.
func (c *call) waiting() int { return len(c.deadlines) - len(c.left) - c.served }

// serve grants d to up to grants waiters, and returns how many grants are left over.
func (c *call) serve(d *tidegate.Decision, grants int64) int64 {
	n := min(grants, int64(c.waiting()))
	if n <= 0 {
		return grants
	}
	if c.served == 0 {
		c.granted = *d
	} else if len(c.grants) == 0 {
		c.grants = []granted{{c.served, c.granted}}
	}
	c.served += int(n)
	if len(c.grants) > 0 {
		c.grants = append(c.grants, granted{c.served, *d})
	}
	return grants - n
}

// conclude answers all remaining waiters with refusal or, if err is not nil, with err. ended
// means that the worker is about to end and release the call.
func (c *call) conclude(refusal *tidegate.Decision, err error, ended bool) {
	if refusal != nil {
		c.refused = *refusal
	}
	c.err = err
	c.alone = ended && len(c.deadlines) == 1 && len(c.left) == 0
	c.done.Store(true)
}

// answer returns the answer to a waiter of a call that is done, or has served it.
func (c *call) answer(i int) (*tidegate.Decision, error) {
	at := c.place(i)
	if at >= c.served {
		return &c.refused, c.err
	}
	for g := range c.grants {
		if at < c.grants[g].until {
			return &c.grants[g].d, nil
		}
	}
	return &c.granted, nil
}

// leaveLocked marks a waiter as having left.
func (c *call) leaveLocked(i int) {
	at, _ := slices.BinarySearch(c.left, i)
	c.left = slices.Insert(c.left, at, i)
	c.sole = nil
}

// wakeAll wakes all waiters, which look whether they have an answer. Call it under shard.mu or
// after endCallLocked, when nobody else can wake them.
func (c *call) wakeAll() {
	if len(c.deadlines) == 1 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
		return
	}
	close(c.wake)
	if c.closed = true; !c.done.Load() {
		c.wake, c.closed = make(chan struct{}, 1), false
	}
}

// expireLocked wakes the waiters whose deadlines have passed, and returns the next deadline; 0
// means that there is none.
func (c *call) expireLocked(now time.Duration) time.Duration {
	n := c.expired
	for n < len(c.deadlines) && c.deadlines[n] <= now {
		n++
	}
	if n > c.expired {
		c.expired = n
		c.wakeAll()
	}
	if n < len(c.deadlines) {
		return c.deadlines[n]
	}
	return 0
}

// watchLocked wakes the waiters from crowded on whose deadlines are not after this one, to watch
// their contexts from now on. It returns the deadline of the next waiter; 0 means there is none.
func (c *call) watchLocked(deadline time.Duration) time.Duration {
	n := max(c.watched, crowded)
	for n < len(c.deadlines) && c.deadlines[n] <= deadline {
		n++
	}
	if n > max(c.watched, crowded) {
		c.watched = n
		c.wakeAll()
	}
	if n < len(c.deadlines) {
		return c.deadlines[n]
	}
	return 0
}

// settleLocked is called when the reply comes: copies that it grants first cover what was
// admitted locally, and then what is still being decided. It returns how many are left for the
// waiters, and how many copies were admitted locally and are not charged: these go to the backlog.
// Both are 0 if the reply is an error after which the call may have been charged.
func (l *late) settleLocked(copies int64, err error) (rest, uncharged int64) {
	l.replied = true
	if err != nil {
		l.unsure = mayBeCharged(err)
		if !l.unsure {
			uncharged = l.admitted
		}
		return 0, uncharged
	}
	own := min(copies, l.admitted)
	uncharged, copies = l.admitted-own, copies-own
	more := min(copies, l.undecided-l.covered)
	l.covered += more
	return copies - more, uncharged
}

// decidedLocked notes that a waiter was decided locally: of the copies that it asked for, the local
// store admitted some, and some were refused. If the reply has come meanwhile, uncharged is how many
// copies go to the backlog at once; otherwise the reply shows that later. unused is how many copies
// that a reply granted are to be given back.
func (l *late) decidedLocked(asked, admitted, refused int64) (uncharged, unused int64) {
	l.undecided -= asked
	own := min(asked-refused, l.covered)
	unused = min(refused, l.covered-own)
	l.covered -= own + unused
	uncharged = max(0, admitted-own)
	switch {
	case !l.replied:
		l.admitted += uncharged
		l.refused += refused - unused
		return 0, unused
	case l.unsure:
		return 0, unused
	}
	return uncharged, unused
}

// passLocked notes that so many grants of this call serve waiters of another one.
func (l *late) passLocked(to *late, grants int64) {
	unneeded := min(grants, l.refused)
	l.refused -= unneeded
	to.refused += unneeded
}

// reset makes a call ready to be used again.
func (c *call) reset() {
	if c.closed {
		c.wake = nil
	}
	wake := c.wake
	if wake != nil { // a leftover token must not wake the next waiter
		select {
		case <-wake:
		default:
		}
	}
	clear(c.asks[:])
	c.stream, c.sole, c.err = nil, nil, nil
	c.granted, c.refused, c.grants = tidegate.Decision{}, tidegate.Decision{}, nil
	c.deadlines, c.left, c.expired, c.watched, c.served = c.deadlines[:0], c.left[:0], 0, 0, 0
	c.sent, c.overdue, c.early, c.closed, c.alone, c.late = false, false, false, false, false, late{}
	c.name, c.givenUp = tidegate.Handle{}, false
	c.done.Store(false)
	c.releasedOnce.Store(false)
}
