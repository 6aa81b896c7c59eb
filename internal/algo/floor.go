package algo

// Above has a law grant only what leaves floor events: what is used is counted as before,
// and less of it is there for who asks.

// Above leaves floor events.
func (l *BucketLaw) Above(floor int64) {
	l.Fits = above(l.Cap, floor)
	l.Brim = mul(l.Fits, l.Em)
}

// Above leaves floor events.
func (l *CounterLaw) Above(floor int64) { l.Brim = above(l.Events, floor) }

// Above leaves floor events.
func (l *SlidingLaw) Above(floor int64) { l.Brim = above(l.Events, floor) }

// Above leaves floor events.
func (l *RunsLaw) Above(floor int64) {
	l.log.Brim = above(l.log.Events, floor)
	l.parts.Brim = above(l.parts.Events, floor)
}

// Above leaves floor slots.
func (l *LeaseLaw) Above(floor int64) { l.Brim = above(l.Slots, floor) }

func above(all, floor int64) int64 { return max(0, all-max(0, floor)) }
