package redis

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

// beside opens another Store on the counters of s, as another node does.
func beside(t *testing.T, s *Store, c Config) *Store {
	t.Helper()
	c.Prefix, c.Deadline = s.prefix, patient
	other, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// Two nodes, each of which knows only its own version of a limit, through many
// edits: never more than the largest of those in force, and nobody held longer than told.
func TestRollout(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	storetest.RunRollout(t, func(t *testing.T, now func() time.Time) []tidegate.Store {
		c := Config{Addrs: []string{server.Socket}, pretend: now}
		s := openTest(t, c)
		return []tidegate.Store{s, beside(t, s, c)}
	}, storetest.Brief())
}

// version is a bucket that others of its name share counters with.
func version(a tidegate.Algorithm, events, burst int64, period time.Duration) tidegate.Check {
	l := tidegate.MustLimit(tidegate.Spec{Name: "version", Algorithm: a, Events: events, Burst: burst, Period: period})
	c := tidegate.Check{Key: "ann", Limit: l, Cost: 1}
	if a == tidegate.LeakyBucket {
		c.MaxWait = 24 * time.Hour
	}
	return c
}

// nodes are two Stores on the same counters, and their clock.
func nodes(t *testing.T) (a, b *Store, server *testdep.RedisServer, clock *time.Time) {
	server = testdep.Redis(t)
	now := time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC)
	c := Config{Addrs: []string{server.Socket}, pretend: func() time.Time { return now }}
	a = openTest(t, c)
	return a, beside(t, a, c), server, &now
}

func take(t *testing.T, s *Store, c tidegate.Check) tidegate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), []tidegate.Check{c}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Two nodes that know one version each, under load: what the wider one admits at once,
// and no more than its rate from then on.
func TestTwoVersionsOfABucket(t *testing.T) {
	t.Parallel()
	a, b, _, clock := nodes(t)
	f := func(low, high tidegate.Check, span, every time.Duration) {
		t.Helper()
		key := low.Limit.String() + high.Limit.String()
		low.Key, high.Key = key, key
		var admitted int64
		for passed := time.Duration(0); passed < span; passed += every {
			for _, ask := range []struct {
				s *Store
				c tidegate.Check
			}{{a, low}, {b, high}, {a, low}, {b, high}} {
				admitted += take(t, ask.s, ask.c).Granted
			}
			*clock = clock.Add(every)
		}
		l := high.Limit
		if most := l.Capacity() + int64(float64(l.Events)*float64(span)/float64(l.Period)); admitted > most {
			t.Errorf("%s beside %s: %d in %s, want at most %d", low.Limit, l, admitted, span, most)
		}
	}
	for _, algorithm := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket} {
		f(version(algorithm, 10, 10, time.Hour), version(algorithm, 20, 20, time.Hour), 10*time.Second, 100*time.Millisecond)
		f(version(algorithm, 50, 50, time.Second), version(algorithm, 100, 100, time.Second), 10*time.Second, 7*time.Millisecond)
		f(version(algorithm, 5, 1, 24*time.Hour), version(algorithm, 500, 500, 24*time.Hour), time.Hour, 7*time.Second)
	}
}

// What a narrower version cannot hold it leaves as it is: it drains, is returned and
// charged at its own pace, until it fits.
func TestWiderStateIsLeftAlone(t *testing.T) {
	t.Parallel()
	a, b, server, clock := nodes(t)
	wide, narrow := version(tidegate.TokenBucket, 20, 20, time.Hour), version(tidegate.TokenBucket, 10, 5, time.Hour)
	for range 20 {
		if d := take(t, a, wide); !d.OK {
			t.Fatalf("%+v", d)
		}
	}
	most, err := a.compile(wide.Limit)
	if err != nil {
		t.Fatal(err)
	}
	raw := func() string { return server.Do("GET", most.name("ann")) }
	before := raw()
	peek := narrow
	peek.Cost = 0
	for _, c := range []tidegate.Check{narrow, peek} {
		d := take(t, b, c)
		if d.OK || d.Remaining != 0 || d.RetryAfter != 16*3*time.Minute || d.ResetAfter != time.Hour {
			t.Errorf("20 used, asked for %d under a burst of 5: %+v", c.Cost, d)
		}
	}
	if raw() != before {
		t.Error("a refusal under a narrower version wrote")
	}
	adjust := func(n int64, reset time.Duration) {
		t.Helper()
		c := narrow
		c.Cost = n
		if err := b.Adjust(t.Context(), tidegate.Receipt{At: clock.UnixMicro() * 1024}, []tidegate.Check{c}); err != nil {
			t.Fatal(err)
		}
		if d := take(t, b, peek); d.ResetAfter != reset {
			t.Errorf("after an Adjust of %d: %+v, want a reset in %s", n, d, reset)
		}
	}
	adjust(1, time.Hour) // it is in more debt than it may make already
	adjust(-10, 30*time.Minute)
	adjust(-3, 21*time.Minute)
	adjust(1, 24*time.Minute)
	adjust(-4, 24*time.Minute) // four: from here on at six minutes each
	wide.Cost = 0
	if d := take(t, a, wide); d.Remaining != 16 || d.ResetAfter != 12*time.Minute {
		t.Errorf("four of twenty used: %+v", d)
	}
}

// A clock set back is judged by the state alone, whoever asks: it is decided about as of
// when it was written, or moved to now with all it owes.
func TestClockSetBackIsJudgedByTheState(t *testing.T) {
	t.Parallel()
	a, b, _, clock := nodes(t)
	wide, narrow := version(tidegate.TokenBucket, 4, 4, time.Minute), version(tidegate.TokenBucket, 4, 1, time.Minute)
	start := *clock
	for range 4 {
		take(t, a, wide)
	}
	f := func(s *Store, c tidegate.Check, at, retry time.Duration) {
		t.Helper()
		*clock = start.Add(at)
		if d := take(t, s, c); d.OK || d.RetryAfter != retry {
			t.Errorf("%s at %s: %+v, want a retry in %s", c.Limit, at, d, retry)
		}
	}
	for range 20 { // back and forth refills nothing
		f(a, wide, -time.Second, 16*time.Second)
		f(a, wide, -time.Minute, 75*time.Second)
		f(b, narrow, -10*time.Second, 70*time.Second)
		f(a, wide, 0, 15*time.Second)
	}
	f(b, narrow, -time.Hour, time.Minute) // moved there, by a node that knows of a burst of 1
	f(a, wide, -time.Hour, 15*time.Second)
	f(a, wide, -time.Hour+14*time.Second, time.Second)
	*clock = start.Add(-time.Hour + 15*time.Second)
	if d := take(t, a, wide); !d.OK {
		t.Errorf("came back when told to: %+v", d)
	}
}
