package memory

import "tidegate.dev/tidegate/internal/algo"

// backoff delays the next search for memory after one that found nothing, for longer each time: a
// search takes as long as a thousand decisions, and there are thousands of segments.
type backoff struct {
	until  int64 // ticks: no search before
	length int64 // ticks that the backoff lasts; 0 after a search that found something
}

const (
	minBackoff = 10_000 * algo.Micro
	maxBackoff = 8_000_000 * algo.Micro
)

// record notes whether a search has found anything.
func (b *backoff) record(found bool, now int64) {
	if found {
		*b = backoff{}
		return
	}
	b.length = min(max(minBackoff, 4*b.length), maxBackoff)
	b.until = now + b.length
}

// active reports whether it is too early for another search. A clock that is set back does not
// make the backoff longer.
func (b *backoff) active(now int64) bool {
	wait := b.until - now
	return wait > 0 && wait <= b.length
}
