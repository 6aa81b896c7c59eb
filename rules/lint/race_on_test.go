//go:build race

package lint

// thin is by how much less is tried with the race detector, where one goroutine computes. All is tried without it.
const thin = 8
