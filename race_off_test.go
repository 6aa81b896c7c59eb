//go:build !race

package tidegate_test

const raceEnabled = false
