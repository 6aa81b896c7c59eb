//go:build !race

package split

const thin = 1
