package deferq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var wide = Bounds{Places: 1000, PerKey: 1000, KeyBytes: 1 << 30}

func openFile(t testing.TB, path string, max int64) *File {
	t.Helper()
	f, err := OpenFile(path, FileOptions{Max: max, Results: time.Hour, Dead: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return f
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
func TestFileOutlastsTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 1<<20)
	var all []*Entry
	for i := range 30 {
		e := entryOf(fmt.Sprint(i%3), fmt.Sprint(i))
		add(t, f, e)
		all = append(all, e)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want a file that its owner alone reads", info.Mode(), err)
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
	f.Next(t.Context()) // dies in the middle of an attempt
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFile(t, path, 1<<20)
	defer f.Close()
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
func TestLinesTakeTurns(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "deferred"), 1<<20)
	defer f.Close()
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
func TestFileRandom(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 7))
		path := filepath.Join(t.TempDir(), "deferred")
		f := openFile(t, path, 1<<30)
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
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				f = openFile(t, path, 1<<30)
			}
			if s, _ := f.Stats(t.Context()); s.Waiting != int64(waiting) {
				t.Fatalf("seed %d: %d wait, want %d", seed, s.Waiting, waiting)
			}
		}
		f.Close()
	}
}

// The bounds hold whoever adds at the same time: places, those of a key, and bytes.
func TestFileIsBounded(t *testing.T) {
	const max = 64 << 10
	f := openFile(t, filepath.Join(t.TempDir(), "deferred"), max)
	defer f.Close()
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
	if s, _ := f.Stats(t.Context()); s.Bytes > max || s.Bytes < max/2 {
		t.Errorf("%d bytes, want less than %d and not few", s.Bytes, max)
	}
}

// Results make room for requests, and are forgotten after their time.
func TestResultsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFile(t, filepath.Join(t.TempDir(), "deferred"), 64<<10)
		defer f.Close()
		for i := range 50 {
			add(t, f, entryOf("ann", strings.Repeat("x", 1<<10)))
			e, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			e.State, e.Ended, e.Result = Done, time.Now(), &Result{Status: 200, Body: []byte(strings.Repeat("y", 8<<10))}
			f.End(e)
			if s, _ := f.Stats(t.Context()); s.Bytes > 64<<10+10<<10 {
				t.Fatalf("%d bytes after %d", s.Bytes, i)
			}
		}
		s, _ := f.Stats(t.Context())
		if s.Done == 0 || s.Done > 8 {
			t.Errorf("%d results are kept", s.Done)
		}
		time.Sleep(time.Hour + 2*purgeEvery)
		if s, _ := f.Stats(t.Context()); s.Done != 0 || s.Bytes != 0 || f.spare != 0 {
			t.Errorf("%+v and %d to spare after an hour", s, f.spare)
		}
	})
}

// The wall clock is set between two processes: nothing is lost, nobody waits longer than was promised.
func TestClockSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	write := func() (id string) {
		f := openFile(t, path, 1<<20)
		defer f.Close()
		e := entryOf("ann", "x")
		add(t, f, e)
		got, _ := f.Next(t.Context())
		got.Attempts, got.Next = 1, time.Now().Add(maxPause)
		f.Again(got)
		return e.ID
	}
	id := write()
	store := openFile(t, path, 1<<20)
	it := store.byID[id]
	now := time.Now()
	for _, step := range []time.Duration{-1000 * time.Hour, -time.Minute, time.Minute, 1000 * time.Hour} {
		e, err := store.read(it, false)
		if err != nil {
			t.Fatal(err)
		}
		e.Expires, e.Next = now.Add(time.Hour-step).Round(0), now.Add(maxPause-step).Round(0)
		fresh := &File{o: store.o, lines: map[Line]*line{}, byID: map[string]*item{}, rules: map[string]int64{}}
		fresh.changed = make(chan struct{})
		tx, err := store.db.Begin(false)
		if err != nil {
			t.Fatal(err)
		}
		fresh.loaded(tx, 1, e, now)
		tx.Rollback()
		got := fresh.byID[id]
		if got.expires.Sub(now) > time.Hour || got.next.Sub(now) > maxPause || got.next.Before(now) {
			t.Errorf("the clock stepped by %s: it expires in %s, and is next in %s", step, got.expires.Sub(now), got.next.Sub(now))
		}
	}
	store.Close()
}

// A file that is damaged is told, and left as it is.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 1<<20)
	for i := range 50 {
		add(t, f, entryOf("ann", strings.Repeat(fmt.Sprint(i), 500)))
	}
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(name string, raw []byte) {
		t.Helper()
		other := filepath.Join(t.TempDir(), "deferred")
		if err := os.WriteFile(other, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFile(other, FileOptions{Max: 1 << 20})
		if err == nil { // damage where nothing is read
			f.Close()
			return
		}
		if !strings.Contains(err.Error(), other) {
			t.Errorf("%s: %v does not name the file", name, err)
		}
		if left, _ := os.ReadFile(other); len(left) < len(raw) {
			t.Errorf("%s: %d bytes are left of %d", name, len(left), len(raw))
		}
	}
	if _, err := OpenFile(writeFile(t, []byte("this is a text\n")), FileOptions{}); err == nil {
		t.Error("a text was opened")
	}
	try("cut", whole[:len(whole)/2])
	try("short", whole[:100])
	found := 0
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		raw := slices.Clone(whole)
		at := random.IntN(len(raw) - 4096)
		for i := range 4096 {
			raw[at+i] = byte(random.Uint32())
		}
		other := writeFile(t, raw)
		f, err := OpenFile(other, FileOptions{Max: 1 << 20})
		if err != nil {
			found++
			continue
		}
		f.Close()
	}
	if found == 0 {
		t.Error("no damage of 30 was found")
	}
}

func writeFile(t testing.TB, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deferred")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A second process does not open the file.
func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 1<<20)
	defer f.Close()
	if _, err := OpenFile(path, FileOptions{Max: 1 << 20, LockWait: 50 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
}

// Dropped requests are dead letters without a request; what is done stays.
func TestDrop(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "deferred"), 1<<20)
	defer f.Close()
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
