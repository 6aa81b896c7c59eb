package rlqs

import (
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// What has to leave a share for others is not taken ahead.
func TestWhatLeavesAShareIsNotDivided(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "site", Events: 1000, Period: time.Second, Algorithm: tidegate.TokenBucket})
	s := new(Server)
	if sub := s.held([]tidegate.Check{{Key: "k", Limit: l, Floor: 200}}); sub.assigned != unfit || !errors.Is(sub.why, errSetAside) {
		t.Errorf("with a floor: %+v", sub)
	}
	if sub := s.held([]tidegate.Check{{Key: "k", Limit: l}}); sub.assigned == unfit {
		t.Errorf("without: %+v", sub)
	}
}
