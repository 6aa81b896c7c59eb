package deferq

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Answers are longer than requests: while what waits is sent and nothing new is kept, results make room for results, the oldest
// first.
func TestResultsAreBounded(t *testing.T) { everyStore(t, testResultsAreBounded) }

func testResultsAreBounded(t *testing.T, in kept) {
	const max = 256 << 10
	s := in(t, max)()
	defer closed(t, s)
	for i := range 40 {
		add(t, s, entryOf(fmt.Sprint(i), "x"))
	}
	last := ""
	for i := range 40 {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.State, e.Ended, e.Result = Done, time.Now(), &Result{Status: 200, Body: []byte(strings.Repeat("y", 32<<10))}
		if i == 0 {
			e.State, e.Reason = Dead, "no"
		}
		s.End(e)
		last = e.ID
		if st, err := s.Stats(t.Context()); err != nil || st.Bytes > max {
			t.Fatalf("%+v after %d ends, %v; no more than %d bytes are allowed", st, i+1, err, max)
		}
	}
	if st, _ := s.Stats(t.Context()); st.Waiting != 0 || st.Dead != 1 || st.Done < 2 {
		t.Errorf("%+v: want the dead letter, and some results", st)
	}
	if e, _, err := s.Get(t.Context(), last); err != nil || e.Result == nil {
		t.Errorf("the last result: %+v %v", e, err)
	}
}

// A dead letter that is retried has no answer any more.
func TestRetriedHasNoResult(t *testing.T) { everyStore(t, testRetriedHasNoResult) }

func testRetriedHasNoResult(t *testing.T, in kept) {
	open := in(t, 1<<20)
	s := open()
	add(t, s, entryOf("ann", "x"))
	e, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.State, e.Reason, e.Ended, e.Result = Dead, "the upstream answered 401", time.Now(), &Result{Status: 401}
	s.End(e)
	if err := s.Retry(t.Context(), e.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // before and after a restart
		if got, _, err := s.Get(t.Context(), e.ID); err != nil || got.State != Waiting || got.Result != nil || got.Reason != "" {
			t.Errorf("%+v %v", got, err)
		}
		closed(t, s)
		s = open()
	}
	closed(t, s)
}
