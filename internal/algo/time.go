package algo

import (
	"math"
	"math/bits"
	"time"

	"tidegate.dev/tidegate"
)

// Micro is a microsecond in ticks.
const Micro = 1024

// Never is further than any instant: what saturating arithmetic ends at.
const Never = math.MaxInt64

// LastInstant, in the year 2251, is the latest that a law can be asked about:
// no sum of an instant and a few of the longest periods passes Never.
const LastInstant = Never - 4*int64(tidegate.MaxPeriod/time.Microsecond)*Micro

// Ticks returns the ticks in d, rounded down; 0 for a negative d.
func Ticks(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	us, ns := int64(d/time.Microsecond), int64(d%time.Microsecond)
	if us > math.MaxInt64/Micro-1 {
		return Never
	}
	return us*Micro + ns*Micro/1000
}

// Instant returns the ticks of t since the Unix epoch, limited to 0 and LastInstant: the
// instants that the laws can handle.
func Instant(t time.Time) int64 {
	s := t.Unix()
	if s < 0 {
		return 0
	}
	if s > LastInstant/Micro/1_000_000 {
		return LastInstant
	}
	ns := int64(t.Nanosecond())
	return min(s*1_000_000*Micro+ns/1000*Micro+ns%1000*Micro/1000, LastInstant)
}

// Duration returns ticks as a duration, rounded up.
func Duration(ticks int64) time.Duration {
	if ticks <= 0 {
		return 0
	}
	us, rest := ticks/Micro, ticks%Micro
	if us > math.MaxInt64/1000-1 {
		return math.MaxInt64
	}
	return time.Duration(us*1000 + (rest*1000+Micro-1)/Micro)
}

// add returns a + b for b ≥ 0, saturating.
func add(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return Never
}

// mul returns a·b for a, b ≥ 0, saturating.
func mul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return Never
	}
	return int64(lo)
}

// mulDivCeil returns ⌈a·b/c⌉ for a, b ≥ 0 and c > 0, by a 128-bit product, saturating.
func mulDivCeil(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(c-1), 0)
	hi += carry
	if hi >= uint64(c) {
		return Never
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

// mulDivFloor returns ⌊a·b/c⌋ for a, b ≥ 0 and c > 0, by a 128-bit product, saturating.
func mulDivFloor(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return Never
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}
