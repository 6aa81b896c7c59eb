//go:build race

package testdep

// RaceEnabled: the race detector makes loops of one goroutine ten times slower, and a sync.Pool forgets on purpose under
// it. A test that does less there is in a package that make test runs without it as well; see scripts/test.sh.
const RaceEnabled = true
