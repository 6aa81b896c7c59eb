//go:build !race

package algo

const thin = 1
