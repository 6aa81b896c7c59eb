package testdep

import (
	"testing"
	"time"
)

// Eventually returns once ok holds, and fails the test if that is not so within a minute: what is awaited takes
// milliseconds, and longer on a busy machine.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Await(time.Minute, ok) {
		t.Fatalf("not after a minute: %s", what)
	}
}

// Await polls until ok holds, but for no longer than atMost, and reports whether it did. It is for tests that say
// what is so instead, or in which something else, such as a limit of the program, would make ok hold after a minute.
func Await(atMost time.Duration, ok func() bool) bool {
	nap, end := time.Millisecond, time.Now().Add(atMost)
	for !ok() {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(nap)
		nap = min(nap*5/4, 20*time.Millisecond) // what is there soon is seen soon, and what takes longer costs little
	}
	return true
}
