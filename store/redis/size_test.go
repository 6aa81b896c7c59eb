package redis

import (
	"context"
	flags "flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

var update = flags.Bool("update", false, "write what was measured into docs/redis.md")

// sizes are what docs/redis.md tells the memory of: limits, and how often a key is
// charged.
var sizes = []struct {
	name   string
	events int
	step   time.Duration // between them
	limits []tidegate.Spec
}{
	{"token_bucket, leaky_bucket", 1, 0, []tidegate.Spec{{Algorithm: tidegate.TokenBucket, Events: 100, Period: time.Hour}}},
	{"fixed_window, quota", 1, 0, []tidegate.Spec{{Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour}}},
	{"sliding_window", 1, 0, []tidegate.Spec{{Algorithm: tidegate.SlidingWindow, Events: 100, Period: time.Hour}}},
	{"sub_windows, one part of 60 used", 1, 0, []tidegate.Spec{{Algorithm: tidegate.SubWindows, Events: 1000, Period: time.Hour}}},
	{"sub_windows, 60 parts of 60 used", 60, time.Minute, []tidegate.Spec{{Algorithm: tidegate.SubWindows, Events: 1000, Period: time.Hour}}},
	{"sliding_log, 1 event", 1, 0, []tidegate.Spec{{Algorithm: tidegate.SlidingLog, Events: 64, Period: time.Hour}}},
	{"sliding_log, 64 events", 64, 0, []tidegate.Spec{{Algorithm: tidegate.SlidingLog, Events: 64, Period: time.Hour}}},
	{"concurrency, 1 slot in use", 1, 0, []tidegate.Spec{{Algorithm: tidegate.Concurrency, Events: 20, Period: time.Hour}}},
	{"three buckets of one subject", 1, 0, []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: 10, Period: time.Minute},
		{Algorithm: tidegate.TokenBucket, Events: 100, Period: time.Hour},
		{Algorithm: tidegate.TokenBucket, Events: 1000, Period: 24 * time.Hour},
	}},
}

// sizedKeys is for how many keys: enough that what the server has anyway makes little
// difference, and more for what is written into the page.
func sizedKeys(events int) int {
	if *update {
		return max(2048, 1<<14/events)
	}
	return max(1024, 1<<12/events)
}

// TestSizes measures what a key takes, as docs/redis.md has it: by MEMORY USAGE of its
// keys, and by what the server takes in all. How long Redis is at it, by its own count,
// is not held to anything: machines differ.
func TestSizes(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	rows := make([]string, len(sizes))
	measured := make([][2]int, len(sizes))
	for i, size := range sizes {
		server.Do("FLUSHALL")
		c := Config{Addrs: []string{server.Socket}, Deadline: patient}
		var later atomic.Int64
		if size.step > 0 {
			start := time.Now()
			c.pretend = func() time.Time { return start.Add(time.Duration(later.Load())) }
		}
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s, size.limits, 1) // what is there once
		server.Do("FLUSHALL")
		server.Do("CONFIG", "RESETSTAT")
		before := used(t, server)
		keys := sizedKeys(size.events)
		for range size.events {
			fill(t, s, size.limits, keys)
			later.Add(int64(size.step))
		}
		after := used(t, server)
		took := evalTime.FindStringSubmatch(server.Do("INFO", "commandstats"))[1]
		_ = s.Close()
		own := 0
		for _, name := range strings.Split(server.Do("KEYS", "tg:api:{user=user-0000100}*"), "\n") {
			own += number(t, server.Do("MEMORY", "USAGE", name, "SAMPLES", "0"))
		}
		measured[i] = [2]int{own, (after - before + keys/2) / keys}
		rows[i] = fmt.Sprintf("| %s | %d | %d | %s |", size.name, measured[i][0], measured[i][1], took)
		t.Log(rows[i])
	}
	const page = "../../docs/redis.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)(<!-- sizes -->\n.*?\n\|---.*?\n).*?(<!-- /sizes -->)`)
	reported := block.FindString(string(text))
	if *update {
		text = block.ReplaceAll(text, []byte("${1}"+strings.Join(rows, "\n")+"\n${2}"))
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, size := range sizes { // servers differ a little
		row := regexp.MustCompile(`\| ` + regexp.QuoteMeta(size.name) + ` \| (\d+) \| (\d+) \|`).FindStringSubmatch(reported)
		if row == nil {
			t.Errorf("%s: docs/redis.md does not tell of it: run go test ./store/redis -run TestSizes -update", size.name)
			continue
		}
		for j := range 2 {
			if want := number(t, row[1+j]); measured[i][j] > want*5/4+16 {
				t.Errorf("%s takes %v bytes, docs/redis.md says %s and %s", size.name, measured[i], row[1], row[2])
			}
		}
	}
}

// fill charges so many keys.
func fill(t *testing.T, s *Store, specs []tidegate.Spec, keys int) {
	t.Helper()
	var limits []*tidegate.Limit
	for _, spec := range specs {
		spec.Name, spec.Scope = "api", "user"
		limits = append(limits, tidegate.MustLimit(spec))
	}
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := w; i < keys; i += 16 {
				var checks []tidegate.Check
				for _, l := range limits {
					checks = append(checks, tidegate.Check{Key: fmt.Sprintf("user-%07d", i), Limit: l, Cost: 1})
				}
				if d, err := s.Take(context.Background(), checks, 1); err != nil || !d.OK {
					t.Errorf("Take = %+v, %v", d, err)
					return
				}
			}
		})
	}
	all.Wait()
}

var (
	usedMemory = regexp.MustCompile(`used_memory:(\d+)`)
	evalTime   = regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([\d.]+)`)
)

// used is what the server takes.
func used(t *testing.T, server *testdep.RedisServer) int {
	t.Helper()
	return number(t, usedMemory.FindStringSubmatch(server.Do("INFO", "memory"))[1])
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
