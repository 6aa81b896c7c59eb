package archivetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// testNews wants those who wait to be told, and to end when they are to.
func (s *Server) testNews(t *testing.T) {
	a := s.open(t)
	have := publish(t, a, bundle("news"))
	if b, err := a.Next(within(t), have); b != nil || err != nil {
		t.Fatalf("nothing is new: %+v, %v; want neither a bundle nor an error", b, err)
	}
	for i := range 3 {
		waits, known := s.open(t), have
		type answer struct {
			b   *source.Bundle
			err error
		}
		answers := make(chan answer, 1)
		ctx := within(t)
		go func() {
			for {
				b, err := waits.Next(ctx, known)
				if b != nil || err != nil {
					answers <- answer{b, err}
					return
				}
			}
		}()
		time.Sleep(time.Duration(i) * 200 * time.Millisecond) // it may wait by then or not
		next := bundle(fmt.Sprint("news ", i))
		have = publish(t, a, next)
		got := <-answers
		if got.err != nil {
			t.Fatal(got.err)
		}
		same(t, got.b, next, have)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := a.Next(ctx, have); err != nil {
				ended <- err
				return
			}
		}
	}()
	time.Sleep(100 * time.Millisecond)
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(timeout):
		t.Fatal("it does not end with its context")
	}
}

// testRace lets many publish on top of one revision: one of them does.
func (s *Server) testRace(t *testing.T) {
	a := s.open(t)
	top := publish(t, a, bundle("race"))
	ctx := within(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var won []string
	for i := range 6 {
		b, mine := bundle(fmt.Sprint("racer ", i)), s.open(t)
		all.Go(func() {
			revision, err := mine.Publish(ctx, b, top)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, revision)
			} else if !errors.Is(err, source.ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 || head(t, a) != won[0] {
		t.Errorf("%q have published, and the newest is %s", won, head(t, a))
	}
}

func (s *Server) testHistory(t *testing.T) {
	a := s.open(t)
	var revisions []string
	for i := range source.Kept + 5 {
		revisions = append(revisions, publish(t, a, bundle(fmt.Sprint("number ", i))))
	}
	all, err := a.History(within(t))
	if err != nil || len(all) != source.Kept {
		t.Fatalf("%d revisions, %v", len(all), err)
	}
	for i, revision := range revisions {
		b, err := a.Get(within(t), revision)
		if i < 5 {
			if !errors.Is(err, source.ErrNoRevision) {
				t.Errorf("%s, which is old: %+v, %v", revision, b, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, b, bundle(fmt.Sprint("number ", i)), revision)
		if e := all[len(revisions)-1-i]; e != b.Edition {
			t.Errorf("the history has %+v, want %+v", e, b.Edition)
		}
	}
}
