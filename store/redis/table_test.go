package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func init() { questionOpen = time.Minute } // a busy machine takes its time

// testTable wants a table to be one. It begins empty.
func testTable(t *testing.T, s *Store) {
	t.Helper()
	table, ctx := in(s).Table(), t.Context()
	look := func(since int64) chain.TableNews {
		t.Helper()
		news, err := table.Look(ctx, since)
		if err != nil {
			t.Fatal(err)
		}
		return news
	}
	if n := look(0); n.Epoch != "" || n.Version != 0 || len(n.Changed)+len(n.Open) > 0 || time.Since(n.Now).Abs() > time.Hour {
		t.Errorf("an empty table: %+v", n)
	}
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	post := func(rows ...chain.Row) []chain.Row {
		t.Helper()
		there, epoch, err := table.Post(ctx, "first", rows)
		if err != nil || epoch != "first" {
			t.Fatalf("epoch %q, %v", epoch, err)
		}
		return there
	}
	a := chain.Row{ID: "a", Rev: 5, By: 7, Keep: later, Text: "live 0 a\x00b c"}
	b := chain.Row{ID: "b", Rev: 1<<53 - 1, By: 1<<32 - 1, Keep: later, Text: ""}
	first := post(a, b)
	if first[0].Text != a.Text || first[0].Version < 1 || first[1].Version <= first[0].Version {
		t.Errorf("posted: %+v", first)
	}
	n := look(0)
	if n.Epoch != "first" || n.Version != first[1].Version || len(n.Changed) != 2 || n.Changed[0] != (chain.RowVersion{ID: "a", Version: first[0].Version}) {
		t.Errorf("after two rows: %+v", n)
	}
	if n := look(first[0].Version); len(n.Changed) != 1 || n.Changed[0].ID != "b" {
		t.Errorf("since the first: %+v", n)
	}
	if n := look(n.Version); len(n.Changed) != 0 {
		t.Errorf("since the last: %+v", n)
	}
	rows, err := table.Rows(ctx, []string{"b", "none", "a"})
	if a.ID = "a"; err != nil || len(rows) != 3 || rows[2] != a || rows[0] != b || rows[1].Rev != 0 {
		t.Errorf("read %+v, %v", rows, err)
	}
	// What is older, or as old, changes nothing; the writer decides between equals.
	for _, old := range []chain.Row{{ID: "a", Rev: 4, By: 9}, {ID: "a", Rev: 5, By: 6}, {ID: "a", Rev: 5, By: 7}} {
		old.Keep, old.Text = later, "old"
		if there := post(old); there[0].Text != a.Text || there[0].Rev != 5 || there[0].Version != first[0].Version {
			t.Errorf("%+v: there is %+v", old, there)
		}
	}
	for _, newer := range []chain.Row{{ID: "a", Rev: 5, By: 8}, {ID: "a", Rev: 6, By: 0}} {
		newer.Keep, newer.Text = later, "newer"
		if there := post(newer); there[0].Text != "newer" || there[0].Rev != newer.Rev {
			t.Errorf("%+v: there is %+v", newer, there)
		}
	}
	if there := post(chain.Row{ID: "over", Rev: 1, Keep: time.Now().Add(-time.Minute)}); there[0].Rev != 0 {
		t.Errorf("one whose time is over: %+v", there)
	}
	for _, bad := range []chain.Row{{Rev: 1, Keep: later}, {ID: "a", Keep: later}, {ID: strings.Repeat("a", chain.MaxRowID+1), Rev: 1}, {ID: "a", Rev: 7, Text: strings.Repeat("a", chain.MaxRowText+1)}} {
		if _, _, err := table.Post(ctx, "first", []chain.Row{bad}); err == nil {
			t.Errorf("%.50v was taken", bad)
		}
	}
	testQuestions(t, table)
	testJournal(t, table)
	for k, err := range s.Keys(ctx, "") {
		t.Errorf("taken for a counter: %+v, %v", k, err)
	}
}

func testQuestions(t *testing.T, table chain.Table) {
	t.Helper()
	ctx := t.Context()
	if err := table.Ask(ctx, "q1", "what?"); err != nil {
		t.Fatal(err)
	}
	if n, err := table.Look(ctx, 0); err != nil || !slices.Equal(n.Open, []string{"q1"}) {
		t.Errorf("open: %v, %v", n.Open, err)
	}
	if text, err := table.Question(ctx, "q1"); err != nil || text != "what?" {
		t.Errorf("%q, %v", text, err)
	}
	long := strings.Repeat("x", chain.MaxAnswer)
	for i := range 20 {
		if err := table.Answer(ctx, "q1", fmt.Sprint(i, long[3:])); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Answer(ctx, "q1", long+"x"); err == nil {
		t.Error("a longer answer was taken")
	}
	if err := table.Answer(ctx, "none", "late"); err != nil {
		t.Error(err)
	}
	var all []string
	for {
		some, err := table.Answers(ctx, "q1", len(all))
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, some...); len(some) == 0 {
			break
		}
	}
	if len(all) != 20 || !strings.HasPrefix(all[19], "19x") || len(all[19]) != len(long)-1 {
		t.Errorf("%d answers", len(all))
	}
	if late, err := table.Answers(ctx, "none", 0); err != nil || len(late) > 0 {
		t.Errorf("answers to nothing: %q, %v", late, err)
	}
	busy := error(nil)
	for i := 0; i < chain.MaxQuestions+1 && busy == nil; i++ {
		busy = table.Ask(ctx, fmt.Sprint("more", i), "?")
	}
	if !errors.Is(busy, chain.ErrBusy) {
		t.Errorf("one question too many: %v", busy)
	}
}

