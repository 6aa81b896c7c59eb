package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// at is so many milliseconds after some instant.
func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestExcess(t *testing.T) {
	f := func(want float64, most allowance, spans ...int) {
		t.Helper()
		var passes []span
		for i := 0; i < len(spans); i += 2 {
			passes = append(passes, span{at(spans[i]), at(spans[i+1])})
		}
		if got := excess(passes, most); got < want-0.001 || got > want+0.001 {
			t.Errorf("%v with %+v: %v too many, want %v", spans, most, got, want)
		}
	}
	f(0, allowance{2, 0})
	f(0, allowance{2, 0}, 0, 10, 0, 10)
	f(1, allowance{2, 0}, 0, 10, 0, 10, 5, 8)
	f(0.9, allowance{2, 10}, 0, 10, 0, 10, 5, 8)                  // in 10 ms
	f(0, allowance{2, 10}, 0, 10, 0, 10, 100, 110)                // one more by then
	f(0, allowance{1, 10}, 0, 200, 100, 101)                      // the first may have been decided at 0
	f(1.98, allowance{1, 10}, 0, 1, 500, 501, 500, 502, 500, 502) // the worst is in the end
}

func TestMostIn(t *testing.T) {
	passes := []span{{at(0), at(1)}, {at(500), at(501)}, {at(999), at(1000)}, {at(1100), at(1101)}}
	for w, want := range map[time.Duration]int{time.Millisecond: 0, 2 * time.Millisecond: 1, time.Second: 3, 2 * time.Second: 4} {
		if got := mostIn(passes, w); got != want {
			t.Errorf("%d in %s, want %d", got, w, want)
		}
	}
}

// A row that is missed on a machine that stood still is played again, another is not.
func TestAttempt(t *testing.T) {
	f := func(want int, results ...result) {
		t.Helper()
		plays := 0
		tr := trial{name: "x", play: func(context.Context) (result, error) {
			plays++
			r := results[min(plays, len(results))-1]
			if b, ok := r.(broken); ok {
				return nil, b.err
			}
			return r, nil
		}}
		a := tr.attempt(t.Context(), indulgence{tries: 3}, io.Discard)
		if plays != want || a.tries != want {
			t.Errorf("played %d times, %d by its own count, want %d", plays, a.tries, want)
		}
	}
	good, missed := &finding{still: time.Second}, &finding{missed: []string{"all"}}
	disturbed := &finding{missed: []string{"all"}, still: time.Second}
	f(1, good)
	f(1, missed, good)
	f(2, disturbed, good)
	f(3, disturbed)
	f(2, broken{errors.New("no Redis")}, good)
	f(3, broken{errors.New("no Redis")})
}

func TestPage(t *testing.T) {
	s := section{tables: lines([]string{"fault", "admitted"})}
	page := s.page([]attempted{
		{trial{name: "one"}, &finding{cells: []string{"one", "5"}}, 2},
		{trial{name: "two"}, &finding{cells: []string{"two", "7"}, missed: []string{"7 admitted"}}, 1},
		{trial{name: "three"}, broken{errors.New("no Redis")}, 1},
	}, at(0))
	for _, want := range []string{
		"| fault | admitted |\n|---|---:|\n| one | 5 |\n| two | 7 |\n", "one was run 2 times", "**Missed**, two: 7 admitted.",
		"**Missed**, three: it could not be run to its end: no Redis.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// Every table has a place in the page, and names of rows are not used twice.
func TestSectionsHaveMarks(t *testing.T) {
	page, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range sections() {
		if !strings.Contains(string(page), "<!-- "+s.mark+":begin -->") || !strings.Contains(string(page), "<!-- "+s.mark+":end -->") {
			t.Errorf("docs/chaos.md has no place for %s", s.mark)
		}
		for _, tr := range s.trials {
			if names[tr.name] {
				t.Errorf("two rows are called %q", tr.name)
			}
			names[tr.name] = true
		}
	}
}
