//go:build !race

package testdep

const underRace = false
