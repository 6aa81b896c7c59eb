package deferq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

// sent has so many entries sent, and returns the bodies in the order of each line.
func sent(t testing.TB, r *Redis, n int) map[Line][]string {
	t.Helper()
	got := map[Line][]string{}
	for range n {
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got[e.Line] = append(got[e.Line], string(e.Request.Body))
		e.State, e.Ended = Done, time.Now()
		r.End(e)
	}
	return got
}

// bodies are those that entriesOf makes.
func bodies(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// When the master of Sentinels dies while requests are kept, its replica has them, in their order; what was
// being sent is recorded there, and more are kept.
func TestSentinelFailoverWithRequestsWaiting(t *testing.T) {
	servers, sentinels := testdep.RedisSentinel(t, 1, keepsAll...)
	var at []string
	for _, s := range sentinels {
		at = append(at, s.Addr)
	}
	r := openRedis(t, "redis-sentinel://"+strings.Join(at, ",")+"/mymaster")
	const each = 6
	for i := range each {
		for _, key := range []string{"ann", "bob", "eve"} {
			add(t, r, entryOf(key, fmt.Sprint(i)))
		}
	}
	trying, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := servers[0].Do("WAIT", "1", "60000"); n != "1" {
		t.Fatalf("%s replicas have it", n)
	}
	testdep.FailOverSoon(sentinels)
	servers[0].Kill()
	trying.State, trying.Ended = Done, time.Now()
	r.End(trying)
	got := sent(t, r, 3*each-1)
	for _, key := range []string{"ann", "bob", "eve"} {
		want := bodies(each)
		if key == trying.Line.Key {
			want = want[1:]
		}
		if bodies := got[Line{"orders", "user", key}]; !slices.Equal(bodies, want) {
			t.Errorf("%s: %v came, want %v", key, bodies, want)
		}
	}
	if s, err := r.Stats(t.Context()); err != nil || s.Waiting != 0 || s.Done != 3*each || s.Err != nil {
		t.Errorf("%+v %v", s, err)
	}
	add(t, r, entryOf("ann", "0"))
	sent(t, r, 1)
}

// overShards keeps entries on servers, each a shard.
func overShards(t testing.TB, n int) (servers []*testdep.RedisServer, shards []redis.Shard) {
	for i := range n {
		s := testdep.Redis(t, keepsAll...)
		servers, shards = append(servers, s), append(shards, redis.Shard{Name: fmt.Sprint("s", i), URL: "redis://" + s.Addr})
	}
	return servers, shards
}

// Over shards requests are kept as on one server.
func TestShards(t *testing.T) {
	_, shards := overShards(t, 3)
	n := 0
	in := func(t testing.TB, max int64) func() Store {
		n++
		server := redis.Config{Shards: shards, Prefix: fmt.Sprint("t", n)}
		return func() Store {
			return openRedis(t, "", func(o *RedisOptions) { o.Server, o.Max = server, max })
		}
	}
	for name, f := range map[string]func(*testing.T, kept){"bounds": testStoreIsBounded, "random": testStoreRandom, "drop": testDrop, "restart": testOutlastsTheProcess} {
		t.Run(name, func(t *testing.T) { f(t, in) })
	}
}

// While a shard is away, the rules on others go on: theirs are sent, more are kept, and nobody waits for the
// one that is gone. When it is back, its own are sent.
func TestOneShardIsAway(t *testing.T) {
	for name, f := range map[string]struct{ leave, back func(*testdep.RedisServer) }{
		"killed":  {(*testdep.RedisServer).Kill, (*testdep.RedisServer).Start},
		"hanging": {(*testdep.RedisServer).Pause, (*testdep.RedisServer).Resume},
	} {
		t.Run(name, func(t *testing.T) { testOneShardIsAway(t, f.leave, f.back) })
	}
}

func testOneShardIsAway(t *testing.T, leave, back func(*testdep.RedisServer)) {
	servers, shards := overShards(t, 2)
	r := openRedis(t, "", func(o *RedisOptions) { o.Server = redis.Config{Shards: shards} })
	const rules, each = 8, 3
	of := func(rule, i int) *Entry {
		e := entryOf("ann", fmt.Sprint(i))
		e.Line.Rule = fmt.Sprint("rule", rule)
		return e
	}
	away := map[string]bool{} // rules that are on the first shard
	var firsts []*Entry       // of each rule
	for rule := range rules {
		firsts = append(firsts, of(rule, 0))
		add(t, r, firsts[rule])
		for i := 1; i < each; i++ {
			add(t, r, of(rule, i))
		}
		away[fmt.Sprint("rule", rule)] = servers[0].Do("EXISTS", fmt.Sprintf("tg:deferred{rule%d}:meta", rule)) == "1"
	}
	gone := 0
	for _, is := range away {
		if is {
			gone++
		}
	}
	if gone == 0 || gone == rules {
		t.Fatalf("%d of %d rules are on one shard: the test has lost its point", gone, rules)
	}
	leave(servers[0])
	for line, got := range sent(t, r, (rules-gone)*each) {
		if away[line.Rule] || !slices.Equal(got, bodies(each)) {
			t.Errorf("%s: %v came", line.Rule, got)
		}
	}
	for rule := range rules {
		e := of(rule, each)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, busyErr := r.Busy(ctx, e.Line)
		roomErr := r.Room(ctx, e.Line, 1, wide)
		if is := away[e.Line.Rule]; (busyErr != nil) != is || (roomErr != nil) != is {
			t.Errorf("%s, whose shard is away %t: %v, %v", e.Line.Rule, is, busyErr, roomErr)
		}
		cancel()
	}
	for _, e := range firsts { // who has sent a request is told of it, whatever is with other rules
		got, _, err := r.Get(t.Context(), e.ID)
		if is := away[e.Line.Rule]; (err != nil) != is || errors.Is(err, ErrNone) || !is && got.State != Done {
			t.Errorf("%s, whose shard is away %t: %+v, %v", e.Line.Rule, is, got, err)
		}
	}
	if s, err := r.Stats(t.Context()); err != nil || s.Err == nil || s.Done != int64((rules-gone)*each) {
		t.Errorf("%+v %v", s, err)
	}
	back(servers[0])
	for line, got := range sent(t, r, gone*each) {
		if !away[line.Rule] || !slices.Equal(got, bodies(each)) {
			t.Errorf("%s: %v came", line.Rule, got)
		}
	}
}

// A rule whose keys somebody else has written to keeps no other from being sent, on the same server.
func TestOneRuleCannotBeAsked(t *testing.T) {
	server := testdep.Redis(t, keepsAll...)
	r := openRedis(t, "redis://"+server.Addr)
	const rules, each = 4, 3
	for rule := range rules {
		for i := range each {
			e := entryOf("ann", fmt.Sprint(i))
			e.Line.Rule = fmt.Sprint("rule", rule)
			add(t, r, e)
		}
	}
	const taken = "tg:deferred{rule0}:turns"
	server.Do("RENAME", taken, taken+"-aside")
	server.Do("SET", taken, "mine")
	for line, got := range sent(t, r, (rules-1)*each) {
		if line.Rule == "rule0" || !slices.Equal(got, bodies(each)) {
			t.Errorf("%s: %v came", line.Rule, got)
		}
	}
	if s, err := r.Stats(t.Context()); err != nil || s.Err == nil {
		t.Errorf("%+v %v: it does not tell", s, err)
	}
	server.Do("RENAME", taken+"-aside", taken)
	for line, got := range sent(t, r, each) {
		if line.Rule != "rule0" || !slices.Equal(got, bodies(each)) {
			t.Errorf("%s: %v came", line.Rule, got)
		}
	}
}
