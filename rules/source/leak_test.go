package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/rules"
)

// usage is what a process holds that could leak.
type usage struct {
	goroutines, fds, watches int
	heap                     int64
}

func use() usage {
	runtime.GC()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	u := usage{goroutines: runtime.NumGoroutine(), heap: int64(mem.HeapAlloc)}
	fds, _ := os.ReadDir("/proc/self/fdinfo") // elsewhere there is none, and nothing to count
	u.fds = len(fds)
	for _, fd := range fds {
		info, _ := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		u.watches += bytes.Count(info, []byte("inotify wd:"))
	}
	return u
}

// atMost waits for goroutines and descriptors that are still on their way out.
func (u usage) atMost(t *testing.T, when string, heap int64) {
	t.Helper()
	var is usage
	fits := func() bool {
		is = use()
		return is.goroutines <= u.goroutines && is.fds <= u.fds && is.watches <= u.watches && is.heap <= u.heap+heap
	}
	if !settles(fits) {
		t.Fatalf("%s: %+v, want %+v and at most %d more bytes", when, is, u, heap)
	}
}

func TestThousandReloadsLeakNothing(t *testing.T) {
	before := use()
	c := newConfigMap(t, map[string]string{"rules.yaml": limit(1)})
	file := filepath.Join(c.dir, "rules.yaml")
	p := pace{poll: time.Hour, quiet: 100 * time.Microsecond, most: time.Millisecond, settle: time.Millisecond, badTimeout: time.Second}
	reloaded, failed := make(chan struct{}, 1), make(chan struct{}, 1)
	w, err := watch(t.Context(), file, Options{
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnReload: func(_, _ *rules.Set) { reloaded <- struct{}{} },
		OnError:  func(error) { failed <- struct{}{} },
	}, p)
	do(t, err)
	defer w.Close()
	next := 1
	change := func(times int) {
		for range times {
			next++
			text, told := limit(next), reloaded
			if next%10 == 0 {
				text, told = fmt.Sprintf("nonsense: %d\n", next), failed
			}
			if next%7 == 0 {
				c.version = "" // a folder that stays must not stay watched
			}
			c.update(fmt.Sprintf("..%d", next), map[string]string{"rules.yaml": text})
			select {
			case <-told:
			case <-time.After(deadline):
				t.Fatalf("change %d was not seen: %+v", next, w.Status())
			}
		}
	}
	change(100) // pools and maps have their size
	after := use()
	change(1000)
	after.atMost(t, "after 1000 more reloads", 256<<10)
	if s := w.Status(); s.Reloads != 990 || s.Failed != 110 {
		t.Errorf("%d reloads and %d failures", s.Reloads, s.Failed)
	}
	w.Close()
	before.atMost(t, "after Close", 1<<20)
}

func TestCloseStopsEverything(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, limit(1))
	before := use()
	for range 20 {
		w, err := Watch(t.Context(), file, Options{})
		do(t, err)
		w.Close()
		w.Close()
	}
	before.atMost(t, "after Close", 1<<20)

	ctx, cancel := context.WithCancel(t.Context())
	w, err := Watch(ctx, file, Options{})
	do(t, err)
	cancel()
	before.atMost(t, "after the context ended", 1<<20)
	w.Close()
	if w.Live().Set() == nil || w.Status().Hash == "" {
		t.Error("the rules in force are gone")
	}

	_, err = Watch(t.Context(), filepath.Dir(file)+"/none.yaml", Options{})
	if err == nil {
		t.Error("Watch of nothing succeeds")
	}
	before.atMost(t, "after Watch failed", 1<<20)
}

// An idle watcher does next to nothing.
func TestIdle(t *testing.T) {
	idle := func(t *testing.T, p pace, looks time.Duration) {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, limit(1))
		old := time.Now().Add(-time.Hour)
		do(t, os.Chtimes(file, old, old))
		reads := 0
		o := Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		o.Config.ReadFile = func(name string) ([]byte, error) {
			reads++
			return os.ReadFile(name)
		}
		w, err := watch(t.Context(), file, o, p)
		do(t, err)
		time.Sleep(looks * p.poll)
		w.Close()
		if reads != 1 {
			t.Errorf("a file that nobody touches was read %d times", reads)
		}
	}
	t.Run("polling", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { idle(t, silentPace, 10_000) })
	})
	t.Run("reports", func(t *testing.T) { // the kernel does not report that it has nothing to report: some time passes
		p := usual
		p.poll = time.Millisecond
		idle(t, p, 50)
	})
}
