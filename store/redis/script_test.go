package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func bucket(name, scope string, events int64, period time.Duration) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: name, Scope: scope, Events: events, Period: period, Algorithm: tidegate.TokenBucket})
}

func mustTake(t testing.TB, s *Store, n int, checks ...tidegate.Check) tidegate.Decision {
	t.Helper()
	d, err := s.Take(context.Background(), checks, n)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every script that can be put together is one that Redis compiles.
func TestEveryScriptCompiles(t *testing.T) {
	server := testdep.Redis(t)
	for f := range templateCount {
		for set := range kindSet(1 << kinds) {
			if f.single() && (set == 0 || set&(set-1) != 0) {
				continue // it is about one check
			}
			compiles(t, server, scriptFor(f, set), fmt.Sprintf("%s of %06b", templateFiles[f], set))
		}
	}
	for s := range shape(len(nestedScripts)) {
		// Each shape begins with a bit that is set, and its last check shares no key with a next one.
		if n := len(s.checks()); n >= 2 && s>>(3*n) == 1 && !s.checks()[n-1].shares {
			compiles(t, server, nestedScript(s), fmt.Sprintf("shape %b", s))
		}
	}
}

func compiles(t *testing.T, server *testdep.RedisServer, sc *script, name string) {
	t.Helper()
	if got := server.Do("SCRIPT", "LOAD", sc.text); got != sc.sha {
		t.Errorf("%s has the hash %s, Redis says %s", name, sc.sha, got)
	}
	if strings.Contains(sc.text, "--<") || strings.Contains(sc.text, "--:") {
		t.Errorf("%s has a gap:\n%s", name, sc.text)
	}
}

// commands counts what Redis was sent since the last time, by command. Those that
// scripts make count as well.
func commands(server *testdep.RedisServer) map[string]int {
	all := map[string]int{}
	for _, found := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(server.Do("INFO", "commandstats"), -1) {
		all[found[1]], _ = strconv.Atoi(found[2])
	}
	server.Do("CONFIG", "RESETSTAT")
	return all
}

// A request held to limits of a user, an address and everybody costs one round trip,
// and so does what a script has forgotten it is, once.
func TestOneRoundTrip(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	checks := []tidegate.Check{
		{Key: "42", Cost: 1, Limit: bucket("api", "user", 100, 24*time.Hour)}, // none comes back during the test
		{Key: "10.0.0.1", Cost: 1, Limit: bucket("api", "ip", 100, time.Minute)},
		{Cost: 1, Limit: bucket("api", "everyone", 1000, time.Second)},
		{Key: "42", Cost: 1, Limit: bucket("api", "user", 1000, 7*24*time.Hour)},
	}
	mustTake(t, s, 1, checks...)
	for range 3 {
		commands(server)
		mustTake(t, s, 1, checks...)
		if got := commands(server); got["evalsha"] != 1 || got["eval"] != 0 || got["get"] != 3 || got["setex"]+got["setrange"] != 3 {
			t.Errorf("four checks on three subjects: %v; want one evalsha, which reads and writes three keys", got)
		}
		server.Do("SCRIPT", "FLUSH")
		mustTake(t, s, 1, checks...)
		if got := commands(server); got["evalsha"] != 1 || got["eval"] != 1 {
			t.Errorf("after SCRIPT FLUSH: %v; want one evalsha and one eval", got)
		}
	}
	if d := mustTake(t, s, 1, checks[0]); d.Remaining != 100-8 {
		t.Errorf("%d left of 100 after 8 takes", d.Remaining)
	}
}

// A refusal writes nothing, and neither does a peek.
func TestRefusalWritesNothing(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency} {
		l := tidegate.MustLimit(tidegate.Spec{Events: 2, Period: 24 * time.Hour, Algorithm: a})
		c := tidegate.Check{Key: "ann", Limit: l, Cost: 1}
		mustTake(t, s, 2, c)
		before := dirty(server)
		if mustTake(t, s, 1, c).OK {
			t.Errorf("%s: a third passes", l)
		}
		c.Cost = 0
		mustTake(t, s, 1, c)
		c.Key = "new"
		mustTake(t, s, 1, c)
		if got := dirty(server) - before; got != 0 {
			t.Errorf("%s: a refusal and two peeks changed %d times", l, got)
		}
	}
}

func dirty(server *testdep.RedisServer) int {
	found := regexp.MustCompile(`rdb_changes_since_last_save:(\d+)`).FindStringSubmatch(server.Do("INFO", "persistence"))
	n, _ := strconv.Atoi(found[1])
	return n
}

// Keys live as long as they say something, and a little longer: debt is not forgotten
// with them, and none is for ever.
func TestKeysExpire(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	ages := func(name string, l *tidegate.Limit, cost int64) {
		t.Helper()
		start := time.Now()
		d := mustTake(t, s, 1, tidegate.Check{Key: "ann", Limit: l, Cost: cost})
		if !d.OK {
			t.Fatalf("%s: %+v", name, d)
		}
		key := s.prefix + ":" + name + ":{ann}"
		if l.Algorithm == tidegate.SlidingLog {
			key += ":log:" + l.Period.String()
		} else if l.Algorithm == tidegate.Concurrency {
			key += ":slots:" + l.Period.String()
		}
		ms, err := strconv.Atoi(server.Do("PTTL", key))
		age := max(0, time.Duration(ms)*time.Millisecond) // negative if it has expired
		if err != nil || age < d.ResetAfter-max(500*time.Millisecond, time.Since(start)) || age > d.ResetAfter+d.ResetAfter/16+3*time.Second {
			t.Errorf("%s is as good as new in %s, and its key lives for %s", name, d.ResetAfter, age)
		}
	}
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency} {
		for _, period := range []time.Duration{time.Second, time.Minute, 24 * time.Hour} {
			spec := tidegate.Spec{Name: fmt.Sprintf("%s-%.0f", a, period.Seconds()), Algorithm: a, Events: 10, Period: period}
			if a == tidegate.LeakyBucket {
				spec.Burst = 5
			}
			ages(spec.Name, tidegate.MustLimit(spec), 3)
		}
	}
	ages("quota", tidegate.MustLimit(tidegate.Spec{Name: "quota", Algorithm: tidegate.Quota, Events: 10, Calendar: tidegate.Month}), 3)
	ages("short", tidegate.MustLimit(tidegate.Spec{Name: "short", Algorithm: tidegate.FixedWindow, Events: 10, Period: time.Millisecond}), 1)
}

