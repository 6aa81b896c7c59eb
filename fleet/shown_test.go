package fleet

import (
	"strings"
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

// A server that has said nothing for a while, as a master after a failover, is not warned of any more.
func TestWarningsAreOfServersThatAreThere(t *testing.T) {
	var s servers
	at := time.Unix(1_800_000_000, 0)
	note := func(server, policy string, after time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.noteLocked(redis.Info{Memory: redis.Memory{Server: server, Policy: policy, Max: 100 << 20}}, at.Add(after))
	}
	note("gone", "allkeys-lru", 0)
	note("there", "allkeys-lfu", 0)
	note("safe", "noeviction", 0)
	note("there", "allkeys-lfu", 15*time.Second)
	for _, c := range []struct {
		after time.Duration
		want  []string // servers, by name
	}{{15 * time.Second, []string{"gone", "there"}}, {infoLasts - 1, []string{"gone", "there"}}, {infoLasts, []string{"there"}}, {infoLasts + 15*time.Second, nil}} {
		got := s.warnings(at.Add(c.after))
		if len(got) != len(c.want) {
			t.Errorf("after %v: warned of %q, want %q", c.after, got, c.want)
			continue
		}
		for i, server := range c.want {
			if !strings.HasPrefix(got[i], server+" evicts") {
				t.Errorf("after %v: warned of %q, want %q", c.after, got, c.want)
			}
		}
	}
}
