//go:build race

package httplimit

// raceEnabled: under the race detector a sync.Pool forgets on purpose.
const raceEnabled = true
