package process

import (
	"runtime"
	"testing"
	"time"
)

func TestCPUTimeRunsWithWork(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, start := CPUTime(), time.Now()
	for CPUTime()-before < 5*time.Millisecond {
		if time.Since(start) > 10*time.Second {
			t.Fatal("ten seconds of work are not five milliseconds of CPU time")
		}
	}
}
