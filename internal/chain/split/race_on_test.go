//go:build race

package split

// thin is by how much less is tried with the race detector, which takes ten times as long.
const thin = 6
