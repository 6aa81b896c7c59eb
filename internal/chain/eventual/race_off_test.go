//go:build !race

package eventual

const raceEnabled = false
