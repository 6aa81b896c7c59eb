//go:build race

package tidegate_test

// raceEnabled: under the race detector a sync.Pool forgets on purpose.
const raceEnabled = true