// What other limits keep under the same key stays there, until it is over.
func TestBoxKeepsWhatItDoesNotKnow(t *testing.T) {
	server := testdep.Redis(t)
	now := time.Now().Truncate(24 * time.Hour)
	s := openTest(t, Config{URL: "redis://" + server.Addr, pretend: func() time.Time { return now }})
	check := func(period time.Duration, a tidegate.Algorithm) tidegate.Check {
		return tidegate.Check{Key: "ann", Cost: 2, Limit: tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 10, Period: period, Algorithm: a})}
	}
	minute, hour := check(time.Minute, tidegate.TokenBucket), check(time.Hour, tidegate.FixedWindow)
	day, parts := check(24*time.Hour, tidegate.SlidingWindow), check(time.Hour, tidegate.SubWindows)
	left := func(c tidegate.Check, want int64) {
		t.Helper()
		c.Cost = 0
		if d := mustTake(t, s, 1, c); d.Remaining != want {
			t.Errorf("%s: %d left, want %d", c.Limit, d.Remaining, want)
		}
	}
	mustTake(t, s, 1, minute, hour, day, parts)
	mustTake(t, s, 1, hour)
	mustTake(t, s, 1, minute, day)
	left(minute, 6)
	left(hour, 6)
	left(day, 6)
	left(parts, 8)
	if err := s.Reset(context.Background(), []tidegate.Check{hour}); err != nil {
		t.Fatal(err)
	}
	left(hour, 10)
	left(parts, 8)
	keys := server.Do("KEYS", s.prefix+":*")
	if strings.Contains(keys, "\n") {
		t.Errorf("four limits of one subject under one rule have the keys\n%s", keys)
	}
	size := func() int { return len(server.Do("GET", keys)) }
	before := size()
	now = now.Add(3 * time.Hour)
	mustTake(t, s, 1, day)
	if after := size(); after >= before {
		t.Errorf("%d bytes, and %d when all but one state is over", before, after)
	}
	left(day, 4)
}

// After a timeout nobody knows whether a script has run: it is not sent again.
func TestNoReplayAfterTimeout(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	c := tidegate.Check{Key: "ann", Cost: 1, Limit: bucket("api", "", 100, 24*time.Hour)}
	mustTake(t, s, 1, c)
	server.Pause()
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		start := time.Now()
		_, err := s.Take(ctx, []tidegate.Check{c}, 1)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of a server that does not answer: %v", err)
		}
		if waited := time.Since(start); waited > patient/2 {
			t.Errorf("it took %s to find out", waited)
		}
	}
	server.Resume()
	// Those that were sent have run, once each; on a new connection they were not.
	if d := mustTake(t, s, 1, c); d.Remaining < 100-7 || d.Remaining > 100-2 {
		t.Errorf("%d left of 100 after 7 takes, 5 of which were not answered in time", d.Remaining)
	}
}

// Every process may have its own idea of the time.
func TestNodeClocksDoNotMatter(t *testing.T) {
	server := testdep.Redis(t)
	prefix := openTest(t, Config{URL: "redis://" + server.Addr}).prefix
	var nodes []*Store
	for _, skew := range []time.Duration{0, -10 * time.Minute, 10 * time.Minute, -400 * 24 * time.Hour, 400 * 24 * time.Hour} {
		s, err := Open(Config{URL: "redis://" + server.Addr, Prefix: prefix, Deadline: patient, node: func() time.Time { return time.Now().Add(skew) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		nodes = append(nodes, s)
	}
	for _, cal := range []tidegate.Calendar{tidegate.Day, tidegate.Week, tidegate.Month, tidegate.Year} {
		l := tidegate.MustLimit(tidegate.Spec{Name: "quota", Events: 12, Algorithm: tidegate.Quota, Calendar: cal, Zone: "Asia/Kolkata"})
		c := tidegate.Check{Key: "ann", Cost: 1, Limit: l}
		admitted := 0
		for range 5 {
			for _, s := range nodes {
				if mustTake(t, s, 1, c).OK {
					admitted++
				}
			}
		}
		if admitted != 12 {
			t.Errorf("%s: %d admitted, want 12", l, admitted)
		}
		back := c
		back.Cost = -5
		if err := nodes[3].Adjust(context.Background(), mustTake(t, nodes[0], 1, c).Receipt, []tidegate.Check{back}); err != nil {
			t.Fatal(err)
		}
		c.Cost = 0
		if d := mustTake(t, nodes[4], 1, c); d.Remaining != 5 {
			t.Errorf("%s: %d left after 5 were returned", l, d.Remaining)
		}
	}
}
