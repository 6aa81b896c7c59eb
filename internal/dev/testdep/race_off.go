//go:build !race

package testdep

// RaceEnabled: without the race detector.
const RaceEnabled = false
