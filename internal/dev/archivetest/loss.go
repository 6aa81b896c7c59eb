package archivetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// testLoss wants a server that has lost everything to be neither unchanged nor empty.
func (s *Server) testLoss(t *testing.T) {
	a := s.open(t)
	have := publish(t, a, bundle("lost"))
	if b, err := a.Next(within(t), have); b != nil || err != nil {
		t.Fatal(b, err)
	}
	s.Wipe()
	if b, err := a.Next(within(t), have); err == nil || !strings.Contains(err.Error(), "no rules") {
		t.Errorf("after a loss: %+v, %v", b, err)
	}
	if _, err := a.Publish(within(t), bundle("x"), have); !errors.Is(err, source.ErrConflict) {
		t.Errorf("on top of what is lost: %v", err)
	}
	// As many revisions as were lost, with other files: one of them has the old number.
	seen := map[string]bool{have: true}
	for i := range 40 {
		next := bundle(fmt.Sprint("after the loss ", i))
		revision := publish(t, a, next)
		if seen[revision] {
			t.Fatalf("%s was another one before", revision)
		}
		seen[revision] = true
		got, err := a.Next(within(t), have)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, next, revision)
	}
}

// testOutage wants an error while the server is away, and nothing else to happen.
func (s *Server) testOutage(t *testing.T) {
	a := s.open(t)
	b := bundle("outage")
	have := publish(t, a, b)
	if got, err := a.Next(within(t), have); got != nil || err != nil {
		t.Fatal(got, err)
	}
	s.Kill()
	fails := func(what string, err error) {
		t.Helper()
		if err == nil || errors.Is(err, source.ErrConflict) || errors.Is(err, source.ErrNoRevision) {
			t.Errorf("%s without the server: %v", what, err)
		}
	}
	_, err := a.Next(within(t), have)
	fails("Next", err)
	_, err = a.Publish(within(t), b, have)
	fails("Publish", err)
	_, err = a.History(within(t))
	fails("History", err)
	_, err = a.Get(within(t), have)
	fails("Get", err)
	fresh := s.open(t)
	_, err = fresh.Next(within(t), "")
	fails("Next of another one", err)
	s.Start()
	for _, a := range []source.Archive{a, fresh} {
		for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
			got, err := a.Next(within(t), have)
			if s.Keeps && got == nil && err == nil || !s.Keeps && err != nil && strings.Contains(err.Error(), "no rules") {
				break
			}
			if got != nil || time.Now().After(end) {
				t.Fatalf("after the outage: %+v, %v", got, err)
			}
		}
	}
	next := bundle("after the outage")
	revision := publish(t, fresh, next)
	got, err := a.Next(within(t), have)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, next, revision)
}
