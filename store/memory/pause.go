package memory

import "tidegate.dev/tidegate/internal/algo"

// pause keeps a search that was in vain from being made again too early, for
// longer each time: a search takes as long as a thousand decisions, and there are
// thousands of segments to search.
type pause struct {
	until int64
	long  int64
}

const (
	minPause = 10_000 * algo.Micro
	maxPause = 8_000_000 * algo.Micro
)

// searched notes whether a search found anything.
func (p *pause) searched(found bool, now int64) {
	if found {
		*p = pause{}
		return
	}
	p.long = min(max(minPause, 4*p.long), maxPause)
	p.until = now + p.long
}

// on reports whether another search would come too early. It is not on for longer
// than it was meant to be, should the clock be set back.
func (p *pause) on(now int64) bool {
	wait := p.until - now
	return wait > 0 && wait <= p.long
}
