//go:build race

package ledger_test

// thin is by how much less is tried with the race detector, where one goroutine computes. All is tried without it.
const thin = 10
