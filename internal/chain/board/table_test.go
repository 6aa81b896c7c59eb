package board

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// While the table is away an order holds here, says so within the timeout, and is posted later.
func TestTableAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 3, false)
		time.Sleep(time.Second)
		w.put(0, "old", "")
		for _, x := range w.wires {
			x.set(true, false)
		}
		start := time.Now()
		reach := w.put(0, "x", "1")
		if took := time.Since(start); took > DefaultTimeout+100*time.Millisecond {
			t.Errorf("Put took %s", took)
		}
		if len(reach.Lacks) != 2 || reach.Lacks[0].Name != "node1" || reach.Why == "" || len(reach.Kept) != 0 || reach.Everywhere() {
			t.Errorf("reach: %s", &reach)
		}
		if got := bodies(w.all[0]); got != "old= x=1" {
			t.Errorf("here: %s", got)
		}
		if st := w.all[0].Status(); st.Pending != 1 {
			t.Errorf("status: %+v", st)
		}
		w.end(0, "old")
		time.Sleep(10 * time.Second)
		if st := w.all[0].Status(); st.Why == nil || time.Since(st.Since) < 9*time.Second {
			t.Errorf("status: %+v", st)
		}
		for _, x := range w.wires {
			x.set(false, false)
		}
		time.Sleep(1500 * time.Millisecond)
		w.want("when it is back", "x=1")
	})
}

// A table that comes back empty, or as it was some time ago, is filled again: somebody who
// starts then has everything.
func TestTableLosesRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 3, false)
		w.put(0, "a", "1")
		back := w.table.copy()
		w.put(1, "b", "1")
		w.end(2, "a")
		for name, lose := range map[string]func(){"it is empty": w.table.flush, "it is old": back} {
			lose()
			time.Sleep(compareEvery + time.Second)
			w.restart(1)
			time.Sleep(time.Second)
			w.want(name, "b=1")
		}
		back()
		w.put(2, "c", "1") // its version hides that some are lost
		time.Sleep(compareEvery + time.Second)
		w.restart(0)
		time.Sleep(time.Second)
		w.want("after a failover that nobody saw", "b=1 c=1")
	})
}

// An instance that was cut off does not bring back what was ended meanwhile, and what it
// ordered itself meanwhile is not lost.
func TestCutOff(t *testing.T) {
	for _, away := range []time.Duration{time.Second, time.Hour, 29 * 24 * time.Hour, 40 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newTeam(t, 2, true)
			w.put(0, "a", "1")
			w.put(0, "b", "1")
			w.wires[1].set(true, false)
			w.all[1].Close() // its file is old when it comes back
			w.end(0, "a")
			w.all[0].Close() // it would look millions of times
			time.Sleep(away)
			w.start(0)
			time.Sleep(time.Second) // it says once more who was ended, if that is still known
			w.start(1)
			w.put(1, "c", "1")
			w.wires[1].set(false, false)
			time.Sleep(2 * time.Second)
			w.want(fmt.Sprint("after ", away), "b=1 c=1")
		})
	}
}

// An order whose answer is lost is in force once, and can be replaced at once.
func TestAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, false)
		w.put(1, "a", "before")
		w.wires[0].set(false, true)
		w.put(0, "a", "1")
		w.put(0, "b", "1")
		w.end(0, "a")
		w.wires[0].set(false, false)
		time.Sleep(time.Second)
		w.want("after lost answers", "b=1")
	})
}
