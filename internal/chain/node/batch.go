package node

import (
	"math"
	"time"
)

// batcher decides when calls that are ready are sent, and how many share a round trip.
// While fewer than fewBatches are out, a ready call is sent at once. Otherwise calls wait
// until a batch is full, a reply comes or the first of them has to leave: a busy store
// would make them wait anyway.
//
// At most a window of calls is in flight at once: a server that has read a burst sends nothing
// before it has decided all of it, and looks as if it were down. The window grows while replies
// are quick, and shrinks when they are slow. Calls that would otherwise not be back in time may
// exceed it, up to twice its size.
//
// It is a value: step returns the next one, and reads no clock.
type batcher struct {
	most    int           // the most calls in a batch
	ready   int           // calls that wait to be sent
	leave   time.Duration // when the first of them is sent, if the window allows it
	last    time.Duration // when it is sent even beyond the window, to be back in time
	out     int           // batches that have no reply yet
	calls   int           // calls in these batches that are not overdue
	least   int           // the smallest window
	window  int           // how many calls may be in flight
	blocked bool          // the window has held calls back since it was last reset to the smallest
	sending bool          // a worker is about to take a batch
}

// fewBatches is how many batches are out before calls wait: one that the store is working
// on, and one on its way to it.
const fewBatches = 2

const (
	maxWindow    = 1 << 15
	mostWindows  = 2                            // how many windows may be out, if calls would not be back in time otherwise
	neverWaking  = time.Duration(math.MaxInt64) // not before a reply comes
	leastAlone   = 32                           // the smallest window, in calls, where batches are of one call
	leastBatches = 4                            // the smallest window, in full batches
)

// batchEvent is what happens to a batcher.
type batchEvent struct {
	kind        batchKind
	now         time.Duration
	n           int           // batchTaken: calls taken; batchReplied: calls of the batch that were not overdue
	leave, last time.Duration // batchReady: of this call; batchTaken: of the first call left behind
	speed       speed         // batchReplied: of the reply
}

// speed says how quick a reply was, compared with the round trip of an idle server.
type speed uint8

const (
	speedSteady speed = iota
	speedQuick        // the server had hardly anything else to do
	speedSlow         // it had much else to do
)

type batchKind uint8

const (
	batchReady   batchKind = iota // a call is ready to be sent
	batchTaken                    // a worker has taken calls, and sends them
	batchReplied                  // the store replied to a batch
	batchOverdue                  // a call got no reply in time
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

// wake returns when calls that are ready are sent if nothing else happens.
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
