//go:build race

package rules

// raceEnabled: under the race detector a sync.Pool forgets on purpose.
const raceEnabled = true
