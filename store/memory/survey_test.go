package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// peeked is what a key of its own store would be left, by Take.
func peeked(t *testing.T, s *Store, key string, c tidegate.Check) int64 {
	t.Helper()
	c.Key, c.Cost = key, 0
	d, err := s.Take(context.Background(), []tidegate.Check{c}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !d.OK {
		return 0
	}
	return max(d.Remaining, 1)
}

// surveyed are limits of every algorithm that count in one place: as they were, lowered, raised.
func surveyed(a tidegate.Algorithm) (versions []tidegate.Check) {
	for _, events := range []int64{20, 7, 40} {
		spec := tidegate.Spec{Name: a.String(), Algorithm: a, Events: events, Period: 24 * time.Hour}
		c := tidegate.Check{}
		switch a {
		case tidegate.Quota:
			spec.Period, spec.Calendar = 0, tidegate.Month
		case tidegate.LeakyBucket:
			spec.Burst, c.MaxWait = events-1, 1000*time.Hour
		}
		c.Limit = tidegate.MustLimit(spec)
		versions = append(versions, c)
	}
	return versions
}

// What a survey says of a key under other limits is what Take says under them, for every
// algorithm and use; and it leaves every counter as it is.
func TestSurveySaysWhatTakeWould(t *testing.T) {
	for a := tidegate.TokenBucket; a < tidegate.Deny; a++ {
		t.Run(a.String(), func(t *testing.T) {
			now := noon
			versions := surveyed(a)
			fill := func() *Store {
				s := Open(Config{Now: func() time.Time { return now }})
				for used := range 21 {
					for range used {
						c := versions[0]
						c.Key, c.Cost = fmt.Sprint("used", used), 1
						if d, err := s.Take(context.Background(), []tidegate.Check{c}, 1); err != nil || !d.OK {
							t.Fatal(d, err)
						}
					}
				}
				return s
			}
			s := fill()
			var names []string
			for used := range 21 {
				names = append(names, fmt.Sprint("used", used))
			}
			got := make(map[string][]int64)
			look := func() {
				clear(got)
				seen, err := s.Survey(context.Background(), [][]tidegate.Check{versions}, [][]string{names}, func(_ int, key string, left []int64) {
					got[key] = append([]int64(nil), left...)
				})
				if err != nil || seen[0] != 1 {
					t.Fatal(seen, err)
				}
			}
			look()
			if len(got) != 20 { // nothing is counted for the key that was never used
				t.Fatalf("%d keys: %v", len(got), got)
			}
			want := make(map[string][]int64)
			for _, name := range names[1:] {
				for _, c := range versions {
					want[name] = append(want[name], peeked(t, fill(), name, c))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the survey says\n%v\nand Take\n%v", got, want)
			}
			look() // the first has changed nothing
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("a second survey says\n%v\nand Take\n%v", got, want)
			}
			other := tidegate.PerDay(5)
			if _, err := s.Survey(context.Background(), [][]tidegate.Check{{versions[0], {Limit: other}}}, nil, func(int, string, []int64) {}); err == nil {
				t.Error("limits of two counters were surveyed")
			}
		})
	}
}

// A survey of many keys sees each once, while they are used.
func TestSurveySeesEachKeyOnce(t *testing.T) {
	s := New()
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Algorithm: tidegate.FixedWindow, Events: 3, Period: 24 * time.Hour})
	const keys = 20_000
	take := func(key string) {
		if _, err := s.Take(context.Background(), []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, 1); err != nil {
			t.Error(err)
		}
	}
	for i := range keys {
		take(fmt.Sprint(i))
		if i%4 == 0 {
			take(fmt.Sprint(i))
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := keys; ; i++ {
			select {
			case <-stop:
				return
			default:
				take(fmt.Sprint(i))
			}
		}
	}()
	lower := tidegate.MustLimit(tidegate.Spec{Name: "api", Algorithm: tidegate.FixedWindow, Events: 2, Period: 24 * time.Hour})
	refused, named := 0, make(map[string]int)
	names := []string{"0", "1", "19999", "none"}
	if _, err := s.Survey(context.Background(), [][]tidegate.Check{{{Limit: lower}}}, [][]string{names}, func(_ int, key string, left []int64) {
		if left[0] == 0 {
			refused++
		}
		named[key]++
	}); err != nil {
		t.Fatal(err)
	}
	close(stop)
	<-stopped
	if refused != keys/4 || named["0"] != 1 || named["1"] != 1 || named["19999"] != 1 || named["none"] != 0 || named[""] < keys-3 {
		t.Errorf("%d would be refused, want %d; %v", refused, keys/4, named)
	}
}
