package redis

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// told registers a node that tells about itself.
func told(t testing.TB, s *Store, id, about string, ttl time.Duration) chain.Roster {
	t.Helper()
	r, err := in(s).Beat(t.Context(), chain.Heartbeat{ID: id, TTL: ttl, About: about})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listed is who is there, and what they tell.
func listed(t testing.TB, s *Store) string {
	t.Helper()
	all, err := in(s).Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, e := range all {
		if e.Expires <= 0 || e.Expires > time.Minute || e.About != "" && (e.Age < 0 || e.Age > time.Minute) {
			t.Errorf("%s was told %s ago and expires in %s", e.ID, e.Age, e.Expires)
		}
		text = append(text, e.ID+"="+e.About)
	}
	return strings.Join(text, " ")
}

// Instances are listed with what they told last, whoever asks, until they leave or expire.
func TestEntries(t *testing.T) {
	t.Parallel()
	_, sentinels := testdep.RedisSentinel(t, 1)
	for name, c := range map[string]Config{
		"single":   {URL: "redis://" + testdep.Redis(t).Addr},
		"sentinel": sentinelsOf(sentinels),
		"cluster":  clusterOf(testdep.RedisCluster(t, 3, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := openTest(t, c), openTest(t, c)
			b.prefix = a.prefix
			reader := openTest(t, c) // of which nobody hears
			reader.prefix = a.prefix
			want := func(want string) {
				t.Helper()
				for _, s := range []*Store{a, b, reader} {
					if got := listed(t, s); got != want {
						t.Errorf("listed %q, want %q", got, want)
					}
				}
			}
			want("")
			told(t, a, "ann", "{first}", time.Minute)
			want("ann={first}")
			told(t, b, "bob", strings.Repeat("b", chain.MaxAbout), time.Minute)
			told(t, a, "ann", "second \x00\xff words", time.Minute)
			want("ann=second \x00\xff words bob=" + strings.Repeat("b", chain.MaxAbout))
			if _, err := in(a).Beat(t.Context(), chain.Heartbeat{ID: "ann", TTL: time.Minute, About: strings.Repeat("x", chain.MaxAbout+1)}); err == nil {
				t.Error("a text was taken that is too long")
			}
			if err := in(b).Leave(t.Context(), "bob"); err != nil {
				t.Error(err)
			}
			want("ann=second \x00\xff words")
			told(t, a, "ann", "third", 30*time.Millisecond)
			testdep.Eventually(t, "it expires", func() bool { return listed(t, reader) == "" })
			for k, err := range a.Keys(t.Context(), "") {
				t.Errorf("%+v, %v is taken for a counter", k, err)
			}
		})
	}
}

// What an instance tells is deleted when it leaves, and expires when it dies.
func TestEntriesLeaveNothing(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	told(t, s, "ann", "x", time.Minute)
	if err := in(s).Leave(t.Context(), "ann"); err != nil || server.Do("DBSIZE") != "0" {
		t.Errorf("%v, and there are %s", err, server.Do("KEYS", "*"))
	}
	told(t, s, "ann", "x", 10*time.Millisecond)
	testdep.Eventually(t, "all is gone", func() bool { return server.Do("DBSIZE") == "0" })
}

// Instances of the version before register with a script that knows of no texts: each
// counts all, and those are listed without a text.
func TestEntriesOfTwoVersions(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	text, err := os.ReadFile("testdata/beat1/beat.lua")
	if err != nil {
		t.Fatal(err)
	}
	before := &script{text: string(text), sha: strings.Repeat("0", 40)}
	old := func(want int64) {
		t.Helper()
		var head packer
		of := s.tag()
		head.number(float64(of))
		got, err := s.endpoints[0].runNumbers(t.Context(), before, []string{s.nodeSet()}, []string{string(head), "old", "60000"}, of)
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("the old version counts %d, %v; want %d", got, err, want)
		}
	}
	old(1)
	if r := told(t, s, "new", "{}", time.Minute); r.Live != 2 {
		t.Errorf("%d are counted, want 2", r.Live)
	}
	old(2)
	if got := listed(t, s); got != "new={} old=" {
		t.Errorf("listed %q", got)
	}
	if err := in(s).Leave(t.Context(), "new"); err != nil {
		t.Error(err)
	}
	old(1)
}

