package fleet

import (
	"testing"
	"time"

	"tidegate.dev/tidegate/store/redis"
)

// What a server said is shown for a while, and not as if it were of now.
func TestWhatServersSaidIsShownForAWhile(t *testing.T) {
	var s servers
	at := time.Unix(1_800_000_000, 0)
	s.mu.Lock()
	s.noteLocked(redis.Info{Memory: redis.Memory{Server: "b"}, Used: 1}, at)
	s.noteLocked(redis.Info{Memory: redis.Memory{Server: "a"}, Used: 2}, at)
	s.noteLocked(redis.Info{Memory: redis.Memory{Server: "b"}, Used: 3}, at.Add(10*time.Second))
	s.mu.Unlock()
	for _, c := range []struct {
		after time.Duration
		want  []int64 // Used, by name
	}{{10 * time.Second, []int64{2, 3}}, {infoLasts - 1, []int64{2, 3}}, {infoLasts, []int64{3}}, {infoLasts + 10*time.Second, nil}} {
		var got []int64
		for _, m := range s.shown(at.Add(c.after)) {
			got = append(got, m.Used)
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("after %v: %v, want %v", c.after, got, c.want)
		}
	}
}
