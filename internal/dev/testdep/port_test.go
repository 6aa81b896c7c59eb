package testdep

import (
	"strconv"
	"testing"
)

// A port that was found free is not one that the kernel gives to others who ask for any.
func TestFreePort(t *testing.T) {
	for range 50 {
		if port, err := strconv.Atoi(FreePort(t)); err != nil || port < 1024 || port >= 32768 {
			t.Errorf("%d, %v", port, err)
		}
	}
}