// Whoever writes to Redis may write anything there.
func TestEntriesOfStrangers(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	told(t, s, "ann", "{}", time.Minute)
	live := fmt.Sprint(time.Now().Add(30 * time.Second).UnixMilli())
	for id, write := range map[string][]string{
		"list":   {"RPUSH", "x"},
		"plain":  {"SET", "no time"},
		"huge":   {"SET", "1 " + strings.Repeat("x", 8<<10)},
		"future": {"SET", "9999999999999999 {}"},
		"number": {"SET", "99999999999999999999 {}"},
		"empty":  {"SET", ""},
	} {
		server.Do("ZADD", s.nodeSet(), live, id)
		server.Do(write[0], aboutKey(s.nodeSet(), id), write[1])
	}
	server.Do("ZADD", s.nodeSet(), live, strings.Repeat("n", maxNodeName+1), live, "\x1b[2J\r\n{}", live, "{")
	want := "\x1b[2J\r\n{}= ann={} empty= future={} huge= list= number= plain= {="
	if got := listed(t, s); got != want {
		t.Errorf("listed %q, want %q", got, want)
	}
	for _, score := range []string{"inf", "1e300", "9007199254740993", live + ".5"} {
		server.Do("ZADD", s.nodeSet(), score, "odd")
		all, err := in(s).Entries(t.Context())
		if err != nil || len(all) != 10 || slices.ContainsFunc(all, func(e chain.Entry) bool { return e.Expires < 0 || e.Expires > 24*time.Hour }) {
			t.Errorf("with a score of %s: %+v, %v", score, all, err)
		}
	}
	server.Do("DEL", s.nodeSet())
	server.Do("SET", s.nodeSet(), "mine")
	if _, err := in(s).Entries(t.Context()); err == nil || !strings.Contains(err.Error(), "something else is stored under this key") {
		t.Errorf("got %v", err)
	}
}

// More instances than are listed at once.
func TestEntriesOfManyInstances(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	server.Do("EVAL", `for i = 1, tonumber(ARGV[3]) do
		redis.call('ZADD', KEYS[1], ARGV[1], 'i' .. i)
		redis.call('SET', ARGV[2] .. 'i' .. i, '1 ' .. string.rep('x', 512)) end return 1`,
		"1", s.nodeSet(), fmt.Sprint(time.Now().Add(30*time.Second).UnixMilli()), aboutKey(s.nodeSet(), ""), "5000")
	all, err := in(s).Entries(t.Context())
	if err != nil || len(all) != maxListed {
		t.Fatalf("%d are listed, %v", len(all), err)
	}
	for _, e := range all {
		if len(e.About) != chain.MaxAbout {
			t.Fatalf("%s tells %q", e.ID, e.About)
		}
	}
}

// A master that does not answer is named, and the others list everybody.
func TestEntriesOfAPartOfACluster(t *testing.T) {
	t.Parallel()
	servers := testdep.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	a := openTest(t, clusterOf(servers))
	testdep.Eventually(t, "every master is known", func() bool {
		a.refreshTopology()
		return len(a.nodeSets()) == 3
	})
	told(t, a, "ann", "hello", time.Minute) // to all three, as all three are known
	dead := servers[holder(t, servers, servers[0].Do("CLUSTER", "KEYSLOT", a.nodeSet()))]
	dead.Pause()
	defer dead.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	all, err := in(a).Entries(ctx)
	if len(all) != 1 || all[0].About != "hello" || err == nil || !strings.Contains(err.Error(), dead.Addr) {
		t.Errorf("listed %+v, %v; want one, and to be told of %s", all, err, dead.Addr)
	}
}

// The clocks are compared to within half a round trip, however far they are apart.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	single, cluster := Config{URL: "redis://" + testdep.Redis(t).Addr}, clusterOf(testdep.RedisCluster(t, 3, 0))
	for _, skew := range []time.Duration{0, time.Millisecond, -time.Millisecond, 99 * time.Millisecond, 101 * time.Millisecond, -5 * time.Second, time.Hour, -240 * time.Hour} {
		for _, c := range []Config{single, cluster} {
			c.node = func() time.Time { return time.Now().Add(skew) }
			s := openTest(t, c)
			if c.Cluster {
				testdep.Eventually(t, "it knows the masters", func() bool {
					told(t, s, "ann", "", time.Minute)
					return len(s.nodeSets()) == 3
				})
			}
			got := told(t, s, "ann", "", time.Minute).Clock
			if !got.Known() || (got.Offset-skew).Abs() > got.Within || c.Cluster != (got.Server != "") {
				t.Errorf("%+v, want %s", got, skew)
			}
		}
	}
}
