package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// testShelf wants a shelf to be one. It begins empty.
func testShelf(t *testing.T, s *Store) {
	t.Helper()
	shelf, ctx := in(s).Shelf("rules"), t.Context()
	if v, err := shelf.Newest(ctx); err != nil || v != (chain.Version{}) {
		t.Fatalf("of an empty shelf: %+v, %v", v, err)
	}
	if all, err := shelf.Versions(ctx); err != nil || len(all) != 0 {
		t.Fatalf("of an empty shelf: %+v, %v", all, err)
	}
	text := func(i int) []byte { // of sizes from nothing to more than two parts
		return bytes.Repeat(fmt.Appendf(nil, "%d\x00\r\n", i), i*partSize/8/3)
	}
	var last chain.Version
	var all []chain.Version
	for i := range chain.MaxVersions + 3 {
		v, err := shelf.Put(ctx, last, fmt.Sprintf("label %d with spaces", i), text(i))
		if err != nil || v.Number != int64(i+1) || v.Label != fmt.Sprintf("label %d with spaces", i) || v.Size != int64(len(text(i))) || time.Since(v.At).Abs() > time.Hour {
			t.Fatalf("%d: %+v, %v", i, v, err)
		}
		if _, err := shelf.Put(ctx, last, "late", text(1)); !errors.Is(err, chain.ErrMoved) {
			t.Fatalf("%d, after one that is not the newest: %v", i, err)
		}
		if newest, err := shelf.Newest(ctx); err != nil || newest != v {
			t.Fatalf("%d: newest %+v, %v; want %+v", i, newest, err, v)
		}
		last, all = v, append(all, v)
	}
	kept, err := shelf.Versions(ctx)
	if err != nil || len(kept) != chain.MaxVersions {
		t.Fatalf("%d are kept, %v", len(kept), err)
	}
	for i, v := range all {
		got, err := shelf.Read(ctx, v)
		if old := i < 3; old && !errors.Is(err, chain.ErrNotKept) || !old && (err != nil || !bytes.Equal(got, text(i)) || kept[len(all)-1-i] != v) {
			t.Errorf("version %d: %d bytes, %v", i+1, len(got), err)
		}
	}
	other := in(s).Shelf("other")
	if v, err := other.Put(ctx, chain.Version{}, "", nil); err != nil || v.Number != 1 {
		t.Errorf("another shelf: %+v, %v", v, err)
	} else if got, err := other.Read(ctx, v); err != nil || len(got) != 0 {
		t.Errorf("a text of nothing: %q, %v", got, err)
	}
	testShelfRace(t, shelf, last)
	testShelfWatch(t, shelf)
}

