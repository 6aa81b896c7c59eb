package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A large backlog is paid a few at a time, those of used up keys first.
func TestBacklogOfUsedUpKeysComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		l := limit("l", 10, tidegate.FailLocal)
		for i := range 500 {
			spend(t, g, l, fmt.Sprint("user ", i), 1+i%10)
		}
		way.set(none)
		for g.Health().State != OK {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		way.mu.Lock()
		defer way.mu.Unlock()
		if len(way.posts) != 500 {
			t.Fatalf("%d posts", len(way.posts))
		}
		for i, c := range way.posts {
			if (c.Cost == 10) != (i < 50) {
				t.Errorf("post %d is of %d", i, c.Cost)
			}
		}
		_ = g.Close()
	})
}

// Keys that are used up all the time are in every round, and the others do not wait for that to end.
func TestBacklogOfOthersIsNotHeldUp(t *testing.T) {
	l := limit("l", 10, tidegate.FailLocal)
	for _, users := range []int{1, 20, maxPosts + 1} {
		b := backlog{start: time.Now()}
		for i := range users {
			b.add(&tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1}, 1, 1, 1, 1, 0)
		}
		rounds := 1 + (users+maxPosts-1)/maxPosts
		for round := range rounds {
			for i := range 3 {
				b.add(&tidegate.Check{Key: fmt.Sprint("busy", i), Limit: l, Cost: 1}, 1, 1, 10, 1, time.Duration(round)*postEvery)
			}
			posts := b.take(maxPosts, time.Duration(round)*postEvery, 0)
			for i, p := range posts[:3] {
				if p.amount != 1 || p.id.key[:4] != "busy" {
					t.Errorf("round %d: post %d is of %d to %s, want those of used up keys first", round, i, p.amount, p.id.key)
				}
			}
			if round == 0 && len(posts) != 3 {
				t.Errorf("%d posts in the first round, want those of used up keys alone", len(posts))
			}
		}
		if len(b.entries) > 0 {
			t.Errorf("%d users: %d left after %d rounds", users, len(b.entries), rounds)
		}
	}
}

// The backlog is bounded, and what goes beyond is counted.
func TestBacklogIsBounded(t *testing.T) {
	testdep.SkipUnderRace(t)
	g := newNode(&faulty{fault: broken}, Options{Deadline: patient})
	defer g.Close()
	l := limit("l", 10, tidegate.FailLocal)
	for i := range maxEntries + 10 {
		spend(t, g, l, fmt.Sprint(i), 1)
	}
	if h := g.Health(); h.Backlog != maxEntries || h.Lost != 10 {
		t.Errorf("%+v", h)
	}
}

// In a long outage new keys are used up all the time, and old ones fade: what waits to be
// posted first is bounded as well, and nothing in it is lost.
func TestUrgentBacklogIsBounded(t *testing.T) {
	l := limit("l", 2, tidegate.FailLocal)
	b := backlog{start: time.Now()}
	now, rounds := time.Duration(0), 5
	if testdep.RaceEnabled { // which only takes time where nothing runs at once
		rounds = 3 // as many as are more than may be urgent
	}
	for round := range rounds {
		now += 2 * l.Period
		for i := range maxEntries {
			b.add(&tidegate.Check{Key: fmt.Sprint(round, " ", i), Limit: l, Cost: 1}, 1, 2, 2, 2, now)
		}
		if len(b.entries) != maxEntries || len(b.urgent) > maxUrgent {
			t.Fatalf("round %d: %d entries, %d of them urgent", round, len(b.entries), len(b.urgent))
		}
	}
	posted := 0
	for len(b.urgent) > 0 {
		posted += len(b.take(maxPosts, now, now))
	}
	if posted != maxEntries || len(b.entries) > 0 || b.lost > 0 {
		t.Errorf("%d posted, %d left, %d lost", posted, len(b.entries), b.lost)
	}
}

// A reset is one in every respect: nothing of the key is left to be seeded or paid.
func TestResetForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{}
		g := newNode(way, Options{})
		l := limit("l", 10, tidegate.FailLocal)
		checks := []tidegate.Check{one(l)}
		spend(t, g, l, "k", 12)
		if err := g.Reset(t.Context(), checks); err != nil {
			t.Error(err)
		}
		way.set(broken)
		if n := spend(t, g, l, "k", 20); n != 10 {
			t.Errorf("%d admitted after a reset, want 10", n)
		}
		if err := g.Reset(t.Context(), checks); err == nil {
			t.Error("no error, though the inner store was not reached")
		}
		if n := spend(t, g, l, "k", 20); n != 10 {
			t.Errorf("%d admitted after a reset in the outage, want 10", n)
		}
		_ = g.Reset(t.Context(), checks)
		way.set(none)
		time.Sleep(5 * time.Second)
		if n := way.posted(l, "k"); n != 0 {
			t.Errorf("%d charged after a reset", n)
		}
		_ = g.Close()
	})
}

// A post that is out when its counter is reset, and fails, is not sent again.
func TestResetForgetsPostsThatAreOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		l := limit("l", 10, tidegate.FailLocal)
		spend(t, g, l, "k", 3)
		spend(t, g, l, "other", 1)
		way.setAdjust(deaf)
		way.set(none)
		time.Sleep(50 * time.Millisecond) // the posts are sent again, and hang
		if err := g.Reset(t.Context(), []tidegate.Check{one(l)}); err != nil {
			t.Error(err)
		}
		way.setAdjust(none)
		way.set(none) // they fail
		time.Sleep(5 * time.Second)
		if k, other := way.posted(l, "k"), way.posted(l, "other"); k != 0 || other != 1 {
			t.Errorf("%d charged after a reset, want 0; %d to another key, want 1", k, other)
		}
		_ = g.Close()
	})
}

// Keys lie in memory that is used again for another request.
func TestBacklogKeepsItsKeys(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "l", Events: 10, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	var b backlog
	memory := []byte("alice")
	c := tidegate.Check{Key: unsafe.String(&memory[0], len(memory)), Limit: l, Cost: 1}
	b.add(&c, 1, 1, 1, 1, 0)
	b.add(&c, 9, 9, 10, 1, 0) // it is used up, so that this is posted before others
	posts := b.take(10, 0, 0)
	copy(memory, "mallo")
	if len(posts) != 1 || posts[0].id.key != "alice" || posts[0].amount != 10 {
		t.Errorf("%+v", posts)
	}
}
