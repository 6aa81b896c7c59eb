package algo

import (
	"math"
	"math/bits"
)

// scale interpolates within a window. Its unit is 2^shift µs, the smallest for which
// (2·events+1)·window stays below 2^53.
type scale struct {
	shift  uint
	window int64 // in units
}

func newScale(us, events int64) scale {
	var s scale
	for {
		s.window = (us + 1<<s.shift - 1) >> s.shift
		if mul(2*events+1, s.window) < 1<<53 {
			return s
		}
		s.shift++
	}
}

// undivided returns the scale of a window that counts whole until it ends: its one unit is longer
// than the window, so that every instant is at the start.
func undivided(us int64) scale { return scale{shift: uint(bits.Len64(uint64(us))), window: 1} }

// Unit returns the shift of the unit, which is 2^shift µs, and the window in units, for
// a store in which another machine interpolates.
func (s *scale) Unit() (shift uint, window int64) { return s.shift, s.window }

func (s *scale) units(us int64) int64 { return us >> s.shift }
func (s *scale) micros(u int64) int64 { return u << s.shift }

// weigh returns ⌊count·overlap⌋ at off units into the next window, where overlap is the part of
// the window that still counts.
func (s *scale) weigh(count, off int64) int64 {
	if count == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(count), uint64(s.window-off))
	if hi != 0 || lo > math.MaxInt64 { // counted under a far higher limit
		lo, _ = bits.Div64(hi, lo, uint64(s.window))
		return int64(lo)
	}
	return int64(lo) / s.window
}

// admits returns the first offset at which the weight of count is at most room, and
// whether there is one within the window.
func (s *scale) admits(room, count int64) (off int64, ok bool) {
	switch {
	case room < 0:
		return 0, false
	case count <= room:
		return 0, true
	}
	off = s.window - ((room+1)*s.window-1)/count
	return off, off < s.window
}
