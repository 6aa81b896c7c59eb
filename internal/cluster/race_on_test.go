//go:build race

package cluster

// raceEnabled: under the race detector a sync.Pool forgets on purpose.
const raceEnabled = true
