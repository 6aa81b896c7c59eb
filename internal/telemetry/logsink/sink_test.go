package logsink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// reader is a writer that can stand still, fail, and take a part only.
type reader struct {
	mu     sync.Mutex
	got    bytes.Buffer
	writes int
	err    error // of writes, after they took part bytes
	part   int
	still  chan struct{} // nil means it reads
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	still := r.still
	r.mu.Unlock()
	if still != nil {
		<-still
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if r.err != nil {
		n, _ := r.got.Write(p[:min(r.part, len(p))])
		return n, r.err
	}
	return r.got.Write(p)
}

func (r *reader) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// told notes what a Sink has to say.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (t *told) options(o Options) Options {
	o.OnTrouble = func(err error) { t.add("trouble: %v", err) }
	o.OnRecovery = func(dropped uint64, after time.Duration) { t.add("recovery: %d after %s", dropped, after) }
	return o
}

func (t *told) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *told) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}

func line(s io.Writer, format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// Lines wait for each other, for a tenth of a second or 64 KiB.
func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		s := New(&r, Options{Delay: 100 * time.Millisecond})
		line(s, "one")
		line(s, "two")
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		if got := r.text(); got != "" {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := r.text(); got != "one\ntwo\n" || r.writes != 1 {
			t.Errorf("%q in %d writes", got, r.writes)
		}
		long := strings.Repeat("x", 1023)
		for range 64 {
			line(s, "%s", long)
		}
		synctest.Wait()
		if r.writes != 2 {
			t.Errorf("64 KiB are written in %d writes, want 1 at once", r.writes-1)
		}
		line(s, "last")
		s.Close(time.Second)
		if got := r.text(); !strings.HasSuffix(got, long+"\nlast\n") || s.Stats() != (Stats{}) {
			t.Errorf("after Close: ...%q, %+v", got[len(got)-20:], s.Stats())
		}
	})
}

// A reader that stands still costs lines, and nobody waits for it.
func TestStandingReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var says told
		still := make(chan struct{})
		r := reader{still: still}
		s := New(&r, says.options(Options{Bound: 1000}))
		for i := range 200 { // ten bytes each: a hundred find room
			line(s, "line %04d", i)
		}
		if got := s.Stats(); got.Dropped != 100 {
			t.Errorf("%+v, want 100 dropped", got)
		}
		time.Sleep(time.Minute)
		if got := says.all(); got != "trouble: <nil>" {
			t.Errorf("told %q", got)
		}
		r.set(func() { r.still = nil })
		close(still)
		time.Sleep(2 * time.Second)
		if got := says.all(); got != "trouble: <nil>; recovery: 100 after 1m0s" {
			t.Errorf("told %q", got)
		}
		line(s, "line %04d", 200)
		s.Close(time.Second)
		got := strings.Split(strings.TrimSpace(r.text()), "\n")
		if len(got) != 101 || got[0] != "line 0000" || got[99] != "line 0099" || got[100] != "line 0200" {
			t.Errorf("%d lines: %q", len(got), got)
		}
	})
}

// A reader that is too slow is told of once, not with every write.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var says told
		s := New(slow{10 * time.Millisecond}, says.options(Options{Bound: 100}))
		for i := range 5000 {
			line(s, "line %04d", i)
			time.Sleep(time.Millisecond / 2)
		}
		time.Sleep(5 * time.Second)
		if got := says.all(); strings.Count(got, "trouble") != 1 || strings.Count(got, "recovery") != 1 {
			t.Errorf("told %q", got)
		}
		s.Close(time.Second)
	})
}

type slow struct{ takes time.Duration }

func (s slow) Write(p []byte) (int, error) {
	time.Sleep(s.takes)
	return len(p), nil
}

// What could not be written is written later, and a line that was torn is one line.
func TestFullDisk(t *testing.T) {
	for part := range 30 {
		synctest.Test(t, func(t *testing.T) {
			var says told
			r := reader{err: syscall.ENOSPC, part: part}
			s := New(&r, says.options(Options{Bound: 100}))
			for i := range 20 {
				line(s, "line %04d", i)
				synctest.Wait()
				r.set(func() { r.part = 0 })
			}
			time.Sleep(time.Minute)
			r.set(func() { r.err = nil })
			time.Sleep(2 * time.Second)
			if got := says.all(); !strings.HasPrefix(got, "trouble: no space left on device; recovery: ") || strings.Count(got, "trouble") != 1 {
				t.Errorf("told %q", got)
			}
			st := s.Stats()
			s.Close(time.Second)
			got := strings.Split(strings.TrimSpace(r.text()), "\n")
			for i, l := range got {
				if l != fmt.Sprintf("line %04d", i) {
					t.Errorf("part %d: line %d is %q", part, i, l)
				}
			}
			if len(got)+int(st.Dropped) != 20 || st.Dropped == 0 || st.Errors < 2 {
				t.Errorf("%d lines of 20, and %+v", len(got), st)
			}
		})
	}
}

// The end waits as long as something moves, and no longer.
func TestCloseIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := New(slow{time.Second}, Options{})
		for range 5 {
			line(s, "%s", strings.Repeat("x", FlushAt-1))
		}
		s.Close(2 * time.Second)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("a slow reader: closed after %s", took)
		}
		still := make(chan struct{})
		defer close(still)
		s = New(&reader{still: still}, Options{})
		start = time.Now()
		line(s, "lost")
		s.Close(2 * time.Second)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("a standing reader: closed after %s", took)
		}
		line(s, "late") // is dropped, and does not panic
		if s.Stats().Dropped != 1 {
			t.Errorf("%+v", s.Stats())
		}
	})
}

// Many write at once: every line is there once, whole.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s, err := Open(path, Options{Delay: time.Millisecond, Bound: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 16, 2000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				line(s, "%d %d", w, i)
				if i%500 == 0 {
					if err := s.Reopen(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	s.Close(10 * time.Second)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := [writers]int{}
	for l := range strings.Lines(string(text)) {
		var w, i int
		if _, err := fmt.Sscanf(l, "%d %d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("%q: %v, want %d of %d", l, err, next[w], w)
		}
		next[w]++
	}
	for w, n := range next {
		if n != each {
			t.Errorf("writer %d has %d lines", w, n)
		}
	}
}

// Renamed and reopened, a log goes on in a file of its old name; nothing is lost.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	until := func(name, want string) {
		t.Helper()
		if !testdep.Await(10*time.Second, func() bool { return read(name) == want }) {
			t.Fatalf("%s has %q, want %q", name, read(name), want)
		}
	}
	line(s, "one")
	until("log", "one\n")
	if err := os.Rename(path, filepath.Join(dir, "log.1")); err != nil {
		t.Fatal(err)
	}
	line(s, "two")
	until("log.1", "one\ntwo\n")
	if err := s.Reopen(); err != nil {
		t.Fatal(err)
	}
	line(s, "three")
	until("log", "three\n")
	// What cannot be opened leaves the one before in use.
	if err := os.Rename(path, filepath.Join(dir, "log.2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Reopen(); err == nil {
		t.Error("a folder was opened")
	}
	line(s, "four")
	until("log.2", "three\nfour\n")
	s.Close(time.Second)
}

func BenchmarkWrite(b *testing.B) {
	s := New(io.Discard, Options{Delay: 100 * time.Millisecond})
	text := []byte(strings.Repeat("x", 399) + "\n")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = s.Write(text)
		}
	})
	b.StopTimer()
	s.Close(time.Second)
	b.ReportMetric(float64(s.Stats().Dropped)/float64(b.N), "dropped/op")
}
