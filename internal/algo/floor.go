package algo

// SetFloor makes a law grant only what leaves floor events. Used events are counted as
// before.

// SetFloor makes l leave floor events.
func (l *BucketLaw) SetFloor(floor int64) {
	l.Fits = lessFloor(l.Cap, floor)
	l.Brim = mul(l.Fits, l.Em)
}

// SetFloor makes l leave floor events.
func (l *CounterLaw) SetFloor(floor int64) { l.Brim = lessFloor(l.Events, floor) }

// SetFloor makes l leave floor events.
func (l *SlidingLaw) SetFloor(floor int64) { l.Brim = lessFloor(l.Events, floor) }

// SetFloor makes l leave floor events.
func (l *RunsLaw) SetFloor(floor int64) {
	l.log.Brim = lessFloor(l.log.Events, floor)
	l.parts.Brim = lessFloor(l.parts.Events, floor)
}

// SetFloor makes l leave floor slots.
func (l *LeaseLaw) SetFloor(floor int64) { l.Brim = lessFloor(l.Slots, floor) }

// lessFloor returns all less floor, or 0 if that is negative. A negative floor counts as 0.
func lessFloor(all, floor int64) int64 { return max(0, all-max(0, floor)) }
