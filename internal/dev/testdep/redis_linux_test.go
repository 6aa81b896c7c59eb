package testdep

import (
	"os"
	"testing"
)

// How long a server waited for a processor is known while it runs.
func TestQueued(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this kernel does not count it")
	}
	r := Redis(t)
	was := r.queued()
	if was <= 0 {
		t.Error("a server was started and never waited for a processor")
	}
	for range 100 {
		r.Do("PING")
	}
	if now := r.queued(); now <= was {
		t.Errorf("it waited for %s, and after 100 commands for %s", was, now)
	}
	r.Kill()
	if is := r.queued(); is != 0 {
		t.Errorf("a server that does not run waits for %s", is)
	}
}
