package series

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)

// totals are what a Recorder reads.
type totals map[key]uint64

func (t totals) read() (all []Total) {
	for k, n := range t {
		all = append(all, Total{k.rule, k.outcome, n})
	}
	return all
}

func sum(l Line) (n int) {
	for _, c := range l.Counts {
		n += int(c)
	}
	return n
}

// Every event is in the step in which it was counted, for ten minutes, and then in none.
func TestStepsAgainstAList(t *testing.T) {
	counted := totals{{"api", "ok"}: 1000} // before the start
	r := New(counted.read)
	var want []uint32
	now := start
	for i := range 1500 {
		now = now.Add(Step)
		n := uint64(i % 7 * (i % 3))
		counted[key{"api", "ok"}] += n
		want = append(want, uint32(n))
		r.Record(now)
		from, lines := r.Lines()
		if len(lines) == 0 {
			continue
		}
		kept := want[max(0, len(want)-Steps):]
		if got := lines[0].Counts; fmt.Sprint(got) != fmt.Sprint(kept) {
			t.Fatalf("step %d: got %v, want %v", i, got, kept)
		}
		if w := now.Add(-time.Duration(len(kept)) * Step); !from.Equal(w) {
			t.Fatalf("step %d: from %v, want %v", i, from, w)
		}
	}
	for range Steps + 60 { // silence
		now = now.Add(Step)
		r.Record(now)
	}
	if _, lines := r.Lines(); len(lines) != 0 {
		t.Errorf("after ten silent minutes there is %+v", lines)
	}
}

// A process that stood still has empty steps, and what was counted meanwhile is in the last.
func TestMissedSteps(t *testing.T) {
	counted := totals{}
	r := New(counted.read)
	counted[key{"api", "ok"}] = 5
	r.Record(start)
	counted[key{"api", "ok"}] = 12
	r.Record(start.Add(3*Step + Step/10))
	_, lines := r.Lines()
	if got := fmt.Sprint(lines[0].Counts); got != "[5 0 0 7]" {
		t.Errorf("got %s", got)
	}
	r.Record(start.Add(24 * time.Hour))
	if _, lines := r.Lines(); len(lines) != 0 && sum(lines[0]) != 0 {
		t.Errorf("a day later there is %+v", lines)
	}
}

// A rule that was away begins again from 0.
func TestRuleThatComesBack(t *testing.T) {
	counted := totals{{"api", "ok"}: 9}
	r := New(counted.read)
	counted[key{"api", "ok"}] = 4
	r.Record(start)
	if _, lines := r.Lines(); sum(lines[0]) != 4 {
		t.Errorf("got %+v", lines)
	}
}

// However many rules there are, memory is bounded and nothing is lost.
func TestManyRules(t *testing.T) {
	counted := totals{}
	r := New(counted.read)
	for i := range 5000 {
		counted[key{fmt.Sprint("rule", i), "ok"}]++
		counted[key{fmt.Sprint("rule", i), "refused"}] += 2
	}
	r.Record(start)
	_, lines := r.Lines()
	total := 0
	for _, l := range lines {
		total += sum(l)
	}
	if len(lines) > maxLines+2 || total != 15000 {
		t.Errorf("%d lines with %d events", len(lines), total)
	}
}
