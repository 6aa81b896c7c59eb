//go:build !race

package ledger_test

const thin = 1
