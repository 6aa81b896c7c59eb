package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// team is some instances that share a table.
type team struct {
	t     *testing.T
	table *paper
	wires []*wire
	all   []*Board
	files []string
}

// newTeam starts instances, in a bubble of synctest.
func newTeam(t *testing.T, size int, files bool) *team {
	t.Helper()
	w := &team{t: t, table: newPaper()}
	dir := t.TempDir()
	for i := range size {
		file := ""
		if files {
			file = filepath.Join(dir, fmt.Sprint(i, ".json"))
		}
		w.files, w.wires, w.all = append(w.files, file), append(w.wires, &wire{paper: w.table}), append(w.all, nil)
		w.start(i)
	}
	t.Cleanup(func() {
		for _, b := range w.all {
			b.Close()
		}
	})
	return w
}

func node(i int) Node { return Node{ID: fmt.Sprint("id", i), Name: fmt.Sprint("node", i)} }

// start opens instance i, again if it was closed.
func (w *team) start(i int) {
	w.t.Helper()
	b, err := Open(Options{
		Table: w.wires[i], Self: node(i), File: w.files[i],
		Members: func(ctx context.Context) (members []Member, err error) {
			for i := range w.all {
				members = append(members, Member{Node: node(i), Follows: true})
			}
			return members, w.wires[i].call(ctx, func() {})
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.all[i] = b
	b.Start()
}

func (w *team) restart(i int) {
	w.all[i].Close()
	w.start(i)
}

// bodies are the records in force, as ID=BODY.
func bodies(b *Board) string {
	var all []string
	for _, r := range b.All() {
		all = append(all, r.ID+"="+string(r.Body))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// want wants all instances to have the same.
func (w *team) want(when, want string) {
	w.t.Helper()
	for i, b := range w.all {
		if got := bodies(b); got != want {
			w.t.Errorf("%s, instance %d has %q, want %q", when, i, got, want)
		}
	}
}

func (w *team) put(i int, id, body string) Reach {
	w.t.Helper()
	reach, err := w.all[i].Put(context.Background(), Record{ID: id, Body: []byte(body)})
	if err != nil {
		w.t.Fatal(err)
	}
	return reach
}

func (w *team) end(i int, id string) Reach {
	w.t.Helper()
	reach, err := w.all[i].End(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return reach
}

// What is ordered anywhere is everywhere within a second, and Put returns when it is.
func TestEverywhereWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 5, false)
		time.Sleep(time.Second)
		for i := range w.all {
			start := time.Now()
			reach := w.put(i, "x", fmt.Sprint(i))
			if took := time.Since(start); took > 500*time.Millisecond || !reach.Everywhere() || len(reach.Has) != 5 || !slices.Equal(reach.Kept, []string{InStore}) {
				t.Errorf("after %s: %s", took, &reach)
			}
			w.want("at once", fmt.Sprint("x=", i))
		}
		if reach := w.end(3, "x"); !reach.Everywhere() {
			t.Errorf("ended: %s", &reach)
		}
		w.want("after its end", "")
		if _, err := w.all[2].End(t.Context(), "x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("ended twice: %v", err)
		}
		w.put(4, "x", "again")
		w.want("put again", "x=again")
	})
}

// A record ends by itself, to the millisecond, though nobody says so.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, true)
		if _, err := w.all[0].Put(t.Context(), Record{ID: "x", Expires: time.Now().Add(3 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		w.restart(1)
		time.Sleep(time.Until(start.Add(2 * time.Second)))
		w.want("before its end", "x=")
		time.Sleep(2 * time.Second)
		w.want("after its end", "")
		if _, err := w.all[0].Put(t.Context(), Record{ID: "x", Expires: time.Now()}); err == nil {
			t.Error("one that is over was taken")
		}
		if _, err := w.all[0].End(t.Context(), "x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("ended after its end: %v", err)
		}
		time.Sleep(grace + time.Minute)
		for i, b := range w.all {
			if b.mu.Lock(); len(b.records) > 0 {
				t.Errorf("instance %d still remembers %d", i, len(b.records))
			}
			b.mu.Unlock()
		}
	})
}

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

// The last order counts whatever the clocks of instances and table show.
func TestClocksDiffer(t *testing.T) {
	for _, step := range []time.Duration{-400 * 24 * time.Hour, -time.Hour, -time.Second, time.Second, time.Hour, 400 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newTeam(t, 3, true)
			until := time.Now().Add(30 * time.Minute)
			if _, err := w.all[0].Put(t.Context(), Record{ID: "timed", Expires: until}); err != nil {
				t.Fatal(err)
			}
			w.put(0, "a", "1")
			w.put(0, "b", "1")
			w.table.mu.Lock()
			w.table.ahead = step
			w.table.mu.Unlock()
			w.end(1, "a")
			w.put(2, "b", "2")
			w.want(fmt.Sprint("with a table that is ahead by ", step), "b=2 timed=")
			w.wires[1].set(true, false)
			w.put(1, "d", "1")
			w.end(1, "b")
			w.wires[1].set(false, false)
			time.Sleep(time.Second)
			w.want("and one that was cut off", "d=1 timed=")
			w.table.mu.Lock()
			w.table.ahead = 0
			w.table.mu.Unlock()
			w.end(2, "d")
			w.put(0, "b", "3")
			time.Sleep(time.Second)
			w.restart(0)
			w.restart(1)
			time.Sleep(2 * time.Second)
			w.want("set right again", "b=3 timed=")
			w.table.mu.Lock()
			defer w.table.mu.Unlock()
			if r := w.table.rows["timed"]; !r.Keep.After(until) {
				t.Error("the table has lost one whose time is not over")
			}
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

// All that can be wrong with an order is told, and changes nothing.
func TestBounds(t *testing.T) {
	b, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, r := range []Record{
		{},
		{ID: "A"},
		{ID: "a b"},
		{ID: "a/b"},
		{ID: strings.Repeat("a", MaxID+1)},
		{ID: "ä"},
		{ID: "a", Body: make([]byte, MaxBody+1)},
	} {
		if _, err := b.Put(t.Context(), r); err == nil {
			t.Errorf("%.50q with %d bytes was taken", r.ID, len(r.Body))
		}
	}
	if len(b.All()) > 0 {
		t.Errorf("all: %q", bodies(b))
	}
	for i := range MaxRecords {
		b.records[fmt.Sprint("x", i)] = &Record{ID: fmt.Sprint("x", i), Rev: int64(i + 1), keep: time.Now().Add(time.Hour)}
	}
	if _, err := b.Put(t.Context(), Record{ID: "one-more"}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "10000") {
		t.Errorf("one more than there may be: %v", err)
	}
	if _, err := b.Put(t.Context(), Record{ID: "x7", Body: []byte("changed")}); err != nil {
		t.Errorf("one that is replaced: %v", err)
	}
	if reach, err := b.End(t.Context(), "x7"); err != nil || len(reach.Kept) != 0 || !strings.Contains(reach.String(), "until this process ends") {
		t.Errorf("%s, %v", &reach, err)
	}
	if _, err := b.Put(t.Context(), Record{ID: "one-more"}); err != nil {
		t.Errorf("in the place of an ended one: %v", err)
	}
}

// A table of many records is read in pages, and one that has lost them gets them in pages.
func TestManyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, false)
		const many = 3*chain.MaxChanged + 7
		for i := range many {
			r := Record{ID: fmt.Sprint("x", i), Rev: int64(i + 1), keep: time.Now().Add(forever)}
			w.all[0].mu.Lock()
			w.all[0].records[r.ID] = &r
			w.all[0].mu.Unlock()
		}
		time.Sleep(compareEvery + 2*time.Second)
		if got := len(w.all[1].All()); got != many {
			t.Errorf("%d of %d", got, many)
		}
		w.wires[0].mu.Lock()
		before := w.wires[0].calls
		w.wires[0].mu.Unlock()
		time.Sleep(compareEvery)
		w.wires[0].mu.Lock()
		defer w.wires[0].mu.Unlock()
		if calls := w.wires[0].calls - before; calls > int(compareEvery/DefaultEvery*10/9)+10 {
			t.Errorf("%d calls while nothing changes", calls)
		}
	})
}

