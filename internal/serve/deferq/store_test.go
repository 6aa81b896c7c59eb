package deferq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

var wide = Bounds{Places: 1000, PerKey: 1000, KeyBytes: 1 << 30}

// kept is something that keeps entries, which can be opened again and again.
type kept func(t testing.TB, max int64) (open func() Store)

// keepsAll are the arguments of a Redis that may keep requests.
var keepsAll = []string{"--appendonly", "yes", "--appendfsync", "always"}

// everyStore runs a test on every kind of store.
func everyStore(t *testing.T, f func(t *testing.T, in kept)) {
	t.Run("file", func(t *testing.T) {
		f(t, func(t testing.TB, max int64) func() Store {
			path := filepath.Join(t.TempDir(), "deferred")
			return func() Store { return openFile(t, path, max) }
		})
	})
	t.Run("redis", func(t *testing.T) {
		server := testdep.Redis(t, keepsAll...)
		f(t, inRedis("redis://"+server.Addr))
	})
}

// All keys of a rule are in one slot, and rules are in several.
func TestCluster(t *testing.T) {
	nodes := testdep.RedisCluster(t, 3, 0, keepsAll...)
	in := inRedis("redis-cluster://" + nodes[0].Addr)
	for name, f := range map[string]func(*testing.T, kept){"bounds": testStoreIsBounded, "random": testStoreRandom, "drop": testDrop} {
		t.Run(name, func(t *testing.T) { f(t, in) })
	}
}

// inRedis keeps entries in Redis, each time under a prefix of their own.
func inRedis(url string) kept {
	n := 0
	return func(t testing.TB, max int64) func() Store {
		n++
		at := fmt.Sprintf("%s?prefix=t%d", url, n)
		return func() Store { return openRedis(t, at, func(o *RedisOptions) { o.Max = max }) }
	}
}

// openRedis opens a store that nobody takes anything over from, however busy the machine is.
func openRedis(t testing.TB, url string, change ...func(*RedisOptions)) *Redis {
	t.Helper()
	o := RedisOptions{
		Server: redis.Config{URL: url}, Name: "test", Max: 1 << 20, Results: time.Hour, Dead: 24 * time.Hour,
		Takeover: time.Hour, Deadline: 30 * time.Second,
	}
	for _, f := range change {
		f(&o)
	}
	r, err := OpenRedis(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func closed(t testing.TB, s Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func entryOf(key, body string) *Entry {
	now := time.Now()
	return &Entry{
		ID: NewID(), Line: Line{"orders", "user", key}, Accepted: now, Expires: now.Add(time.Hour), Keep: time.Hour,
		Request: Request{Method: "POST", URL: "/orders", Host: "shop", Header: http.Header{"X": {"y"}}, Body: []byte(body)},
	}
}

func add(t testing.TB, s Store, e *Entry) {
	t.Helper()
	if _, err := s.Add(t.Context(), e, wide); err != nil {
		t.Fatal(err)
	}
}

// What was added is there after a restart, in its order, with what became of it.
func TestOutlastsTheProcess(t *testing.T) { everyStore(t, testOutlastsTheProcess) }

func testOutlastsTheProcess(t *testing.T, in kept) {
	open := in(t, 1<<20)
	f := open()
	var all []*Entry
	for i := range 30 {
		e := entryOf(fmt.Sprint(i%3), fmt.Sprint(i))
		add(t, f, e)
		all = append(all, e)
	}
	done, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done.State, done.Attempts, done.Ended, done.Result = Done, 3, time.Now(), &Result{Status: 201, Body: []byte("made")}
	f.End(done)
	failed, _ := f.Next(t.Context())
	failed.Attempts, failed.Reason, failed.Next = 2, "broken", time.Now().Add(time.Minute)
	f.Again(failed)
	if _, ok := f.(*File); ok {
		f.Next(t.Context()) // dies in the middle of an attempt; see TestTakeover for Redis
	}
	closed(t, f)
	f = open()
	defer closed(t, f)
	if s, _ := f.Stats(t.Context()); s.Waiting != 29 || s.Done != 1 || s.Lines != 3 {
		t.Errorf("%+v", s)
	}
	if e, _, err := f.Get(t.Context(), done.ID); err != nil || e.State != Done || e.Result.Status != 201 || string(e.Result.Body) != "made" || e.Attempts != 3 || e.Request.Header != nil {
		t.Errorf("%+v %v", e, err)
	}
	if e, before, err := f.Get(t.Context(), failed.ID); err != nil || e.State != Waiting || e.Attempts != 2 || e.Reason != "broken" || before != 0 || time.Until(e.Next) < 50*time.Second {
		t.Errorf("%+v %d %v", e, before, err)
	}
	if err := f.Retry(t.Context(), failed.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for range 29 {
		e, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := slices.IndexFunc(all, func(o *Entry) bool { return o.Line == e.Line && o.ID != done.ID && next[o.ID] == 0 })
		if all[want].ID != e.ID || string(e.Request.Body) != string(all[want].Request.Body) || e.Request.Header.Get("X") != "y" {
			t.Fatalf("%s came, want %s", e.Request.Body, all[want].Request.Body)
		}
		next[e.ID]++
		e.State, e.Ended = Done, time.Now()
		f.End(e)
	}
}

// Lines take turns, however long they are.
func TestLinesTakeTurns(t *testing.T) { everyStore(t, testLinesTakeTurns) }

func testLinesTakeTurns(t *testing.T, in kept) {
	f := in(t, 1<<20)()
	defer closed(t, f)
	for range 20 {
		add(t, f, entryOf("greedy", "x"))
	}
	add(t, f, entryOf("ann", "x"))
	add(t, f, entryOf("bob", "x"))
	var got []string
	for range 5 {
		e, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Line.Key)
		e.State, e.Ended = Done, time.Now()
		f.End(e)
	}
	if fmt.Sprint(got) != "[greedy ann bob greedy greedy]" {
		t.Errorf("%v", got)
	}
}

// Random work of many, with restarts: every line keeps its order, and nothing is lost or there twice.
func TestStoreRandom(t *testing.T) { everyStore(t, testStoreRandom) }

func testStoreRandom(t *testing.T, in kept) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 7))
		open := in(t, 1<<30)
		f := open()
		next, sent, waiting := map[string]int{}, map[string]int{}, 0
		for range 150 {
			switch n := random.IntN(20); {
			case n < 9:
				key := fmt.Sprint(random.IntN(5))
				add(t, f, entryOf(key, fmt.Sprint(next[key])))
				next[key]++
				waiting++
			case n < 18 && waiting > 0:
				e, err := f.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if random.IntN(3) == 0 {
					e.Attempts++
					e.Next = time.Now()
					f.Again(e)
					continue
				}
				if string(e.Request.Body) != fmt.Sprint(sent[e.Line.Key]) {
					t.Fatalf("seed %d: %s of %s came, want %d", seed, e.Request.Body, e.Line.Key, sent[e.Line.Key])
				}
				sent[e.Line.Key]++
				waiting--
				e.State, e.Ended = Done, time.Now()
				f.End(e)
			case n == 18:
				closed(t, f)
				f = open()
			}
			if s, _ := f.Stats(t.Context()); s.Waiting != int64(waiting) {
				t.Fatalf("seed %d: %d wait, want %d", seed, s.Waiting, waiting)
			}
		}
		closed(t, f)
	}
}

