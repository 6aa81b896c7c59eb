package node

import (
	"math"
	"time"
)

// batcher decides when calls that are ready are sent, and how many share a round trip.
// While few batches are out, whoever is ready leaves at once. While more are, fewer than
// fit into a batch wait for a reply, since a busy store would make them wait anyway; but no
// longer than the first of them can.
//
// No more than a window of calls wait for a reply at once: a server that has read a burst
// says nothing before it has decided all of it, and could not be told from one that is gone.
// The window grows while replies come as quickly as ever, and shrinks when they do not.
// Calls that would not be back in time any more may leave beyond it, up to twice as many.
//
// It is a value: step takes it from one to the next, and reads no clock.
type batcher struct {
	most    int           // calls in a batch
	ready   int           // calls that wait to be sent
	leave   time.Duration // when the first of them leaves, if the window lets it
	last    time.Duration // when it has to leave to be back in time
	out     int           // batches that have no reply yet
	calls   int           // calls of these that are not overdue
	least   int           // the smallest window
	window  int           // calls that may be out
	blocked bool          // the window has held calls back since it was the smallest
	sending bool          // a worker is about to take a batch
}

// fewBatches are out while nobody waits for a reply: one that is being decided, and one
// that is on its way.
const fewBatches = 2

const (
	maxWindow    = 1 << 15
	mostWindows  = 2                            // that are sent to be back in time
	neverWaking  = time.Duration(math.MaxInt64) // before there is a reply
	leastAlone   = 32                           // calls that go alone, in the smallest window
	leastBatches = 4                            // full batches, in the smallest window
)

// batchEvent is what happens to a batcher.
type batchEvent struct {
	kind        batchKind
	now         time.Duration
	n           int           // batchTaken: calls that were; batchReplied: those that were not overdue
	leave, last time.Duration // batchReady: of this call; batchTaken: of the first that is left
	speed       speed         // batchReplied: of the reply
}

// speed is how quickly a reply comes, compared with what the distance takes.
type speed uint8

const (
	speedSteady speed = iota
	speedQuick        // the server had hardly anything else to do
	speedSlow         // it had much else to do
)

type batchKind uint8

const (
	batchReady   batchKind = iota // a call
	batchTaken                    // calls, by a worker that sends them
	batchReplied                  // to a batch
	batchOverdue                  // a call has no reply in time
	batchDue                      // time has passed
)

// step returns the batcher after e, and whether a worker has to take a batch.
func (b batcher) step(e batchEvent) (next batcher, send bool) {
	switch e.kind {
	case batchReady:
		if b.ready++; b.ready == 1 || e.leave < b.leave {
			b.leave = e.leave
		}
		if b.ready == 1 || e.last < b.last {
			b.last = e.last
		}
	case batchTaken:
		b.ready, b.leave, b.last, b.sending = b.ready-e.n, e.leave, e.last, false
		b.out, b.calls = b.out+1, b.calls+e.n
	case batchReplied:
		b.out, b.calls = b.out-1, b.calls-e.n
		b.resize(e.speed, e.n)
	case batchOverdue:
		b.calls--
	}
	if b.sending || b.ready == 0 {
		return b, false
	}
	if e.now < b.wake() {
		b.blocked = b.blocked || b.calls >= b.window
		return b, false
	}
	b.sending = true
	return b, true
}

// resize changes the window by how quickly calls were answered.
func (b *batcher) resize(s speed, calls int) {
	switch {
	case b.calls == 0 && b.ready == 0:
		b.window, b.blocked = b.least, false
	case s == speedSlow:
		b.window = max(b.window-calls, b.least)
	case s == speedQuick && b.blocked:
		b.window = min(b.window+calls, maxWindow)
	}
}

// wake is when calls that are ready are sent if nothing else happens.
func (b *batcher) wake() time.Duration {
	switch {
	case b.calls >= mostWindows*b.window:
		return neverWaking
	case b.calls >= b.window:
		return b.last
	case b.out >= fewBatches && b.ready < b.most:
		return b.leave
	}
	return 0
}