func testJournal(t *testing.T, table chain.Table) {
	t.Helper()
	ctx := t.Context()
	var lines []string
	for i := range 250 {
		lines = append(lines, fmt.Sprint("name", i, " line ", i))
	}
	for some := range slices.Chunk(lines, chain.MaxLinesAtOnce) {
		for range 3 { // answers may be lost
			if err := table.Append(ctx, some); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range []int{0, 1, 99, 100, 101, 250, 1000} {
		if got, err := table.Journal(ctx, n); err != nil || !slices.Equal(got, lines[max(0, len(lines)-n):]) {
			t.Errorf("the last %d: %d lines, %v", n, len(got), err)
		}
	}
}

// A table, as large as it may be, that is lost and full, and one of keys that others use.
func TestTable(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr, Deadline: patient})
	testTable(t, s)
	table, ctx := in(s).Table(), t.Context()
	server.Do("FLUSHALL")
	later := time.Now().Add(time.Hour)
	var rows []chain.Row
	for i := range chain.MaxRows {
		rows = append(rows, chain.Row{ID: fmt.Sprint("x", i), Rev: 1, Keep: later})
	}
	for some := range slices.Chunk(rows, chain.MaxRowsAtOnce) {
		if _, epoch, err := table.Post(ctx, "second", some); err != nil || epoch != "second" {
			t.Fatal(epoch, err)
		}
	}
	there, _, err := table.Post(ctx, "", []chain.Row{{ID: "x7", Rev: 2, Keep: later, Text: "more"}, {ID: "one-more", Rev: 1, Keep: later}})
	if !errors.Is(err, chain.ErrTableFull) || there[0].Text != "more" || there[1].Rev != 0 {
		t.Errorf("in a full table: %+v, %v", there, err)
	}
	seen, pages := map[string]bool{}, 0
	for since := int64(0); ; pages++ {
		news, err := table.Look(ctx, since)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range news.Changed {
			seen[c.ID], since = true, c.Version
		}
		if len(news.Changed) < chain.MaxChanged {
			break
		}
	}
	if len(seen) != chain.MaxRows || pages != chain.MaxRows/chain.MaxChanged {
		t.Errorf("%d rows in %d pages", len(seen), pages)
	}
	// Rows whose time is over make room.
	server.Do("ZADD", s.prefix+":board{"+s.prefix+":board}:keep", "1", "x0")
	if _, _, err := table.Post(ctx, "", []chain.Row{{ID: "one-more", Rev: 1, Keep: later}}); err != nil {
		t.Errorf("where there is room: %v", err)
	}
	// A clock that is set back leaves versions growing.
	server.Do("ZADD", s.prefix+":board", "9000000000000000", "x9")
	if there, _, err := table.Post(ctx, "", []chain.Row{{ID: "x10", Rev: 9, Keep: later}}); err != nil || there[0].Version != 9000000000000001 {
		t.Errorf("%+v, %v", there, err)
	}
	// What others write is no row, and one can write over it.
	row := s.prefix + ":board{" + s.prefix + ":board}:row:x11"
	for _, junk := range []string{"", "x", "1 2 3", "-1 2 3 x", "1 x 3 x", strings.Repeat("9", 9000) + " 1 1 x", "9007199254740993 1 1 x"} {
		server.Do("SET", row, junk)
		if rows, err := table.Rows(ctx, []string{"x11"}); err != nil || rows[0].Rev != 0 {
			t.Errorf("%.20q is read as %+v, %v", junk, rows, err)
		}
	}
	server.Do("SET", row, "junk")
	if there, _, err := table.Post(ctx, "", []chain.Row{{ID: "x11", Rev: 9, Keep: later, Text: "y"}}); err != nil || there[0].Text != "y" {
		t.Errorf("over junk: %+v, %v", there, err)
	}
	server.Do("DEL", s.prefix+":board")
	server.Do("SET", s.prefix+":board", "x")
	if _, err := table.Look(ctx, 0); err == nil || !strings.Contains(err.Error(), "use another prefix") {
		t.Errorf("under a key that somebody else uses: %v", err)
	}
	if s.carefulUntil.Load() != 0 {
		t.Error("decisions are careful now")
	}
}