// The bounds hold whoever adds at the same time: places, those of a key, and bytes.
func TestStoreIsBounded(t *testing.T) { everyStore(t, testStoreIsBounded) }

func testStoreIsBounded(t *testing.T, in kept) {
	const max = 64 << 10
	f := in(t, max)()
	defer closed(t, f)
	bounds := Bounds{Places: 40, PerKey: 10, KeyBytes: 16 << 10}
	type answer struct {
		key string
		err error
	}
	answers := make(chan answer)
	for i := range 200 {
		go func() {
			key := fmt.Sprint(i % 3) // three cannot take all places
			size := 1
			if i%3 == 2 {
				size = 3 << 10
			}
			_, err := f.Add(context.Background(), entryOf(key, strings.Repeat("x", size)), bounds)
			answers <- answer{key, err}
		}()
	}
	kept := map[string]int{}
	for range 200 {
		a := <-answers
		if a.err == nil {
			kept[a.key]++
		} else if !errors.Is(a.err, ErrFull) {
			t.Error(a.err)
		}
	}
	if kept["0"] != 10 || kept["1"] != 10 || kept["2"] < 3 || kept["2"] > 5 {
		t.Errorf("%v kept; want 10 and 10 by places, and 4 or so by bytes", kept)
	}
	for i := range 100 {
		f.Add(t.Context(), entryOf(fmt.Sprint("other", i), ""), bounds)
	}
	if s, _ := f.Stats(t.Context()); s.Waiting != 40 || s.Bytes > max {
		t.Errorf("%+v; want 40 places taken, and no more bytes than %d", s, max)
	}
	for i := range 100 {
		e := entryOf(fmt.Sprint("more", i), strings.Repeat("x", 4<<10))
		e.Line.Rule = "another"
		f.Add(t.Context(), e, bounds)
	}
	most := int64(max)
	if _, ok := f.(*Redis); ok {
		most *= 2 // of each rule
	}
	if s, _ := f.Stats(t.Context()); s.Bytes > most || s.Bytes < max/2 {
		t.Errorf("%d bytes, want less than %d and not few", s.Bytes, most)
	}
}

// Dropped requests are dead letters without a request; what is done stays.
func TestDrop(t *testing.T) { everyStore(t, testDrop) }

func testDrop(t *testing.T, in kept) {
	f := in(t, 1<<20)()
	defer closed(t, f)
	one, two, three := entryOf("ann", "1"), entryOf("ann", "2"), entryOf("ann", "3")
	for _, e := range []*Entry{one, two, three} {
		add(t, f, e)
	}
	if err := f.Drop(t.Context(), two.ID, "not wanted"); err != nil {
		t.Fatal(err)
	}
	if e, _, err := f.Get(t.Context(), two.ID); err != nil || e.State != Dead || e.Reason != "not wanted" {
		t.Errorf("%+v %v", e, err)
	}
	if err := f.Retry(t.Context(), two.ID, time.Now()); !errors.Is(err, ErrEnded) {
		t.Errorf("a retry of what was dropped: %v", err)
	}
	e, _ := f.Next(t.Context())
	if e.ID != one.ID {
		t.Errorf("%s is next", e.Request.Body)
	}
	if err := f.Drop(t.Context(), one.ID, "x"); !errors.Is(err, ErrBusy) {
		t.Errorf("what is being sent: %v", err)
	}
	e.State, e.Ended = Done, time.Now()
	f.End(e)
	if err := f.Drop(t.Context(), one.ID, "x"); !errors.Is(err, ErrEnded) {
		t.Errorf("what is done: %v", err)
	}
	if e, _ = f.Next(t.Context()); e.ID != three.ID {
		t.Errorf("%s is next", e.Request.Body)
	}
	if err := f.Drop(t.Context(), two.ID, "x"); err != nil {
		t.Error(err)
	}
	if _, _, err := f.Get(t.Context(), two.ID); !errors.Is(err, ErrNone) {
		t.Errorf("after a second drop: %v", err)
	}
}