// testShelfRace lets many put a version after the same one: one of them does.
func testShelfRace(t *testing.T, shelf chain.Shelf, last chain.Version) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i := range 8 {
		all.Go(func() {
			_, err := shelf.Put(t.Context(), last, "race", []byte{byte(i)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done++
			} else if !errors.Is(err, chain.ErrMoved) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if v, err := shelf.Newest(t.Context()); done != 1 || err != nil || v.Number != last.Number+1 {
		t.Errorf("%d of eight have put a version; the newest is %+v, %v", done, v, err)
	}
}

// testShelfWatch wants others to be told, also after their connection was lost.
func testShelfWatch(t *testing.T, shelf chain.Shelf) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- shelf.Watch(ctx, func() { told <- struct{}{} }) }()
	wait := time.After(time.Minute)
	for heard := false; !heard; { // the subscription may not have begun
		v, err := shelf.Newest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shelf.Put(t.Context(), v, "", []byte("x")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
			heard = true
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-wait:
			t.Fatal("nobody is told")
		case <-time.After(100 * time.Millisecond):
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

func openShelfStore(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(Config{URL: url, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestShelf(t *testing.T) {
	server := testdep.Redis(t)
	s := openShelfStore(t, "redis://"+server.Addr)
	testShelf(t, s)
	if keys := strings.Fields(server.Do("KEYS", "tg:shelf:rules*")); len(keys) != 1+chain.MaxVersions {
		t.Errorf("%d keys: %q", len(keys), keys)
	}
	for _, key := range strings.Fields(server.Do("KEYS", "*")) {
		if ttl := server.Do("TTL", key); ttl != "-1" {
			t.Errorf("%s expires in %s", key, ttl)
		}
	}
	shelf, ctx := in(s).Shelf("rules"), t.Context()
	was, err := shelf.Newest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// A text that was tampered with, or is half gone, is not kept.
	text := in(s).Shelf("rules").(fleetShelf).textKey(was.Number)
	server.Do("LSET", text, "1", "y")
	if _, err := shelf.Read(ctx, was); !errors.Is(err, chain.ErrNotKept) {
		t.Errorf("a text that was changed: %v", err)
	}
	server.Do("LTRIM", text, "0", "0")
	if _, err := shelf.Read(ctx, was); !errors.Is(err, chain.ErrNotKept) {
		t.Errorf("a text without its end: %v", err)
	}
	// After a loss of everything, the first version is another one than it was.
	server.Do("FLUSHALL")
	if v, err := shelf.Newest(ctx); err != nil || v.Number != 0 {
		t.Errorf("after a loss: %+v, %v", v, err)
	}
	if _, err := shelf.Put(ctx, was, "", nil); !errors.Is(err, chain.ErrMoved) {
		t.Errorf("after a loss, on top of what is lost: %v", err)
	}
	// What others keep there is told, and stays.
	for _, junk := range []string{"x", "1 2 3", "0 id 1 1 sum label", "1 id 1 -1 sum label", "x id 1 1 sum label", "1  1 1 sum label"} {
		server.Do("DEL", "tg:shelf:rules")
		server.Do("RPUSH", "tg:shelf:rules", junk)
		if _, err := shelf.Newest(ctx); err == nil || !strings.Contains(err.Error(), "use another name") {
			t.Errorf("%q: %v", junk, err)
		}
	}
	server.Do("DEL", "tg:shelf:rules")
	server.Do("SET", "tg:shelf:rules", "x")
	if _, err := shelf.Newest(ctx); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("under a key that somebody else uses: %v", err)
	}
	if _, err := shelf.Put(ctx, chain.Version{}, strings.Repeat("x", chain.MaxLabel+1), nil); err == nil {
		t.Error("a label that is too long is taken")
	}
}

// A version whose answer is lost is found again.
func TestShelfAfterALostAnswer(t *testing.T) {
	s := openShelfStore(t, "redis://"+testdep.Redis(t).Addr)
	shelf := in(s).Shelf("rules").(fleetShelf)
	v, err := shelf.Put(t.Context(), chain.Version{}, "first", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	if got, err := shelf.find(t.Context(), v.ID, lost); err != nil || got != v {
		t.Errorf("%+v, %v; want %+v", got, err, v)
	}
	if _, err := shelf.find(t.Context(), "another", lost); !errors.Is(err, lost) {
		t.Errorf("of another: %v", err)
	}
}

// A user with the permissions of a node has a shelf, and only hears of news late.
func TestShelfWithoutChannels(t *testing.T) {
	server := testdep.Redis(t)
	server.Do("ACL", "SETUSER", "tidegate", "on", ">secret", "~tg:*", "resetchannels",
		"+evalsha", "+eval", "+time", "+del", "+llen", "+lindex", "+lrange", "+rpush", "+ltrim", "+expire", "+hello", "+ping")
	server.Do("ACL", "SETUSER", "default", "off")
	s := openShelfStore(t, "redis://tidegate:secret@"+server.Addr)
	shelf := in(s).Shelf("rules")
	v, err := shelf.Put(t.Context(), chain.Version{}, "first", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := shelf.Newest(t.Context()); err != nil || got != v {
		t.Errorf("%+v, %v", got, err)
	}
	if err := shelf.Watch(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("listening is refused with %v", err)
	}
}

func TestShelfOfASentinel(t *testing.T) {
	_, sentinels := testdep.RedisSentinel(t, 1)
	testShelf(t, openShelfStore(t, "redis-sentinel://"+sentinels[0].Addr+"/mymaster"))
}

func TestShelfOfACluster(t *testing.T) {
	nodes := testdep.RedisCluster(t, 3, 0)
	testShelf(t, openShelfStore(t, "redis-cluster://"+nodes[0].Addr))
}
