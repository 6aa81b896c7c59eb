package node

import "time"

// batcher decides when calls that are ready share a round trip. While few batches are
// out, whoever is ready leaves at once. While more are, fewer than fit into a batch wait
// for a reply, since a busy store would make them wait anyway; but no longer than the
// first of them can.
//
// It is a value: step takes it from one to the next, and reads no clock.
type batcher struct {
	most    int           // calls in a batch
	ready   int           // calls that wait to be sent
	leave   time.Duration // when the first of them has to leave, if there are any
	out     int           // batches that have no reply yet
	sending bool          // a worker is about to take a batch
}

// fewBatches are out while nobody waits for a reply: one that is being decided, and one
// that is on its way.
const fewBatches = 2

// batchEvent is what happens to a batcher.
type batchEvent struct {
	kind  batchKind
	now   time.Duration
	n     int           // batchTaken: calls that were
	leave time.Duration // batchReady: of this call; batchTaken: of the first that is left
}

type batchKind uint8

const (
	batchReady   batchKind = iota // a call
	batchTaken                    // calls, by a worker that sends them
	batchReplied                  // to a batch
	batchDue                      // time has passed
)

// step returns the batcher after e, and whether a worker has to take a batch.
func (b batcher) step(e batchEvent) (next batcher, send bool) {
	switch e.kind {
	case batchReady:
		if b.ready++; b.ready == 1 || e.leave < b.leave {
			b.leave = e.leave
		}
	case batchTaken:
		b.ready, b.leave, b.sending, b.out = b.ready-e.n, e.leave, false, b.out+1
	case batchReplied:
		b.out--
	}
	if b.sending || b.ready == 0 || b.out >= fewBatches && b.ready < b.most && e.now < b.leave {
		return b, false
	}
	b.sending = true
	return b, true
}