// With a file, a record is there after a restart, as it was answered; a file that cannot be
// read is an error, and one that cannot be written is told.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state.json")
	open := func() *Board {
		t.Helper()
		b, err := Open(Options{File: file})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	b := open()
	until := time.Now().Add(time.Hour)
	for _, r := range []Record{{ID: "a", Body: []byte("1")}, {ID: "b", Body: []byte(`{"x":"\u0000é<"}`), Expires: until}, {ID: "c"}} {
		if reach, err := b.Put(t.Context(), r); err != nil || !slices.Equal(reach.Kept, []string{InFile}) {
			t.Errorf("%s, %v", &reach, err)
		}
	}
	if _, err := b.End(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again := open() // the first one was not closed: what was answered is on disk
	if got := bodies(again); got != `a=1 b={"x":"\u0000é<"}` {
		t.Errorf("after a restart: %s", got)
	}
	if all := again.All(); !all[1].Expires.Equal(until.Truncate(time.Millisecond)) {
		t.Errorf("it ends at %s", all[1].Expires)
	}
	if left, _ := filepath.Glob(file + "?*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"cut off": string(text[:len(text)/2]), "empty": "", "of another kind": "[]", "of a later version": `{"tidegate_state":2,"records":[]}`,
		"no rev": strings.Replace(string(text), `"rev":`, `"revision":`, 1), "an id": strings.Replace(string(text), `"id":"a"`, `"id":"A"`, 1),
	} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{File: file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a file that is %s: %v", name, err)
		}
	}
	if _, err := Open(Options{File: dir}); err == nil {
		t.Error("a folder was read")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if reach, err := again.Put(t.Context(), Record{ID: "d"}); err != nil || len(reach.Kept) > 0 || !strings.Contains(reach.Why, "write what operators have ordered") {
		t.Errorf("without a folder: %s, %v", &reach, err)
	}
	if got := bodies(again); !strings.Contains(got, "d=") {
		t.Error("it does not hold here")
	}
}

// A successor has all records, and the file from then on.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kept := range []string{"", filepath.Join(t.TempDir(), "state")} {
			handed := filepath.Join(t.TempDir(), "handed")
			old, err := Open(Options{File: kept})
			if err != nil {
				t.Fatal(err)
			}
			heir, err := Open(Options{File: kept}) // prepared before the last order
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.Put(t.Context(), Record{ID: "a", Body: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			if err := old.HandOver(handed); err != nil {
				t.Fatal(err)
			}
			if _, err := old.Put(t.Context(), Record{ID: "b"}); !errors.Is(err, ErrClosed) {
				t.Errorf("an order after the handover: %v", err)
			}
			if err := heir.TakeOver(handed); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(handed); err == nil {
				t.Error("the file is left behind")
			}
			if got := bodies(heir); got != "a=1" {
				t.Errorf("the successor has %q", got)
			}
			old.Resume()
			if _, err := old.Put(t.Context(), Record{ID: "b"}); err != nil {
				t.Errorf("an order after nobody took over: %v", err)
			}
			old.Close()
			heir.Close()
		}
	})
}

// Watchers are told what is in force, in order.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, false)
		var told []string
		w.all[1].Watch(func(all []Record) { told = append(told, fmt.Sprint(len(all))) })
		w.put(0, "a", "")
		w.put(1, "b", "")
		w.end(0, "b")
		w.all[1].Close()
		if got := strings.Join(told, " "); got != "0 1 2 1" {
			t.Errorf("told %s", got)
		}
	})
}
