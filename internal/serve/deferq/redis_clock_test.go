package deferq

import (
	"strconv"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The clock of Redis is set back: lines that were due, or were to wait for a moment, are not held up for as long as that, and
// nothing is kept for longer than was promised.
func TestRedisClockIsSetBack(t *testing.T) {
	for _, step := range []time.Duration{2 * time.Hour, 1000 * time.Hour} {
		server := testdep.Redis(t, keepsAll...)
		r := openRedis(t, "redis://"+server.Addr)
		var want []string
		for _, name := range []string{"ann", "bob", "eve"} {
			e := entryOf(name, "x")
			add(t, r, e)
			want = append(want, e.ID)
			ahead := time.Now().Add(step) // as it was written by a clock that is that far ahead
			server.Do("ZADD", "tg:deferred{orders}:turns", strconv.FormatInt(ahead.UnixMicro(), 10), nameOf(e.Line))
			server.Do("HSET", "tg:deferred{orders}:entry:"+e.ID, "expires", strconv.FormatInt(ahead.Add(e.Keep).UnixMicro(), 10), "next", strconv.FormatInt(ahead.UnixMicro(), 10))
		}
		add(t, r, entryOf("new", "x")) // by the clock as it is now
		for range len(want) + 1 {
			_, name, _, err := r.turn(t.Context())
			if err != nil || name == "" {
				t.Fatalf("set back by %s: no line is due, %v", step, err)
			}
		}
		for _, id := range want {
			if e, _, err := r.Get(t.Context(), id); err != nil || time.Until(e.Expires) > e.Keep || time.Until(e.Next) > maxRetryAfter {
				t.Errorf("set back by %s: %+v %v", step, e, err)
			}
		}
	}
}
