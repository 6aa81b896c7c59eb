package deferq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What a gateway was trying when it died is tried by another one, in its order; the dead one has no
// say any more, should it come back.
func TestTakeover(t *testing.T) {
	url := "redis://" + testdep.Redis(t, keepsAll...).Addr
	soon := func(o *RedisOptions) { o.Takeover = time.Second }
	dead, other := openRedis(t, url, soon), openRedis(t, url, soon)
	first, second := entryOf("ann", "1"), entryOf("ann", "2")
	add(t, dead, first)
	add(t, dead, second)
	e, err := dead.Next(t.Context())
	if err != nil || e.ID != first.ID {
		t.Fatalf("%+v %v", e, err)
	}
	dead.stop() // it says nothing any more
	dead.tending.Wait()
	again, err := other.Next(t.Context())
	if err != nil || again.ID != first.ID || string(again.Request.Body) != "1" {
		t.Fatalf("%+v %v", again, err)
	}
	e.State, e.Ended = Done, time.Now()
	dead.End(e)
	e.Next = time.Now()
	dead.Again(e)
	if got, before, err := other.Get(t.Context(), second.ID); err != nil || before != 1 || got.State != Waiting {
		t.Errorf("the one behind: %+v %d %v", got, before, err)
	}
	again.State, again.Ended = Done, time.Now()
	other.End(again)
	if e, err = other.Next(t.Context()); err != nil || e.ID != second.ID {
		t.Errorf("%+v %v", e, err)
	}
}

// As long as a gateway tries the first of a line, others get nothing of it; what it puts back, others get.
func TestGatewaysShareLines(t *testing.T) {
	url := "redis://" + testdep.Redis(t, keepsAll...).Addr
	a, b := openRedis(t, url), openRedis(t, url)
	ann, bob := entryOf("ann", "1"), entryOf("bob", "1")
	add(t, a, ann)
	add(t, a, entryOf("ann", "2"))
	add(t, b, bob)
	one, err := a.Next(t.Context())
	if err != nil || one.ID != ann.ID {
		t.Fatalf("%+v %v", one, err)
	}
	two, err := b.Next(t.Context())
	if err != nil || two.ID != bob.ID {
		t.Fatalf("%+v %v", two, err)
	}
	if _, name, _, err := b.turn(t.Context()); err != nil || name != "" {
		t.Errorf("%s is due, %v", name, err)
	}
	for _, f := range []func() error{
		func() error { return b.Drop(t.Context(), ann.ID, "x") },
		func() error { return b.Retry(t.Context(), ann.ID, time.Now()) },
	} {
		if err := f(); !errors.Is(err, ErrBusy) {
			t.Errorf("what the other gateway tries: %v", err)
		}
	}
	one.Attempts, one.Reason, one.Next = 1, "broken", time.Now()
	a.Again(one)
	got, err := b.Next(t.Context())
	if err != nil || got.ID != ann.ID || got.Attempts != 1 || got.Reason != "broken" {
		t.Errorf("%+v %v", got, err)
	}
	for _, s := range []*Redis{a, b} {
		if busy, err := s.Busy(t.Context(), ann.Line); !busy || err != nil {
			t.Errorf("%v %v", busy, err)
		}
		if busy, err := s.Busy(t.Context(), Line{"orders", "user", "eve"}); busy || err != nil {
			t.Errorf("%v %v", busy, err)
		}
	}
}

// A Redis that is killed has all that was added, and is used again; meanwhile nothing is kept.
func TestRedisIsKilled(t *testing.T) {
	server := testdep.Redis(t, keepsAll...)
	r := openRedis(t, "redis://"+server.Addr)
	var want []string
	for i := range 20 {
		e := entryOf("ann", fmt.Sprint(i))
		add(t, r, e)
		want = append(want, e.ID)
	}
	e, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := r.Add(ctx, entryOf("ann", "x"), wide); err == nil {
		t.Error("kept nowhere")
	}
	if _, err := r.Busy(t.Context(), e.Line); err == nil {
		t.Error("who knows?")
	}
	if s, err := r.Stats(t.Context()); err != nil || s.Err == nil {
		t.Errorf("%+v %v", s, err)
	}
	e.State, e.Ended = Done, time.Now()
	r.End(e)
	if s, _ := r.Stats(t.Context()); s.Unwritten != 1 {
		t.Errorf("%d ends are not written, want 1", s.Unwritten)
	}
	server.Start()
	got := []string{e.ID}
	for range 19 {
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.ID)
		e.State, e.Ended = Done, time.Now()
		r.End(e)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v came, want %v", got, want)
	}
	if s, err := r.Stats(t.Context()); err != nil || s.Waiting != 0 || s.Done != 20 || s.Unwritten != 0 {
		t.Errorf("%+v %v", s, err)
	}
}

