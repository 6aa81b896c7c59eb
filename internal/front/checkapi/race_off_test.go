//go:build !race

package checkapi

const raceEnabled = false
