package auditlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func add(t *testing.T, l *Log, who string) {
	t.Helper()
	if err := l.Append(Entry{Who: who, Action: "ban", Result: "done", What: map[string]any{"as": "user=42"}}); err != nil {
		t.Error(err)
	}
}

// names are who did what was done last, the newest first.
func names(t *testing.T, l *Log, n int) (all []string) {
	t.Helper()
	entries, _, err := l.Last(t.Context(), n)
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		if e.ID == "" || e.At.IsZero() || e.Action != "ban" {
			t.Errorf("got %+v", e)
		}
		all = append(all, e.Who)
	}
	return all
}

func want(t *testing.T, got []string, all ...string) {
	t.Helper()
	if !slices.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
}

// Whatever was appended is there after a restart, in order, for the owner of the file alone.
func TestFileSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	for i := range 3 {
		l := open(t, Options{File: file, Node: "web-1"})
		add(t, l, fmt.Sprint("a", i))
		add(t, l, fmt.Sprint("b", i))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	l := open(t, Options{File: file})
	want(t, names(t, l, 10), "b2", "a2", "b1", "a1", "b0", "a0")
	want(t, names(t, l, 2), "b2", "a2")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A line that a machine without power left in half spoils no other.
func TestTornLine(t *testing.T) {
	for _, torn := range []string{`{"id":"x","at":`, "{", "\x00\x00\x00", "nonsense\nmore"} {
		file := filepath.Join(t.TempDir(), "audit.log")
		l := open(t, Options{File: file})
		add(t, l, "before")
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		l = open(t, Options{File: file})
		add(t, l, "after")
		want(t, names(t, l, 10), "after", "before")
	}
}

// The file is set aside when it is large, those that are too many are removed, and the last
// lines are read from all of them. Nothing that was written is ever changed.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.log")
	other := filepath.Join(dir, "audit.log.mine") // not ours
	if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	l := open(t, Options{File: file, maxSize: 1000, kept: 3, now: func() time.Time { now = now.Add(time.Second); return now }})
	const all = 60
	for i := range all {
		add(t, l, fmt.Sprint(i))
	}
	files, err := filepath.Glob(file + "*")
	if err != nil || len(files) != 5 || !slices.Contains(files, other) {
		t.Fatalf("%v, %v", files, err)
	}
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > 1000 {
			t.Errorf("%s has %d bytes: %v", name, len(text), err)
		}
		lines += strings.Count(string(text), "\n")
	}
	l.last = nil // what it remembers
	got := names(t, l, all)
	if len(got) != lines || lines < 10 {
		t.Errorf("%d entries of %d lines", len(got), lines)
	}
	for i, who := range got {
		if who != fmt.Sprint(all-1-i) {
			t.Errorf("entry %d is %s", i, who)
		}
	}
}

// Somebody else may rename or remove the file, as logrotate does.
func TestFileThatIsGone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, Options{File: file})
	add(t, l, "one")
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	add(t, l, "two")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	add(t, l, "three")
	for name, who := range map[string]string{file + ".1": "one", file: "three"} {
		if text, err := os.ReadFile(name); err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), who) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// Two processes, as during a hand-over, lose nothing of each other.
func TestTwoAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	a, b := open(t, Options{File: file, maxSize: 4000, kept: 1000}), open(t, Options{File: file, maxSize: 4000, kept: 1000})
	var done sync.WaitGroup
	for name, l := range map[string]*Log{"a": a, "b": b} {
		done.Go(func() {
			for i := range 100 {
				add(t, l, fmt.Sprint(name, i))
			}
		})
	}
	done.Wait()
	a.last = nil
	if got := names(t, a, 1000); len(got) != 200 {
		t.Errorf("%d entries", len(got))
	}
}

// What cannot be written is told once, and once more when it can be again; it is kept in
// memory meanwhile.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var told []bool
	l := open(t, Options{File: filepath.Join(dir, "audit.log"), Trouble: func(err error) { told = append(told, err != nil) }})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Append(Entry{Who: "lost", Action: "ban"}); err == nil || !strings.Contains(err.Error(), "write the audit log") {
			t.Errorf("got %v", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, l, "kept")
	want(t, names(t, l, 10), "kept", "lost", "lost")
	if fmt.Sprint(told) != "[true false]" {
		t.Errorf("told %v", told)
	}
	if _, err := Open(Options{File: t.TempDir()}); err == nil {
		t.Error("a folder was opened")
	}
	if _, err := Open(Options{File: filepath.Join(dir, "no", "audit.log")}); err == nil {
		t.Error("a file in no folder was opened")
	}
}

// fleet is a log that several share, or that cannot be read.
type fleet struct {
	mu    sync.Mutex
	lines []string
	away  bool
}

func (f *fleet) share(line string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
	return nil
}

func (f *fleet) shared(_ context.Context, n int) ([]string, error) {
	if f.away {
		return nil, errors.New("away")
	}
	return f.lines[max(0, len(f.lines)-n):], nil
}

// Each instance shows what all did, each entry once. While the fleet's log is away it shows
// its own and says so.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fleet
		file := filepath.Join(t.TempDir(), "audit.log")
		a := open(t, Options{Node: "a", File: file, Share: f.share, Shared: f.shared})
		b := open(t, Options{Node: "b", Share: f.share, Shared: f.shared})
		for i := range 3 {
			add(t, a, fmt.Sprint("alice", i))
			time.Sleep(time.Millisecond)
			add(t, b, fmt.Sprint("bob", i))
			time.Sleep(time.Millisecond)
		}
		for _, l := range []*Log{a, b} {
			want(t, names(t, l, 10), "bob2", "alice2", "bob1", "alice1", "bob0", "alice0")
			want(t, names(t, l, 2), "bob2", "alice2")
		}
		f.away = true
		want(t, names(t, a, 10), "alice2", "alice1", "alice0")
		if _, incomplete, err := b.Last(t.Context(), 1); err != nil || !strings.Contains(incomplete, "away") {
			t.Errorf("%q, %v", incomplete, err)
		}
	})
}

// A line that cannot be shared is told of, and kept here.
func TestLineThatCannotBeShared(t *testing.T) {
	l := open(t, Options{Share: func(string) error { return errors.New("too long") }})
	if err := l.Append(Entry{Who: "alice", Action: "ban"}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
	want(t, names(t, l, 10), "alice")
}
