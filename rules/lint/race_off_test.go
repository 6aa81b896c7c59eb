//go:build !race

package lint

const thin = 1
