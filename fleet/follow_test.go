package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
)

// boardOf is the board of a store, which looks from now on.
func boardOf(t testing.TB, s *fleet.Store) *board.Board {
	t.Helper()
	b, ok := board.Of(s)
	if !ok {
		t.Fatal("there is no board behind the store")
	}
	b.Start()
	return b
}

// ordered are the ids of records in force.
func ordered(b *board.Board) string {
	var ids []string
	for _, r := range b.All() {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// order puts a record on a board.
func order(t testing.TB, b *board.Board, id string) board.Reach {
	t.Helper()
	reach, err := b.Put(t.Context(), board.Record{ID: id, Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	return reach
}

// wantOrdered wants boards to have records soon.
func wantOrdered(t testing.TB, when, want string, all ...*board.Board) {
	t.Helper()
	for i, b := range all {
		testdep.Eventually(t, fmt.Sprintf("%s, board %d has %q", when, i, want), func() bool { return ordered(b) == want })
	}
}

const followRules = `version: 1
rules:
  - name: api
    per: ip
    limits: 2/day
`

// address is that of a caller.
type address string

func (a address) Value(name string) (string, bool) { return string(a), name == "ip" }

// following starts a program with rules that follows what operators order.
func following(t *testing.T, url string, o fleet.Options) (*tidegate.Gate, *fleet.Store) {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(followRules), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	o.Deadline = patient
	s := open(t, url, o)
	live := rules.NewLive(set)
	fleet.Follow(s, live)
	return tidegate.NewGate(live, s), s
}

// Programs that share Redis hold to what is ordered at any of them, and to no more than they
// can: the rest is told.
func TestFollow(t *testing.T) {
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	var mu sync.Mutex
	var told []string
	one, first := following(t, url, fleet.Options{Name: "one"})
	two, _ := following(t, url, fleet.Options{Name: "two", OnMeasure: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}})
	b := boardOf(t, first)
	ask := func(g *tidegate.Gate, ip string) bool {
		t.Helper()
		d := g.Decide(t.Context(), &tidegate.Request{Method: "GET", Path: "/", Values: address(ip)})
		if d.Err != nil {
			t.Error(d.Err)
		}
		return d.OK
	}
	put := func(m rules.Measure) {
		t.Helper()
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		testdep.Eventually(t, "both have it", func() bool { // a busy machine may not say so in time
			reach, err := b.Put(t.Context(), board.Record{ID: m.ID, Body: body, Expires: m.Until})
			if err != nil {
				t.Fatal(err)
			}
			return reach.Everywhere() && len(reach.Has) == 2
		})
	}
	testdep.Eventually(t, "both are listed as following", func() bool {
		members, err := first.Members(t.Context())
		return err == nil && len(members) == 2 && members[0].Follows && members[1].Follows
	})
	for range 2 {
		ask(two, "10.0.0.1")
	}
	if ask(two, "10.0.0.1") {
		t.Error("three of two")
	}
	put(rules.Measure{ID: "more", Kind: rules.Override, As: map[string]string{"ip": "10.0.0.1"}, Rule: "api", Limits: []string{"5/day"}})
	for i := range 4 {
		if got := ask(two, "10.0.0.1"); got != (i < 3) {
			t.Errorf("request %d after two of five: %t", i, got)
		}
	}
	put(rules.Measure{ID: "out", Kind: rules.Ban, As: map[string]string{"ip": "10.0.0.2"}})
	if ask(one, "10.0.0.2") || ask(two, "10.0.0.2") {
		t.Error("who is banned was let in")
	}
	put(rules.Measure{ID: "odd", Kind: rules.Override, As: map[string]string{"ip": "10.0.0.3"}, Rule: "gone", Limits: []string{"5/day"}})
	if _, err := b.Put(t.Context(), board.Record{ID: "junk", Body: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	testdep.Eventually(t, "what cannot hold is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(told, "\n")
		if len(told) > 2 {
			t.Errorf("told again: %q", told)
		}
		return strings.Contains(text, "measure odd: ") && strings.Contains(text, "gone") && strings.Contains(text, "measure junk: ")
	})
	if _, err := b.End(t.Context(), "out"); err != nil {
		t.Fatal(err)
	}
	testdep.Eventually(t, "who is no longer banned is let in", func() bool { return ask(one, "10.0.0.2") && ask(two, "10.0.0.2") })
}

// An instance that does not follow, as those of older versions, is named, and is left alone.
func TestOrdersBesideOthers(t *testing.T) {
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	old := open(t, url, fleet.Options{Name: "old", Deadline: patient})
	s := open(t, url, fleet.Options{Name: "new", Deadline: patient})
	b := boardOf(t, s)
	testdep.Eventually(t, "both are known", func() bool {
		members, err := s.Members(t.Context())
		return err == nil && len(members) == 2 && members[0].Follows && members[1].Known
	})
	testdep.Eventually(t, "it is said who does not have it", func() bool {
		reach := order(t, b, "x")
		return len(reach.Has) == 1 && len(reach.Lacks) == 1 && reach.Lacks[0].Name == "old" && strings.Contains(reach.Lacks[0].Why, "does not follow")
	})
	if d := tidegate.New(old, tidegate.PerDay(1)).Allow(t.Context(), "ann"); !d.OK || d.Err != nil {
		t.Errorf("%+v", d)
	}
}

// What is ordered survives a restart of all instances and of Redis, with what it keeps; a
// Redis that has lost everything; and one that is away, which says so.
func TestOrdersSurvive(t *testing.T) {
	dir := t.TempDir()
	server := testdep.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	url := "redis://" + server.Addr
	start := func(name string, o fleet.Options) (*fleet.Store, *board.Board) {
		o.Name, o.Deadline = name, patient
		s := open(t, url, o)
		return s, boardOf(t, s)
	}
	s1, b1 := start("one", fleet.Options{})
	s2, b2 := start("two", fleet.Options{})
	order(t, b1, "kept")
	order(t, b2, "ended")
	if _, err := b1.End(t.Context(), "ended"); err != nil {
		t.Fatal(err)
	}
	wantOrdered(t, "at first", "kept", b1, b2)

	for _, s := range []*fleet.Store{s1, s2} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	server.Start()
	file := filepath.Join(dir, "state")
	s1, b1 = start("one", fleet.Options{StateFile: file})
	_, b2 = start("two", fleet.Options{})
	wantOrdered(t, "after all were restarted", "kept", b1, b2)

	server.Do("FLUSHALL")
	testdep.Eventually(t, "an empty Redis is filled again", func() bool { return strings.Contains(server.Do("KEYS", "*"), ":row:kept") })
	_, b3 := start("three", fleet.Options{})
	wantOrdered(t, "after Redis was emptied", "kept", b1, b2, b3)

	testdep.Eventually(t, "it is known who is there", func() bool {
		members, err := s1.Members(t.Context())
		reach := order(t, b1, "kept")
		return err == nil && len(members) == 3 && len(reach.Has) == 3
	})
	for name, away := range map[string]struct{ begin, end func() }{
		"paused": {server.Pause, server.Resume},
		"killed": {server.Kill, server.Start},
	} {
		away.begin()
		reach := order(t, b1, name)
		if reach.Everywhere() || len(reach.Lacks) < 2 || reach.Why == "" || !slices.Equal(reach.Kept, []string{board.InFile}) {
			t.Errorf("%s: %s", name, &reach)
		}
		if !strings.Contains(ordered(b1), name) {
			t.Errorf("%s: it does not hold here", name)
		}
		away.end()
	}
	wantOrdered(t, "when Redis is back", "kept killed paused", b1, b2, b3)

	server.Kill()
	if err := s1.Close(); err != nil {
		t.Fatal(err)
	}
	_, b1 = start("one", fleet.Options{StateFile: file})
	if got := ordered(b1); got != "kept killed paused" {
		t.Errorf("started while Redis is away, with a file: %q", got)
	}
}

// The same in a cluster, and with Sentinels, while a master fails over.
func TestOrdersFailOver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	f := func(t *testing.T, name, url string, owner func() *testdep.RedisServer) {
		t.Helper()
		b1 := boardOf(t, open(t, url, fleet.Options{Name: name + "1", Deadline: patient}))
		b2 := boardOf(t, open(t, url, fleet.Options{Name: name + "2", Deadline: patient}))
		order(t, b1, "before")
		wantOrdered(t, name+" at first", "before", b1, b2)
		owner().Kill()
		order(t, b2, "meanwhile")
		if _, err := b1.End(context.Background(), "before"); err != nil {
			t.Error(err)
		}
		wantOrdered(t, name+" after a failover", "meanwhile", b1, b2)
		s3 := open(t, url, fleet.Options{Name: name + "3", Deadline: patient})
		wantOrdered(t, name+", by the new master", "meanwhile", boardOf(t, s3))
	}
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		servers, sentinels := testdep.RedisSentinel(t, 1)
		testdep.FailOverSoon(sentinels)
		f(t, "sentinel", "redis-sentinel://"+sentinels[0].Addr+"/mymaster", func() *testdep.RedisServer { return servers[0] })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		nodes := testdep.RedisCluster(t, 3, 1)
		testdep.FailOverSoon(nodes)
		f(t, "cluster", "redis-cluster://"+nodes[0].Addr+","+nodes[1].Addr+","+nodes[2].Addr, func() *testdep.RedisServer {
			slot := nodes[0].Do("CLUSTER", "KEYSLOT", "tg:board")
			for _, n := range nodes[:3] {
				if n.Do("CLUSTER", "COUNTKEYSINSLOT", slot) != "0" {
					return n
				}
			}
			t.Fatal("no master has the board")
			return nil
		})
	})
}