// A Redis that might lose what was promised keeps nothing, and says what to do.
func TestFit(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		r := openRedis(t, "redis://"+testdep.Redis(t, args...).Addr)
		_, err := r.Fit(t.Context())
		var unfit *UnfitError
		if want != "" && (!errors.As(err, &unfit) || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
		if _, err := r.Add(t.Context(), entryOf("ann", "x"), wide); (err == nil) != (want == "") {
			t.Errorf("%v: %v", args, err)
		}
		if err := r.Append(t.Context(), "s", 0, entryOf("ann", "x")); (err == nil) != (want == "") {
			t.Errorf("%v: %v", args, err)
		}
	}
	f("", keepsAll...)
	f("appendonly yes")
	f("appendfsync always", "--appendonly", "yes", "--appendfsync", "everysec")
	f("maxmemory-policy noeviction", append([]string{"--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"}, keepsAll...)...)
	server := testdep.Redis(t, keepsAll...)
	server.Do("ACL", "SETUSER", "tg", "on", ">pw", "~*", "&*", "+@all", "-config")
	r := openRedis(t, "redis://tg:pw@"+server.Addr)
	if unchecked, err := r.Fit(t.Context()); err != nil || len(unchecked) != 1 || !strings.Contains(unchecked[0], "appendfsync") {
		t.Errorf("CONFIG is forbidden: %q %v", unchecked, err)
	}
	add(t, r, entryOf("ann", "x"))
}

// Bodies are longer than what Redis answers at once.
func TestLongBody(t *testing.T) {
	r := openRedis(t, "redis://"+testdep.Redis(t, keepsAll...).Addr, func(o *RedisOptions) { o.Max = 1 << 30 })
	for _, size := range []int{0, 1, partSize - 1, partSize, partSize + 1, 3*partSize + 7} {
		body := make([]byte, size)
		_, _ = rand.Read(body)
		add(t, r, entryOf("ann", string(body)))
		e, err := r.Next(t.Context())
		if err != nil || string(e.Request.Body) != string(body) {
			t.Fatalf("%d bytes: %d came, %v", size, len(e.Request.Body), err)
		}
		e.State, e.Ended = Done, time.Now()
		r.End(e)
	}
}

// Results make room for requests, and are forgotten after their time.
func TestResultsMakeRoomInRedis(t *testing.T) {
	r := openRedis(t, "redis://"+testdep.Redis(t, keepsAll...).Addr, func(o *RedisOptions) { o.Max, o.Results = 64<<10, time.Millisecond })
	dead := 0
	for i := range 30 {
		add(t, r, entryOf("ann", strings.Repeat("x", 1<<10)))
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.State, e.Ended, e.Result = Done, time.Now(), &Result{Status: 200, Body: []byte(strings.Repeat("y", 8<<10))}
		if i%10 == 0 {
			e.State, e.Reason = Dead, "no"
			dead++
		}
		r.End(e)
		if s, _ := r.Stats(t.Context()); s.Bytes > 64<<10+10<<10 {
			t.Fatalf("%d bytes after %d", s.Bytes, i)
		}
	}
	if s, _ := r.Stats(t.Context()); s.Done > 8 || s.Dead != int64(dead) {
		t.Errorf("%d results and %d dead letters are kept", s.Done, s.Dead)
	}
	for {
		r.purge(t.Context())
		s, err := r.Stats(t.Context())
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		if s.Done == 0 && s.Dead == int64(dead) {
			break
		}
	}
}
