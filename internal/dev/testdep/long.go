package testdep

import "os"

// Long reports whether there is time to be thorough, as make test-long says by
// TIDEGATE_LONG=1. What a test does only then is more of the same: more seeds, more
// combinations of values that it all tests anyway.
func Long() bool { return os.Getenv("TIDEGATE_LONG") == "1" }

// Longer returns usual, and long if there is time to be thorough.
func Longer[T any](usual, long T) T {
	if Long() {
		return long
	}
	return usual
}
