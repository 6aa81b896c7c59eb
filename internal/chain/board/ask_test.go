package board

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// show is answers by name, and who is missing.
func show(answers map[Node][]byte, missing []Absent) string {
	var all []string
	for n, answer := range answers {
		all = append(all, fmt.Sprintf("%s=%.10s", n, answer))
	}
	slices.Sort(all)
	for _, m := range missing {
		all = append(all, fmt.Sprintf("-%s (%s)", m.Node, m.Why))
	}
	return strings.Join(all, " ")
}

// A question reaches everybody who follows, and the answer says who has not answered.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 4, false)
		time.Sleep(time.Second)
		for i, b := range w.all[:3] {
			b.Answer("sum", func(q []byte) []byte { return fmt.Append(nil, string(q), i) })
		}
		w.all[2].Answer("sum", func([]byte) []byte { return make([]byte, MaxAnswerBody+1) })
		start := time.Now()
		answers, missing, err := w.all[0].Ask(t.Context(), "sum", []byte("q"))
		if got, want := show(answers, missing), "node0=q0 node1=q1 -node2 (its answer is too long) -node3 (it does not know this question)"; err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		w.wires[1].set(true, false)
		start = time.Now()
		answers, missing, err = w.all[0].Ask(t.Context(), "sum", nil)
		if got := show(answers, missing); err != nil || !strings.Contains(got, "node0=0") || !strings.Contains(got, "-node1 (it did not answer in time)") {
			t.Errorf("%s, %v", got, err)
		}
		if took := time.Since(start); took < AskTimeout || took > AskTimeout+time.Millisecond {
			t.Errorf("it took %s", took)
		}
		w.wires[0].set(true, false)
		answers, missing, err = w.all[0].Ask(t.Context(), "sum", nil)
		if got := slices.Collect(maps.Keys(answers)); err == nil || len(got) != 1 || len(missing) != 3 {
			t.Errorf("with the table away: %s, %v", show(answers, missing), err)
		}
		if _, _, err := w.all[0].Ask(t.Context(), "sum", make([]byte, MaxQuestionBody)); !errors.Is(err, ErrLongQuestion) {
			t.Errorf("a long question: %v", err)
		}
	})
}

// Without a table the only answer is the own one.
func TestAskAlone(t *testing.T) {
	b, err := Open(Options{Self: node(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.Answer("x", func(q []byte) []byte { return q })
	answers, missing, err := b.Ask(t.Context(), "x", []byte("y"))
	if got := show(answers, missing); err != nil || got != "node0=y" {
		t.Errorf("%s, %v", got, err)
	}
}

// Lines of all instances are in the journal, each once, also those of an outage.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTeam(t, 2, false)
		w.want("at first", "")
		log := func(i int, line string) {
			t.Helper()
			if err := w.all[i].Log(line); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		log(0, "a")
		log(1, "b")
		w.wires[0].set(false, true) // what is written again was written already
		log(0, "c")
		lines, err := w.all[0].Logged(context.Background(), 10)
		if err == nil && strings.Join(lines, " ") != "c" {
			t.Errorf("of an instance that is cut off: %q, %v", lines, err)
		}
		w.wires[0].set(false, false)
		time.Sleep(time.Second)
		for i, b := range w.all {
			if lines, err := b.Logged(t.Context(), 10); err != nil || strings.Join(lines, " ") != "a b c" {
				t.Errorf("instance %d: %q, %v", i, lines, err)
			}
			if lines, err := b.Logged(t.Context(), 2); err != nil || strings.Join(lines, " ") != "b c" {
				t.Errorf("instance %d: %q, %v", i, lines, err)
			}
		}
		for _, bad := range []string{"a\nb", strings.Repeat("x", MaxLine+1)} {
			if w.all[0].Log(bad) == nil {
				t.Errorf("%.5q was taken", bad)
			}
		}
	})
	alone, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	for i := range 2 * maxUnwritten {
		if err := alone.Log(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if lines, err := alone.Logged(t.Context(), 10_000); err != nil || len(lines) != maxUnwritten || lines[0] != fmt.Sprint(maxUnwritten) {
		t.Errorf("alone: %d lines from %.10q, %v", len(lines), lines, err)
	}
}
