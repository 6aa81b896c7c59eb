//go:build race

package node

// raceEnabled: under the race detector a sync.Pool forgets on purpose.
const raceEnabled = true
