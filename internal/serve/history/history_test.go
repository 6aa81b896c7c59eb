package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

var quiet = slog.New(slog.DiscardHandler)

// setNo is a set of rules, another one for each n. Every second one has layers.
func setNo(n int) *source.Bundle {
	b := &source.Bundle{
		Edition: source.Edition{Revision: fmt.Sprint(n), Hash: fmt.Sprintf("%064x", n<<20), Author: "ann", Reason: fmt.Sprint("no ", n), At: time.Unix(int64(n), 0).UTC()},
		Main:    "rules.yaml",
		Files:   map[string][]byte{"rules.yaml": fmt.Appendf(nil, "# %d\n", n), "lists/same": []byte("a\nb\n\xff")},
	}
	if n%2 == 0 {
		b.Over = []string{"lists/", "rules.yaml"}
	}
	return b
}

func put(t *testing.T, s Storage, sets ...*source.Bundle) {
	t.Helper()
	for _, b := range sets {
		if err := s.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

func hashes(t *testing.T, s Storage) (all []string) {
	t.Helper()
	list, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		all = append(all, e.Revision)
	}
	return all
}

// eachStorage runs a test on every Storage.
func eachStorage(t *testing.T, f func(t *testing.T, open func() Storage)) {
	t.Run("memory", func(t *testing.T) {
		s := NewFile("")
		f(t, func() Storage { return s })
	})
	t.Run("file", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "counters.history")
		f(t, func() Storage { return NewFile(name) })
	})
	t.Run("redis", func(t *testing.T) {
		store, err := fleet.Open("redis://"+testdep.Redis(t).Addr, fleet.Options{Deadline: time.Minute, JoinLater: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		shelf, ok := chain.ShelfOf(store, ShelfName)
		if !ok {
			t.Fatal("there is no shelf")
		}
		f(t, func() Storage { return NewShared(shelf) })
	})
}

// What was in force can be had again whole; the last 20 are kept; the newest is not added
// twice, an older one is.
func TestStorage(t *testing.T) {
	eachStorage(t, func(t *testing.T, open func() Storage) {
		if all := hashes(t, open()); len(all) != 0 {
			t.Fatalf("a new one has %v", all)
		}
		again := setNo(1)
		again.At = setNo(2).At.Add(time.Millisecond)
		put(t, open(), setNo(1), setNo(2), setNo(2), again)
		if got := fmt.Sprint(hashes(t, open())); got != "[1 2 1]" {
			t.Errorf("kept: %s", got)
		}
		for n := 3; n <= 22; n++ {
			put(t, open(), setNo(n))
		}
		if all := hashes(t, open()); len(all) != source.Kept || all[0] != "22" || all[19] != "3" {
			t.Errorf("kept: %v", all)
		}
		for n := 3; n <= 22; n++ {
			want := setNo(n)
			for _, hash := range []string{want.Hash, want.Hash[:60]} {
				if got, err := open().Get(t.Context(), hash); err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("%d by %s: %v, %+v", n, hash, err, got)
				}
			}
		}
		for _, hash := range []string{"", "0", setNo(2).Hash, strings.Repeat("f", 64), setNo(22).Hash + "0"} {
			if _, err := open().Get(t.Context(), hash); !errors.Is(err, source.ErrNoRevision) {
				t.Errorf("%q: %v", hash, err)
			}
		}
	})
}

