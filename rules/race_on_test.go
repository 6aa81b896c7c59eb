//go:build race

package rules

// raceEnabled: under the race detector a sync.Pool forgets on purpose, and one goroutine takes ten times as long. All is
// tried without it.
const raceEnabled = true
