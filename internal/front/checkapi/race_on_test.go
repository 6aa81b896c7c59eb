//go:build race

package checkapi

// raceEnabled: under the race detector a sync.Pool forgets on purpose.
const raceEnabled = true
