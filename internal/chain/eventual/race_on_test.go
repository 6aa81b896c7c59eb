//go:build race

package eventual

// raceEnabled: the race detector makes these tests five times slower. They are run without it as well, whole.
const raceEnabled = true
