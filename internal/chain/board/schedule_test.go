package board

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/lang/durable"
)

// Whatever happens in between, in the end everybody has what was ordered last: random orders
// and ends on three instances, which are restarted and cut off and whose answers are lost,
// while the table is emptied and goes back to an old copy.
func TestRandomSchedules(t *testing.T) {
	schedules, steps := 25, 60
	if testing.Short() {
		schedules = 10
	}
	writeFile = os.WriteFile // no machine stops
	defer func() { writeFile = durable.WriteFile }()
	for seed := range schedules {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runSchedule(t, rand.New(rand.NewPCG(uint64(seed), 19)), steps) })
		})
	}
}

func runSchedule(t *testing.T, random *rand.Rand, steps int) {
	w := newTeam(t, 3, true)
	for _, b := range w.all {
		b.o.Confirm = -1
	}
	last := make(map[string]string) // what was ordered last, "" for an end
	back := w.table.copy()
	var story []string
	tell := func(format string, args ...any) {
		story = append(story, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
	for step := range steps {
		i, id := random.IntN(3), fmt.Sprint("r", random.IntN(4))
		switch n := random.IntN(20); {
		case n < 7:
			tell("%d puts %s=%d", i, id, step)
			w.put(i, id, fmt.Sprint(step))
			last[id] = fmt.Sprint(id, "=", step)
		case n < 12:
			_, err := w.all[i].End(context.Background(), id)
			tell("%d ends %s: %v", i, id, err)
			if err == nil {
				last[id] = ""
			} else if !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
		case n == 12:
			tell("%d restarts", i)
			w.restart(i)
			w.all[i].o.Confirm = -1
		case n == 13:
			tell("flush")
			w.table.flush()
		case n == 14:
			tell("the table is copied")
			back = w.table.copy()
		case n == 15:
			tell("back to the copy")
			back()
		case n < 18:
			cut, lossy := random.IntN(2) == 0, random.IntN(4) == 0
			tell("%d cut off: %t, answers lost: %t", i, cut, lossy)
			w.wires[i].set(cut, lossy)
		default:
			for _, x := range w.wires {
				x.set(false, false)
			}
			tell("all are connected")
		}
		time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
	}
	for _, x := range w.wires {
		x.set(false, false)
	}
	time.Sleep(compareEvery + 5*time.Second)
	var all []string
	for _, text := range last {
		if text != "" {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	want := strings.Join(all, " ")
	w.want("in the end", want)
	fresh := newTeamOn(w)
	if got := bodies(fresh); got != want {
		t.Errorf("somebody new has %q", got)
	}
	if t.Failed() {
		t.Log(strings.Join(story, "\n"))
	}
}

// newTeamOn starts one more instance on the table of w.
func newTeamOn(w *team) *Board {
	w.t.Helper()
	b, err := Open(Options{Table: &wire{paper: w.table}, Self: Node{ID: "new"}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	b.Start()
	time.Sleep(time.Second)
	return b
}