// A content that many sets share is kept once, and goes with the last of them. What is too
// large is dropped, the oldest first.
func TestContentsAreBounded(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := NewFile("")
	put(t, f, setNo(1), setNo(2), setNo(3))
	if n := len(f.Contents); n != 4 {
		t.Errorf("%d contents of three files and one that is shared", n)
	}
	large := func(n int, size int) *source.Bundle {
		b := setNo(n)
		noise := make([]byte, size)
		x := uint64(n) // noise does not compress
		for i := range noise {
			x = x*6364136223846793005 + 1442695040888963407
			noise[i] = byte(x >> 56)
		}
		b.Files["large"] = noise
		return b
	}
	put(t, f, large(4, 12<<20), large(5, 12<<20))
	if got := fmt.Sprint(hashes(t, f)); got != "[5 4 3 2 1]" {
		t.Errorf("kept: %s", got)
	}
	put(t, f, large(6, 12<<20))
	if got := fmt.Sprint(hashes(t, f)); got != "[6 5]" || f.bytes() > maxContents {
		t.Errorf("kept: %s in %d bytes", got, f.bytes())
	}
	put(t, f, large(7, 33<<20))
	if got := fmt.Sprint(hashes(t, f)); got != "[7]" || len(f.Contents) != 0 {
		t.Errorf("kept: %s, and %d contents", got, len(f.Contents))
	}
	if _, err := f.Get(t.Context(), setNo(7).Hash); err == nil || !strings.Contains(err.Error(), "too large, or") {
		t.Errorf("files that were not kept: %v", err)
	}
	put(t, f, setNo(8))
	if got := fmt.Sprint(hashes(t, f)); got != "[8 7]" {
		t.Errorf("kept: %s", got)
	}
}

