package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Entrants take turns forwards and backwards, after a short round; an error of one ends it.
func TestTakeTurns(t *testing.T) {
	var heats []string
	warm := 0
	run := func(e string, round int, heat time.Duration) error {
		switch round {
		case 0:
			if warm++; heat != warmUp {
				t.Errorf("the first round has heats of %s", heat)
			}
		case 3:
			return errors.New("down")
		default:
			heats = append(heats, fmt.Sprint(e, round, " ", heat))
		}
		return nil
	}
	keep := func(rounds int) { heats = heats[:2*rounds] } // where other machines disturb it
	if err := TakeTurns(context.Background(), []string{"a", "b"}, 2, time.Minute, run, keep); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(heats, ", "), "b1 1m0s, a1 1m0s, a2 1m0s, b2 1m0s"; got != want || warm < 2 {
		t.Errorf("%s after %d; want %s", got, warm, want)
	}
	heats = nil
	if err := TakeTurns(context.Background(), []string{"a", "b"}, 9, time.Minute, run, keep); err == nil || err.Error() != "down" {
		t.Errorf("%v", err)
	}
	short := func(_ string, round int, heat time.Duration) error {
		if heat != time.Millisecond {
			t.Errorf("round %d has heats of %s", round, heat)
		}
		return nil
	}
	if err := TakeTurns(context.Background(), []string{"a"}, 1, time.Millisecond, short, func(int) {}); err != nil {
		t.Error(err)
	}
}
