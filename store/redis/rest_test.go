package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What takeShort says of the copy that it did not grant is what that is told when it
// asks by itself at the same instant: for every algorithm, alone and with others. Where
// subjects live on several servers, the widest need not have been asked for that copy,
// which then is told of another limit that refuses it.
func TestTakeWithRest(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 6, 7, 8, 9, 1000, time.UTC)
	clock := func() time.Time { return now }
	single := Config{Addrs: []string{testdep.Redis(t).Socket}, pretend: clock}
	apart := clusterOf(testdep.RedisCluster(t, 3, 0))
	apart.pretend = clock
	for name, c := range map[string]Config{"single": single, "cluster": apart} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, c)
			r := rand.New(rand.NewPCG(1, 2))
			short, full := 0, 0
			for round := range 400 {
				checks := shortVector(r, fmt.Sprint("key", round/8))
				if round%8 == 7 {
					checks = checks[:1]
				}
				now = now.Add(time.Duration(r.IntN(20)) * 377 * time.Millisecond)
				n := 1 + r.IntN(9)
				if wantRest(t, s, checks, n) {
					short++
				} else {
					full++
				}
			}
			if short < 50 || full < 50 {
				t.Errorf("%d of them were granted some copies, %d all or none: the test has lost its point", short, full)
			}
		})
	}
}

// shortVector is one to three checks of any algorithms, of different subjects.
func shortVector(r *rand.Rand, key string) []tidegate.Check {
	algorithms := []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow,
		tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency, tidegate.Quota,
	}
	var checks []tidegate.Check
	for i := range 1 + r.IntN(3) {
		a := pick(r, algorithms...)
		spec := tidegate.Spec{Name: "short " + a.String(), Scope: fmt.Sprint("s", i), Algorithm: a, Events: 4 + r.Int64N(20), Period: 10 * time.Second}
		switch a {
		case tidegate.LeakyBucket:
			spec.Burst = 10
		case tidegate.Quota:
			spec.Period, spec.Calendar = 0, tidegate.Day
		}
		c := tidegate.Check{Key: key, Limit: tidegate.MustLimit(spec), Cost: 1 + r.Int64N(3)}
		if r.IntN(3) == 0 {
			c.MaxWait = time.Second
		}
		checks = append(checks, c)
	}
	return checks
}

// wantRest asks for n copies and then, if some were granted, for one more. It reports
// whether that was so.
func wantRest(t *testing.T, s *Store, checks []tidegate.Check, n int) bool {
	t.Helper()
	granted, rest, err := s.takeWithRest(context.Background(), checks, takeParams{copies: int64(n)})
	if err != nil {
		t.Fatal(err)
	}
	if granted.Granted == 0 || granted.Granted == int64(n) {
		if rest.Limit != nil {
			t.Errorf("%d of %d copies of %v were granted, and the rest is %+v", granted.Granted, n, checks, rest)
		}
		return false
	}
	next := mustTake(t, s, 1, checks...)
	rest.Receipt.At, next.Receipt.At = 0, 0
	if s.cluster && rest != next && !next.OK && rest.RetryAfter > 0 && rest.RetryAfter <= next.RetryAfter && len(checks) > 1 {
		return true
	}
	if rest != next {
		t.Errorf("%d of %d copies of %v:\nrest %+v\nnext %+v", granted.Granted, n, checks, rest, next)
	}
	return true
}

func TestTakeWithRestMisused(t *testing.T) {
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Socket}})
	c := one100
	if _, _, err := s.takeWithRest(context.Background(), []tidegate.Check{c}, takeParams{}); err == nil {
		t.Error("no copies at all: no error")
	}
	c.Cost = -1
	if _, _, err := s.takeWithRest(context.Background(), []tidegate.Check{c}, takeParams{copies: 2}); err == nil {
		t.Error("a negative cost: no error")
	}
	if d, rest, err := s.takeWithRest(context.Background(), nil, takeParams{copies: 3}); err != nil || d.Granted != 3 || rest.Limit != nil {
		t.Errorf("of nothing: %+v, %+v, %v", d, rest, err)
	}
}
