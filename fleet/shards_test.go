package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/chain/queue/queuetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

// newShards starts servers, each a shard.
func newShards(t testing.TB, names ...string) (servers []*testdep.RedisServer, shards []fleet.Shard) {
	t.Helper()
	for _, name := range names {
		s := testdep.Redis(t)
		servers, shards = append(servers, s), append(shards, fleet.Shard{Name: name, URL: "redis://" + s.Addr})
	}
	return servers, shards
}

// withPrefix returns shards with a prefix in their URLs.
func withPrefix(shards []fleet.Shard, prefix string) []fleet.Shard {
	own := slices.Clone(shards)
	for i := range own {
		own[i].URL += "?prefix=" + prefix
	}
	return own
}

// The whole stack over shards is a store like any other, also while their list is changed.
func TestConformanceShards(t *testing.T) {
	_, shards := newShards(t, "a", "b", "c")
	for name, was := range map[string]int{"at rest": 0, "moving": 2} {
		t.Run(name, func(t *testing.T) {
			if was == 0 {
				testdep.SkipUnderRace(t) // "moving" is not
			}
			n := 0
			storetest.RunReal(t, func(t *testing.T) tidegate.Store {
				n++
				own := withPrefix(shards, fmt.Sprint("t", was, "-", n))
				s := open(t, "", fleet.Options{Shards: own, Was: own[:was], Deadline: patient})
				s.TurnsBy(new(queuetest.Clock))
				return queuetest.Telling{Store: s}
			}, storetest.Brief())
		})
	}
}

func TestShardsBesideAURL(t *testing.T) {
	shards := []fleet.Shard{{Name: "a", URL: "redis://h1"}, {Name: "b", URL: "redis://h2"}}
	f := func(url string, o fleet.Options, want string) {
		t.Helper()
		if s, err := fleet.Open(url, o); err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", url, err, want)
		}
	}
	f("redis://h3", fleet.Options{Shards: shards}, "keep one of them")
	f("", fleet.Options{Shards: shards[:1]}, "one shard")
	f("", fleet.Options{Was: shards}, "no present ones")
}

// A shard that is added takes a part of the keys: with the former list nobody is refilled;
// without it those keys have one more budget, and no other has.
func TestShardAdded(t *testing.T) {
	_, shards := newShards(t, "a", "b", "c", "d")
	const users, budget = 200, 3
	l := tidegate.MustLimit(tidegate.Spec{Name: "each", Scope: "user", Events: budget, Period: 1000 * time.Hour, Algorithm: tidegate.FixedWindow})
	admitted := func(o fleet.Options) (sum, keys int) {
		o.Deadline = patient
		s := open(t, "", o)
		defer s.Close()
		for i := range users {
			n := 0
			for range 2 * budget {
				d, err := s.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1}}, 1)
				if err != nil || d.Receipt.Origin == tidegate.OriginLocal {
					t.Fatalf("%+v, %v", d, err)
				}
				if d.OK {
					n++
				}
			}
			if sum += n; n > 0 {
				keys++
			}
		}
		return sum, keys
	}
	if n, _ := admitted(fleet.Options{Shards: shards[:3]}); n != users*budget {
		t.Errorf("%d admitted by three shards, want %d", n, users*budget)
	}
	if n, _ := admitted(fleet.Options{Shards: shards, Was: shards[:3]}); n != 0 {
		t.Errorf("%d admitted by a fourth shard with the former list", n)
	}
	n, keys := admitted(fleet.Options{Shards: shards})
	if n != keys*budget || keys < users/8 || keys > users/2 {
		t.Errorf("without the former list %d admitted, %d of %d keys have one more budget", n, keys, users)
	}
}

// What operators order survives the death of the shard that has it: it holds on, more can be
// ordered, and instances that start meanwhile have it. When the shard comes back, empty or as
// it was, all have what was ordered last.
func TestOrdersSurviveAShard(t *testing.T) {
	for name, args := range map[string][]string{"empty": nil, "as it was": {"--appendonly", "yes", "--appendfsync", "always"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, shards := newShards(t, "b", "c")
			first := testdep.Redis(t, args...)
			shards = append(shards, fleet.Shard{Name: "a", URL: "redis://" + first.Addr})
			o := &orders{T: t, o: fleet.Options{Shards: shards, Deadline: patient}}
			o.start()
			o.start()
			o.put(0, "b-1")
			o.want("b-1")
			if has := first.Do("EXISTS", "tg:board"); has != "1" {
				t.Error("the board is not on the first shard by name")
			}
			first.Kill()
			o.put(1, "b-2")
			o.want("b-1", "b-2")
			o.start()
			o.want("b-1", "b-2")
			if _, err := o.boards[0].End(t.Context(), "b-1"); err != nil {
				t.Error(err)
			}
			o.want("b-2")
			first.Start()
			testdep.Eventually(t, "the board is on the first shard again", func() bool {
				return strings.Contains(first.Do("KEYS", "tg:board*"), "row:b-2")
			})
			o.put(2, "b-3")
			o.start()
			o.want("b-2", "b-3")
			for i, b := range o.boards {
				if err := b.Log(fmt.Sprint("line ", i)); err != nil {
					t.Error(err)
				}
			}
			testdep.Eventually(t, "the journal has all lines", func() bool {
				lines, err := o.boards[0].Logged(t.Context(), 10)
				return err == nil && len(lines) == len(o.boards)
			})
		})
	}
}

// orders are the boards of some instances.
type orders struct {
	*testing.T
	o      fleet.Options
	boards []*board.Board
}

func (o *orders) start() {
	o.Helper()
	b, ok := board.Of(open(o.T, "", o.o))
	if !ok {
		o.Fatal("the store has no board")
	}
	b.Start()
	o.boards = append(o.boards, b)
}

func (o *orders) put(i int, id string) {
	o.Helper()
	ctx, end := context.WithTimeout(o.Context(), time.Minute)
	defer end()
	if _, err := o.boards[i].Put(ctx, board.Record{ID: id, Body: []byte(`{}`)}); err != nil {
		o.Error(err)
	}
}

// want waits until all instances have these records, and no others.
func (o *orders) want(ids ...string) {
	o.Helper()
	for i, b := range o.boards {
		testdep.Eventually(o.T, fmt.Sprintf("instance %d has %q", i, ids), func() bool {
			var all []string
			for _, r := range b.All() {
				all = append(all, r.ID)
			}
			slices.Sort(all)
			return slices.Equal(all, ids)
		})
	}
}
