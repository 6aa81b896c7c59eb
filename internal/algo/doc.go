// Package algo is the arithmetic of every limit. Each algorithm has one file with
// a law (the limit's numbers) and a state (what is stored for a key), and
// functions of (state, now, ask) and nothing else. It has no clock, no lock, no
// goroutine and no I/O; stores own those. Start with Ask, Verdict and the law
// of the algorithm you need.
//
// Time is in ticks of 1/1024 µs since the Unix epoch, 0 to LastInstant; windows and logs count in
// whole microseconds, and interpolate in units of 2^s µs chosen so that every
// product stays below 2^53, so that a store that computes in doubles agrees to
// the bit. Everything saturates instead of wrapping.
//
// Time in a state never runs backwards. A state later than now is decided as of
// its own instant; one that lies more than a period ahead, after a clock step, is
// moved to now with all its counts. A step therefore never refills, and delays
// no caller by more than one extra period.
package algo

// Ask is what a request asks of one limit.
type Ask struct {
	Cost    int64 // events per copy; 0 peeks
	Copies  int64 // how many copies at most, at least 1
	MaxWait int64 // ticks a bucket may be charged ahead
}

// unit returns the cost that the answer is about: a peek asks about one event.
func (a Ask) unit() int64 { return max(a.Cost, 1) }

// copies returns how many of the copies asked for fit into free events. A peek takes
// nothing: if one fits, all do.
func (a Ask) copies(free int64) int64 {
	switch {
	case free < a.unit():
		return 0
	case a.Cost <= 0 || a.Copies == 1:
		return a.Copies
	}
	return min(a.Copies, free/a.Cost)
}

// Verdict is the answer of one limit, in ticks. It has no more than four words, which
// the compiler keeps in registers: a fifth would cost every law some ten nanoseconds.
type Verdict struct {
	Granted   int64 // copies; all of Copies for a peek that would pass
	Remaining int64 // events that would still pass
	Reset     int64 // until the key is as good as new
	Delay     int64 // Wait if granted, Retry if not; Never if the cost is above the capacity less the floor
}

// Wait returns how long it is until the first granted copy may go ahead.
func (v Verdict) Wait() int64 {
	if v.Granted == 0 {
		return 0
	}
	return v.Delay
}

// Retry returns how long it is until the refused ask would pass; 0 if it never will.
func (v Verdict) Retry() int64 {
	if v.Granted > 0 || v.Never() {
		return 0
	}
	return v.Delay
}

// Never reports whether the cost is above the capacity less the floor.
func (v Verdict) Never() bool { return v.Delay == Never }