// The file is for its owner alone, another one is not left behind, and one that is broken is
// set aside.
func TestFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "h")
	put(t, NewFile(name), setNo(1), setNo(2))
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if all, _ := os.ReadDir(folder); len(all) != 1 {
		t.Errorf("the folder has %v", all)
	}
	if err := os.WriteFile(name, []byte(`{"sets":`), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, NewFile(name), setNo(3))
	if got := fmt.Sprint(hashes(t, NewFile(name))); got != "[3]" {
		t.Errorf("after a broken file: %s", got)
	}
	if text, err := os.ReadFile(name + ".bad"); err != nil || string(text) != `{"sets":` {
		t.Errorf("set aside: %q %v", text, err)
	}
	for _, text := range []string{`{}`, `{"sets":[{"hash":"` + setNo(4).Hash + `","files":{"a":"b"}}]}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewFile(name).Get(t.Context(), setNo(4).Hash); err == nil {
			t.Errorf("%s: there is a set", text)
		}
	}
}

// A successor has what its predecessor had.
func TestHandOver(t *testing.T) {
	eachStorage(t, func(t *testing.T, open func() Storage) {
		f, ok := open().(*File)
		if !ok {
			return // a successor finds it where it is
		}
		put(t, f, setNo(1), setNo(2))
		handed := filepath.Join(t.TempDir(), "handed")
		if err := f.HandOver(handed); err != nil {
			t.Fatal(err)
		}
		next := NewFile("")
		if err := next.TakeOver(handed); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(hashes(t, next)); got != "[2 1]" {
			t.Errorf("handed over: %s", got)
		}
	})
}

// Sets without files are listed, and say why there are none.
func TestSetWithoutFiles(t *testing.T) {
	eachStorage(t, func(t *testing.T, open func() Storage) {
		b := setNo(1)
		b.Files = nil
		put(t, open(), b)
		if got := fmt.Sprint(hashes(t, open())); got != "[1]" {
			t.Errorf("kept: %s", got)
		}
		if _, err := open().Get(t.Context(), b.Hash); err == nil || !strings.Contains(err.Error(), "could not be kept") {
			t.Errorf("its files: %v", err)
		}
	})
}

// Of instances that put the same sets in force at about the same time, one adds each.
func TestManyInstances(t *testing.T) {
	eachStorage(t, func(t *testing.T, open func() Storage) {
		var all sync.WaitGroup
		for n := 1; n <= 5; n++ {
			for range 4 {
				all.Go(func() {
					if err := open().Put(t.Context(), setNo(n)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if got := fmt.Sprint(hashes(t, open())); got != "[5 4 3 2 1]" {
			t.Errorf("kept: %s", got)
		}
	})
}

// An instance that is late does not add again what others have replaced since.
func TestLateInstance(t *testing.T) {
	eachStorage(t, func(t *testing.T, open func() Storage) {
		s, ok := open().(*Shared)
		if !ok {
			return // of one instance alone
		}
		put(t, s, setNo(1), setNo(2), setNo(3), setNo(2), setNo(1), setNo(3))
		if got := fmt.Sprint(hashes(t, s)); got != "[3 2 1]" {
			t.Errorf("kept: %s", got)
		}
		alone := setNo(4) // which was in force before the newest, on this instance alone
		alone.At = setNo(2).At.Add(time.Millisecond)
		put(t, s, alone)
		if got := fmt.Sprint(hashes(t, s)); got != "[3 4 2 1]" {
			t.Errorf("kept: %s", got)
		}
	})
}

// flaky is a Storage that cannot always be reached.
type flaky struct {
	*File
	down  atomic.Bool
	tries atomic.Int64
}

var errDown = errors.New("down")

func (f *flaky) Put(ctx context.Context, b *source.Bundle) error {
	f.tries.Add(1)
	if f.down.Load() {
		return errDown
	}
	return f.File.Put(ctx, b)
}

func (f *flaky) History(ctx context.Context) ([]source.Edition, error) {
	if f.down.Load() {
		return nil, errDown
	}
	return f.File.History(ctx)
}

// What comes in force while the Storage is away is shown, and kept in order when it is back.
func TestStorageAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{File: NewFile("")}
		h := New(f, quiet)
		defer h.Close()
		h.Note(setNo(1))
		synctest.Wait()
		f.down.Store(true)
		for n := 2; n <= 4; n++ {
			h.Note(setNo(n))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		all, err := h.History(t.Context())
		if !errors.Is(err, errDown) || len(all) != 3 || all[0].Revision != "4" {
			t.Errorf("while it is away: %v %v", all, err)
		}
		if b, err := h.Get(t.Context(), setNo(3).Hash); err != nil || b.Revision != "3" {
			t.Errorf("one that is not on it yet: %v %v", b, err)
		}
		if n := f.tries.Load(); n > 40 {
			t.Errorf("%d tries in 3 minutes", n)
		}
		f.down.Store(false)
		time.Sleep(lastPause)
		synctest.Wait()
		if got := fmt.Sprint(hashes(t, f.File)); got != "[4 3 2 1]" {
			t.Errorf("when it is back: %s", got)
		}
		f.down.Store(true)
		for n := 5; n < 45; n++ {
			h.Note(setNo(n))
		}
		synctest.Wait()
		h.mu.Lock()
		if len(h.pending) != source.Kept || h.pending[0].Revision != "25" {
			t.Errorf("%d are pending, from %s on", len(h.pending), h.pending[0].Revision)
		}
		h.mu.Unlock()
		f.down.Store(false)
	})
}

// A Storage that is away for a moment is not worth a line; one that stays away is worth one.
func TestStorageAwayIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := &flaky{File: NewFile("")}
		h := New(f, slog.New(slog.NewTextHandler(&log, nil)))
		defer h.Close()
		away := func(d time.Duration) string {
			log.Reset()
			f.down.Store(true)
			h.Note(setNo(int(f.tries.Load())))
			time.Sleep(d)
			f.down.Store(false)
			time.Sleep(lastPause + time.Second)
			synctest.Wait()
			return log.String()
		}
		if got := away(2 * time.Second); got != "" {
			t.Errorf("away for a moment: %s", got)
		}
		if got := away(10 * time.Minute); strings.Count(got, "level=WARN") != 1 || strings.Count(got, "level=INFO") != 1 || !strings.Contains(got, "err=down") {
			t.Errorf("away for long: %s", got)
		}
	})
}

// While a successor keeps the history nothing is written; if it gives up, what was missed is.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFile("")
		h := New(f, quiet)
		h.Note(setNo(1))
		synctest.Wait()
		h.Pause()
		h.Note(setNo(2))
		time.Sleep(time.Minute)
		if got := fmt.Sprint(hashes(t, f)); got != "[1]" {
			t.Errorf("paused: %s", got)
		}
		h.Resume()
		synctest.Wait()
		if got := fmt.Sprint(hashes(t, f)); got != "[2 1]" {
			t.Errorf("resumed: %s", got)
		}
		h.Note(setNo(3))
		h.Close()
		if got := fmt.Sprint(hashes(t, f)); got != "[3 2 1]" {
			t.Errorf("closed: %s", got)
		}
	})
}
