//go:build unix

package testdep

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// A process that is stopped for a while has stood still for that long.
func TestStandstill(t *testing.T) {
	var err error
	stood := Standstill(func() {
		err = exec.Command("sh", "-c", "kill -STOP $0; sleep 0.3; kill -CONT $0", strconv.Itoa(os.Getpid())).Run()
	})
	if err != nil {
		t.Fatal(err)
	}
	if stood < 250*time.Millisecond {
		t.Errorf("stopped for 300 ms, and found %s", stood)
	}
}
