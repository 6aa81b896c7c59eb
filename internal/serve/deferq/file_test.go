package deferq

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openFile(t testing.TB, path string, max int64) *File {
	t.Helper()
	f, err := OpenFile(path, FileOptions{Max: max, Results: time.Hour, Dead: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOnlyItsOwnerReadsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 1<<20)
	defer f.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
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
		got.Attempts, got.Next = 1, time.Now().Add(maxRetryAfter)
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
		e.Expires, e.Next = now.Add(time.Hour-step).Round(0), now.Add(maxRetryAfter-step).Round(0)
		fresh := &File{o: store.o, lines: map[Line]*line{}, byID: map[string]*item{}, rules: map[string]int64{}}
		fresh.changed = make(chan struct{})
		tx, err := store.db.Begin(false)
		if err != nil {
			t.Fatal(err)
		}
		fresh.loaded(tx, 1, e, now)
		tx.Rollback()
		got := fresh.byID[id]
		if got.expires.Sub(now) > time.Hour || got.next.Sub(now) > maxRetryAfter || got.next.Before(now) {
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
