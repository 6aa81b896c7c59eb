package keybuf

import (
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	var b Buffer
	f := func(n int, want string) {
		t.Helper()
		if got := strings.Clone(b.Key("user:", n)); got != want {
			t.Errorf("key %d is %q, want %q", n, got, want)
		}
	}
	f(0, "user:00000000")
	f(0xbeef, "user:0000beef")
	f(0x1_0000_0000, "user:100000000")
	if n := testing.AllocsPerRun(100, func() { b.Key("user:", 7) }); n != 0 {
		t.Errorf("%v allocations per key", n)
	}
}
