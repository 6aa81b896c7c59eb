package deferq

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

// A stream that cannot be appended to keeps no rule on the same server from being asked about, and no other
// stream; once it can be, it is.
func TestOneStreamCannotBeAppendedTo(t *testing.T) {
	for name, f := range map[string]struct{ spoil, mend []string }{
		"another type": {[]string{"SET", "parcels", "mine"}, []string{"DEL", "parcels"}},
		"forbidden":    {[]string{"ACL", "SETUSER", "default", "resetkeys", "~tg:*", "~letters"}, []string{"ACL", "SETUSER", "default", "~*"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := testdep.Redis(t, keepsAll...)
			var log bytes.Buffer
			r := openRedis(t, "redis://"+server.Addr, func(o *RedisOptions) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			const each = 20
			e := entryOf("ann", "0")
			add(t, r, e)
			server.Do(f.spoil...)
			for i := range each {
				if err := r.Append(t.Context(), "parcels", 0, entryOf("bob", "x")); err == nil {
					t.Fatal("it was appended")
				}
				if busy, err := r.Busy(t.Context(), e.Line); !busy || err != nil {
					t.Fatalf("%d: busy %v, %v", i, busy, err)
				}
				if err := r.Room(t.Context(), e.Line, 1, wide); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				if _, name, _, err := r.turn(t.Context()); err != nil || (name != "") != (i == 0) { // a line is looked at once
					t.Fatalf("%d: the turn of %q, %v", i, name, err)
				}
				if err := r.Append(t.Context(), "letters", 0, entryOf("bob", "x")); err != nil {
					t.Fatalf("%d: another stream: %v", i, err)
				}
			}
			server.Do(f.mend...)
			testdep.Eventually(t, "it is appended to again", func() bool { return r.Append(t.Context(), "parcels", 0, entryOf("bob", "x")) == nil })
			closed(t, r)
			if text := log.String(); strings.Contains(text, "none is kept") || strings.Count(text, "stream=parcels") != 2 {
				t.Errorf("the log says:\n%s", text)
			}
		})
	}
}

// How a shard answers about a stream is known of that shard, and of no other.
func TestStreamOfAnotherShard(t *testing.T) {
	servers, shards := overShards(t, 2)
	r := openRedis(t, "", func(o *RedisOptions) { o.Server = redis.Config{Shards: shards} })
	if err := r.fit(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := rulesKey(r.scripts)
	var far, near string // streams of another shard than the rules, and of theirs
	for i := 0; far == "" || near == ""; i++ {
		name := fmt.Sprint("stream", i)
		if r.scripts.Home(name) == r.scripts.Home(all) {
			near = name
		} else {
			far = name
		}
	}
	at := func(stream string) *testdep.RedisServer {
		return servers[slices.IndexFunc(shards, func(s redis.Shard) bool { return s.Name == r.scripts.Home(stream) })]
	}
	at(far).Kill()
	if err := r.Append(t.Context(), far, 0, entryOf("ann", "x")); err == nil {
		t.Fatal("it was appended")
	}
	if err := r.isAway(""); err != nil {
		t.Errorf("the shard of the rules is healthy: %v", err)
	}
	if err := r.Append(t.Context(), near, 0, entryOf("ann", "x")); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	_, away := r.away[place{server: r.scripts.Home(far)}]
	r.mu.Unlock()
	if !away {
		t.Error("the shard that was killed is taken for healthy, as the other one answers")
	}
}
