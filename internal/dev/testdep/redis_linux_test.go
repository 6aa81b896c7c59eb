package testdep

import (
	"os"
	"testing"
	"time"
)

// How long a server waited for a processor is known while it runs.
func TestQueued(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this kernel does not count it")
	}
	r := Redis(t)
	was := waitsLonger(t, r, 0)
	waitsLonger(t, r, was)
	r.Kill()
	if is := r.queued(); is != 0 {
		t.Errorf("a server that does not run waits for %s", is)
	}
}

// waitsLonger asks r until it has waited for longer than before: on an idle machine a command may find a
// processor at once.
func waitsLonger(t *testing.T, r *RedisServer, before time.Duration) time.Duration {
	t.Helper()
	for range 10_000 {
		r.Do("PING")
		if now := r.queued(); now > before {
			return now
		}
	}
	t.Fatalf("after 10,000 commands more it has still waited for %s", before)
	return 0
}
