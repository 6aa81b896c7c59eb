package offenders

import "time"

// slice is the number of a slice of time; six are a minute.
type slice int32

const (
	sliceLength = 10 * time.Second
	perMinute   = 6
	// slices10s is how many slices are kept one by one, for the last minute: six and the current one.
	slices10s = perMinute + 1
	// minutes is how many minutes are kept, for the last ten: those and the current one.
	minutes = 11
	// firstSlice is so large that all slices that are kept have positive numbers.
	firstSlice slice = perMinute * (minutes + 1)
)

func sliceAt(since time.Duration) slice { return firstSlice + slice(since/sliceLength) }

func (s slice) minute() int32 { return int32(s) / perMinute }

// cell returns the index of a slice in what an entry counts.
func (s slice) cell() int { return int(s) % slices10s }

// cellOf returns the same index of a minute.
func cellOf(minute int32) int { return int(minute) % minutes }

// window is a span of time that can be asked about.
type window struct {
	minutes int // its nominal length
	from    slice
	to      slice
}

// windows returns the windows that end now: at least a minute, and at least ten.
func windows(now slice) [2]window {
	return [2]window{
		{1, now - (slices10s - 1), now},
		{10, slice(now.minute()-(minutes-1)) * perMinute, now},
	}
}

// covers returns how much of w has passed, given the time since the first slice.
func (w window) covers(since time.Duration) time.Duration {
	began := time.Duration(w.from-firstSlice) * sliceLength
	return since - max(began, 0)
}
