package offenders

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What a fleet lists is within its bounds, however the requests of a key are spread, and however
// short the lists are that nodes answer with.
func TestMergeWithinBounds(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(nodes int, keys uint64, skew float64, events, top int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			all := make([]*Offenders, nodes)
			for i := range all {
				all[i] = open(t, Options{Node: fmt.Sprint("node-", i)})
			}
			random := rand.New(rand.NewPCG(keys, uint64(events)))
			zipf := rand.NewZipf(random, skew, 1, keys-1)
			truth := make(map[string]int64)
			var sum int64
			for range events {
				key := strconv.FormatUint(zipf.Uint64(), 10)
				truth[key]++
				sum++
				refuse(all[random.IntN(nodes)], limitsOf[0], key)
			}
			q := Query{Top: top, By: Refused}
			var answers []Report
			for _, of := range all {
				var r Report
				if err := json.Unmarshal(of.Answer(asJSON(t, q)), &r); err != nil {
					t.Fatal(err)
				}
				answers = append(answers, r)
			}
			merged := Merge(q, answers...)
			if len(merged.Nodes) != nodes {
				t.Errorf("merged of %q", merged.Nodes)
			}
			for _, minutes := range []int{1, 10} {
				l := one(t, merged, limitsOf[0].Name, Refused, minutes)
				if len(l.Entries) == 0 || len(l.Entries) > top {
					t.Errorf("%d entries, of at most %d", len(l.Entries), top)
				}
				if err := within(l, truth); err != nil {
					t.Errorf("%d nodes, %d keys, top %d: %v", nodes, keys, top, err)
				}
			}
		})
	}
	for _, nodes := range []int{1, 2, 5} {
		for _, top := range []int{1, 3, 10, 100} {
			f(nodes, 50, 1.2, 1000, top)
			f(nodes, 20_000, 1.05, 4000, top)
			f(nodes, 20_000, 1.5, 20_000, top)
		}
	}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMerge(t *testing.T) {
	entry := func(who string, count, least, most int64) Entry {
		return Entry{Subject: []Part{{Name: "user", Value: who}}, Count: count, AtLeast: least, AtMost: most}
	}
	near := func(who string, used float64) Entry {
		return Entry{Subject: []Part{{Name: "user", Value: who}}, Used: used}
	}
	a := Report{Nodes: []string{"a"}, Lists: []List{
		{Rule: "api", By: Refused, Minutes: 1, Seconds: 61, OthersAtMost: 2, Entries: []Entry{entry("1", 30, 30, 32), entry("2", 5, 5, 5)}},
		{Rule: "api", By: Nearest, Minutes: 1, OthersUsed: 0.5, Entries: []Entry{near("1", 0.8)}},
		{Rule: "login", By: Refused, Minutes: 1, Entries: []Entry{entry("1", 1, 1, 1)}},
	}}
	b := Report{Nodes: []string{"b"}, LeftOut: 2, LeftOutAtMost: 7, Lists: []List{
		{Rule: "api", By: Refused, Minutes: 1, Seconds: 66, OthersAtMost: 3, Sampled: 4, Entries: []Entry{entry("2", 40, 20, 70)}},
		{Rule: "api", By: Nearest, Minutes: 1, OthersUsed: 0.7, Entries: []Entry{near("1", 0.9)}},
	}}
	m := Merge(Query{}, a, b)
	got := one(t, m, "api", Refused, 1)
	if text := brief(got); !slices.Equal(text, []string{"user=2 45 (25 to 75)", "user=1 30 (30 to 35)"}) || got.OthersAtMost != 5 || got.Sampled != 4 || got.Seconds != 66 {
		t.Errorf("%q %+v", text, got)
	}
	if got := one(t, m, "api", Nearest, 1); got.Entries[0].Used != 0.9 || got.OthersUsed != 0.7 || got.Entries[0].AtMost != 0 {
		t.Errorf("%+v", got)
	}
	if got := one(t, m, "login", Refused, 1); got.Entries[0].AtMost != 8 || got.OthersAtMost != 7 || m.LeftOut != 2 {
		t.Errorf("the list that b may have left out: %+v", got)
	}
	if got := Merge(Query{Top: 1}, a, b); len(got.Lists[0].Entries) != 1 || got.Lists[0].OthersAtMost != 35 {
		t.Errorf("cut to one: %+v", got.Lists[0])
	}
	if got := Merge(Query{}); len(got.Nodes) != 0 || got.Lists == nil {
		t.Errorf("of nobody: %+v", got)
	}
}

