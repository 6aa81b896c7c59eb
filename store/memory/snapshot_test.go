package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// everyAlgorithm is a limit of 5 that is long in refilling, by each algorithm
// that a snapshot keeps, and shared in every way.
func everyAlgorithm() []*tidegate.Limit {
	var all []*tidegate.Limit
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog,
		tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: a.String(), Algorithm: a, Events: 5, Period: 24 * time.Hour}
		switch a {
		case tidegate.Quota:
			spec.Period, spec.Calendar = 0, tidegate.Month
		case tidegate.LeakyBucket:
			spec.Burst = 4
		}
		all = append(all, tidegate.MustLimit(spec))
		for _, c := range []tidegate.Consistency{tidegate.Leased, tidegate.Split} {
			spec.Name = c.String() + " " + a.String()
			spec.Terms = &tidegate.Terms{Rule: "r", Handling: tidegate.Handling{Consistency: c}}
			all = append(all, tidegate.MustLimit(spec))
		}
	}
	return all
}

func drain(t *testing.T, s *Store, l *tidegate.Limit, key string) (admitted int) {
	t.Helper()
	for range 10 {
		d, err := s.Take(context.Background(), []tidegate.Check{{Key: key, Limit: l, Cost: 1, MaxWait: farAhead}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.OK {
			admitted++
		}
	}
	return admitted
}

// noon is in the middle of every window and period that the tests use.
var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func TestRestoreRefillsNobody(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, step := range []time.Duration{0, time.Second, -time.Hour, -40 * 24 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			now := noon
			clock := func() time.Time { return now }
			path := filepath.Join(t.TempDir(), "snapshot")
			s := Open(Config{Now: clock})
			limits := everyAlgorithm()
			const keys = 300
			for _, l := range limits {
				for k := range keys {
					drain(t, s, l, fmt.Sprint("key", k))
				}
			}
			if err := s.Snapshot(path); err != nil {
				t.Fatal(err)
			}
			now = now.Add(step)
			r, err := Restore(path, Config{Now: clock})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range everyAlgorithm() { // a new process has new limits
				for k := range keys {
					if n := drain(t, r, l, fmt.Sprint("key", k)); n > 0 {
						t.Fatalf("%s: key%d was admitted %d times after the restore", l, k, n)
					}
				}
				if n := drain(t, r, l, "stranger"); n < 5 {
					t.Errorf("%s: a new key was admitted %d times, want 5", l, n)
				}
			}
		})
	}
}

func TestRestoreCountsTheTimeBetween(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	path := filepath.Join(t.TempDir(), "snapshot")
	l := tidegate.MustLimit(tidegate.Spec{Events: 10, Period: 10 * time.Second, Algorithm: tidegate.TokenBucket})
	s := Open(Config{Now: clock})
	if n := drain(t, s, l, "a"); n != 10 {
		t.Fatalf("admitted %d, want 10", n)
	}
	if err := s.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Second)
	r, err := Restore(path, Config{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.Take(context.Background(), []tidegate.Check{{Key: "a", Limit: l}}, 1)
	if err != nil || d.Remaining != 3 {
		t.Fatalf("remaining %d (%v), want 3 after 3 s at 1/s", d.Remaining, err)
	}
}

func TestSnapshotFileIsPrivateAndReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	s := New()
	drain(t, s, everyAlgorithm()[0], "a")
	for range 2 {
		if err := s.Snapshot(path); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left (%v), want only the snapshot", len(left), err)
	}
}

func TestRestoreRefusesABrokenFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	s := New()
	for _, l := range everyAlgorithm() {
		drain(t, s, l, "a")
	}
	if err := s.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, data []byte) {
		t.Helper()
		broken := filepath.Join(dir, "broken")
		if err := os.WriteFile(broken, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(broken, Config{}); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: got %v, want ErrSnapshot", name, err)
		}
	}
	f("empty", nil)
	f("cut", whole[:len(whole)/2])
	f("other file", append([]byte("#!/bin/sh\n"), whole...))
	for at := 0; at < len(whole); at += 1 + len(whole)/97 {
		flipped := append([]byte(nil), whole...)
		flipped[at] ^= 4
		f(fmt.Sprintf("bit flipped at %d", at), flipped)
	}
	if _, err := Restore(filepath.Join(dir, "absent"), Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: got %v", err)
	}
}

func TestRestoreUnderASmallerBound(t *testing.T) {
	testdep.SkipUnderRace(t)
	path := filepath.Join(t.TempDir(), "snapshot")
	l := everyAlgorithm()[0]
	s := New()
	for k := range 20_000 {
		if _, err := s.Take(context.Background(), []tidegate.Check{{Key: fmt.Sprint(k), Limit: l, Cost: 1}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(path, Config{MaxBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	if st := r.Stats(); st.Bytes > 100_000 || st.Evicted == 0 || st.Keys+st.Forgotten != 20_000 {
		t.Errorf("%+v: want at most 100000 bytes, and every key kept or counted", st)
	}
}

// What a rule says of a limit beyond its numbers is not the store's to keep: a
// long answer would make the file unreadable, terms in a circle unwritable.
func TestSnapshotLeavesTermsOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	terms := &tidegate.Terms{Rule: "login", Answer: tidegate.Answer{Body: strings.Repeat("x", 1<<17)}}
	l := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "ip", Events: 5, Period: 24 * time.Hour, Terms: terms})
	terms.AtEnd.Block = l
	s := New()
	drain(t, s, l, "a")
	if err := s.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if n := drain(t, r, l, "a"); n > 0 {
		t.Errorf("admitted %d times after the restore", n)
	}
}

// Raw time is the same after a restart, whichever limit asks first.
func TestRestoreKeepsRawTime(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	raw := func(events int64, period time.Duration) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: "raw", Algorithm: tidegate.TokenBucket, RawTime: true, Events: events, Period: period})
	}
	slow, fast := raw(10, 24*time.Hour), raw(10, time.Second)
	s := Open(Config{Now: clock})
	drain(t, s, slow, "ann")
	back := []tidegate.Check{{Key: "ann", Limit: fast, Cost: -1}} // the last that it is written under
	if err := s.Adjust(context.Background(), tidegate.Receipt{At: algo.Instant(now)}, back); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := s.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(path, Config{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*tidegate.Limit{fast, slow, fast} {
		d, err := restored.Take(context.Background(), []tidegate.Check{{Key: "ann", Limit: l}}, 1)
		if err != nil || d.OK || d.ResetAfter != 24*time.Hour-100*time.Millisecond {
			t.Errorf("%s: %+v, %v", l, d, err)
		}
	}
}
