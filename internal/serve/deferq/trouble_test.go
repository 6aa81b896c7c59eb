package deferq

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// While the disk takes nothing, sending stops before much would be sent again, and a process that is to end does.
func TestEndWithAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "2/second", "2/10s", 1))
		b.accept("ann", 0, 10) // two are sent now
		f := b.store.(*File)
		full := errors.New("no space left on device")
		for range maxUnwritten + 1 {
			f.w.later(func(*bolt.Tx) error { return full }, nil)
		}
		time.Sleep(5 * time.Minute)
		if n := len(b.arrivals()); n > 3 {
			t.Errorf("%d were sent while nothing can be recorded; want 2, and the one that was asked for before", n)
		}
		if s, _ := f.Stats(t.Context()); !errors.Is(s.Err, full) || s.Unwritten <= maxUnwritten {
			t.Errorf("%+v", s)
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		go func() { ended <- b.queue.Close(ctx) }()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Fatal("it does not end")
		}
	})
}

// A record that is no record is a dead letter, its line goes on, and the file is opened the next time as well.
func TestUnreadableRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 1<<20)
	bad, behind := entryOf("ann", "1"), entryOf("ann", "2")
	add(t, f, bad)
	add(t, f, behind)
	err := f.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(waitBucket).Put(key(f.byID[bad.ID].seq), []byte(`{"v":1,`)) })
	if err != nil {
		t.Fatal(err)
	}
	if e, err := f.Next(t.Context()); err != nil || e.ID != behind.ID {
		t.Fatalf("%+v %v", e, err)
	}
	for range 2 { // before and after a restart
		if e, _, err := f.Get(t.Context(), bad.ID); err != nil || e.State != Dead || !strings.Contains(e.Reason, "cannot be read") || !e.Accepted.Equal(bad.Accepted) {
			t.Errorf("%+v %v", e, err)
		}
		closed(t, f)
		f = openFile(t, path, 1<<20)
	}
	closed(t, f)
}

// Of two operators, one revives a dead letter while the other drops or revives it: that one is told so.
func TestReviveIsAlone(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "deferred"), 1<<20)
	defer closed(t, f)
	add(t, f, entryOf("ann", "x"))
	e, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.State, e.Reason, e.Ended = Dead, "no", time.Now()
	f.End(e)
	if err := f.w.flushed(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := f.db.Begin(true) // the disk is slow
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	go func() { first <- f.Retry(t.Context(), e.ID, time.Now()) }()
	testdep.Eventually(t, "it is begun", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.dead) == 0
	})
	if err := f.Drop(t.Context(), e.ID, "x"); !errors.Is(err, ErrBusy) {
		t.Errorf("dropped meanwhile: %v", err)
	}
	if err := f.Retry(t.Context(), e.ID, time.Now()); !errors.Is(err, ErrBusy) {
		t.Errorf("retried meanwhile: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if e, err := f.Next(t.Context()); err != nil || string(e.Request.Body) != "x" {
		t.Errorf("%+v %v", e, err)
	}
}