// An answer fits, however many rules and however long keys are, and tells what it leaves out.
func TestAnswerFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{})
		for i, l := range limitsOf[:400] {
			if i%20 == 19 {
				time.Sleep(tickEvery)
				synctest.Wait()
			}
			for j := range 3 {
				for range 1 + i%7 {
					refuse(of, l, fmt.Sprint(strings.Repeat("\x01", 50), j))
				}
			}
		}
		answer := of.Answer(nil)
		var r Report
		if err := json.Unmarshal(answer, &r); err != nil || len(answer) > MaxAnswer || len(answer) < MaxAnswer/4 {
			t.Fatalf("%d bytes, %v", len(answer), err)
		}
		if r.LeftOut == 0 || r.LeftOutAtMost < 1 || r.LeftOutAtMost > 7 || r.Lists[0].By != Refused || r.Lists[0].Entries[0].Count != 7 {
			t.Errorf("%d lists, %d left out, those have at most %d, the first is %+v", len(r.Lists), r.LeftOut, r.LeftOutAtMost, r.Lists[0])
		}
		if got := of.Answer([]byte(`{"top":1000}`)); got != nil {
			t.Errorf("a bad query is answered %s", got)
		}
		if got := of.Answer([]byte(`nonsense`)); got != nil {
			t.Errorf("nonsense is answered %s", got)
		}
	})
}

// Also of what is searched for, a node may have counted some without listing it. Lists in which
// nothing was found are left out.
func TestMergeOfASearchWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := open(t, Options{Node: "a"}), open(t, Options{Node: "b"})
		refuse(a, limitsOf[0], "ann")
		for range 3 {
			refuse(b, limitsOf[0], "ann")
		}
		for i := range 2 * maxOfList { // for which ann has to make room
			for range 5 {
				refuse(b, limitsOf[0], fmt.Sprint("other", i))
			}
			time.Sleep(10 * time.Millisecond)
		}
		search := func(text string) Report {
			q := Query{By: Refused, Search: text, Minutes: 10}
			var answers []Report
			for _, of := range []*Offenders{a, b} {
				var r Report
				if err := json.Unmarshal(of.Answer(asJSON(t, q)), &r); err != nil {
					t.Fatal(err)
				}
				answers = append(answers, r)
			}
			return Merge(q, answers...)
		}
		l := one(t, search("ann"), limitsOf[0].Name, Refused, 10)
		if len(l.Entries) != 1 || l.Entries[0].AtLeast > 4 || l.Entries[0].AtMost < 4 {
			t.Errorf("refused 4 times, and listed as %+v", l.Entries)
		}
		if r := search("nobody"); len(r.Lists) > 0 {
			t.Errorf("a search that finds nothing returns %+v", r.Lists)
		}
	})
}

// Where many rules have lists of others, what a search finds is among the first to have room in an answer.
func TestSearchAmongManyRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := open(t, Options{Node: "a"})
		for i, l := range limitsOf[:300] {
			if i%5 == 4 {
				time.Sleep(tickEvery)
				synctest.Wait()
			}
			for j := range 40 {
				for range 3 {
					refuse(of, l, fmt.Sprint("other", i, "-", j))
				}
			}
		}
		time.Sleep(tickEvery)
		synctest.Wait()
		for range 50 {
			admit(of, limitsOf[0], "ann", 90)
		}
		for _, by := range []By{"", Requests} {
			q := Query{Search: "ann", By: by}
			var r Report
			if err := json.Unmarshal(of.Answer(asJSON(t, q)), &r); err != nil {
				t.Fatal(err)
			}
			if l := one(t, Merge(q, r), limitsOf[0].Name, Requests, 1); len(l.Entries) != 1 {
				t.Errorf("by %q: %+v", by, l)
			}
		}
	})
}
