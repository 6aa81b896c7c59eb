package offenders

import "time"

// slice is a number of a slice of time, of which six are a minute.
type slice int32

const (
	sliceLength = 10 * time.Second
	perMinute   = 6
	// slices are kept singly, so that they hold the last minute: six and the present one.
	slices10s = perMinute + 1
	// minutes are kept, so that they hold the last ten: those and the present one.
	minutes = 11
	// firstSlice is so late that all that are kept have a positive number.
	firstSlice slice = perMinute * (minutes + 1)
)

func sliceAt(since time.Duration) slice { return firstSlice + slice(since/sliceLength) }

func (s slice) minute() int32 { return int32(s) / perMinute }

// cell is where a slice is kept.
func (s slice) cell() int { return int(s) % slices10s }

// cellOf is where a minute is kept.
func cellOf(minute int32) int { return int(minute) % minutes }

// window is a span of time that is asked about.
type window struct {
	minutes int // as it is called
	from    slice
	to      slice
}

// windows are what can be asked about: at least a minute that ends now, and at least ten.
func windows(now slice) [2]window {
	return [2]window{
		{1, now - (slices10s - 1), now},
		{10, slice(now.minute()-(minutes-1)) * perMinute, now},
	}
}

// covers returns how long w is, if so much time has passed since the first slice.
func (w window) covers(since time.Duration) time.Duration {
	began := time.Duration(w.from-firstSlice) * sliceLength
	return since - max(began, 0)
}
