package testdep

import "testing"

// SkipUnderRace skips a test of which the race detector makes ten times the work and learns nothing:
// one goroutine goes after the other, or others show the same code at once; or a test that counts
// allocations, to which it adds. make test runs these without it; scripts/test.sh finds them by this call.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if RaceEnabled {
		t.Skip("make test runs it without the race detector")
	}
}
