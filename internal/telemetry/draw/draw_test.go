package draw

import (
	"math/bits"
	"testing"
)

// Every bit is as often set as not, and any two next to each other are as often alike as not.
func TestUint32(t *testing.T) {
	const draws = 1 << 16
	var set, alike [32]int
	for range draws {
		n := Uint32()
		for i := range 32 {
			set[i] += int(n >> i & 1)
			alike[i] += int((n ^ bits.RotateLeft32(n, 1)) >> i & 1)
		}
	}
	const off = 8 * 128 // eight standard deviations
	for i := range 32 {
		if abs(set[i]-draws/2) > off || abs(alike[i]-draws/2) > off {
			t.Errorf("bit %d is set %d times of %d, and differs from the next %d times", i, set[i], draws, alike[i])
		}
	}
}

func abs(n int) int { return max(n, -n) }
