package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
)

func lookAt(t *testing.T, d *desk) Overview {
	t.Helper()
	w := d.ask("GET", "/overview", "")
	var is Overview
	if err := json.Unmarshal(w.Body.Bytes(), &is); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return is
}

// Each request counts once; rules are ordered by the share that they refuse.
func TestOverview(t *testing.T) {
	from := time.Date(2026, 11, 17, 3, 0, 0, 0, time.UTC)
	counts := func(n uint32) []uint32 { return []uint32{n, 0, 0, 0, 0, 0, 0, n, 0, 0} }
	own := func() Series {
		return Series{Nodes: []string{"web-1"}, From: from, Step: 1, Lines: []Line{
			{AllRequests, "ok", counts(10)},
			{AllRequests, "denied", counts(1)},
			{AllRequests, "refused", counts(4)},
			{AllRequests, "soft", counts(2)},
			{"a", "ok", counts(9)},
			{"a", "refused", counts(1)},
			{"b", "ok", counts(1)},
			{"b", "refused", counts(3)},
			{"c", "shadow_refused", counts(7)},
			{"c", "ok", counts(8)},
			{"d", "ok", counts(0)},
			{rules.BanRule, "denied", counts(1)}, // is an order, and no rule
		}}
	}
	d := newDesk(t, few, func(o *Options) { o.Series = own })
	d.board.Answer(SeriesTopic, func(question []byte) []byte { return AnswerSeries(question, own()) })
	d.ask("POST", "/measures", `{"kind":"ban","as":{"ip":"192.0.2.1"},"for":"1h","reason":"a test"}`)
	is := lookAt(t, d)
	if is.Verdict.Level != "ok" || is.Verdict.Text != "All well" || !slices.Equal(is.Traffic.Admitted, []uint64{12, 12}) || !slices.Equal(is.Traffic.Refused, []uint64{5, 5}) || is.Traffic.Nodes != 1 || is.Traffic.Of != 1 || is.Traffic.Step != 5 {
		t.Errorf("%+v", is)
	}
	want := []RuleLoad{{"b", 2, 6, 0.75, 0}, {"a", 18, 2, 0.1, 0}, {"c", 16, 0, 0, 14}}
	if !slices.Equal(is.Busiest, want) || len(is.Measures) != 1 || !slices.Contains(is.Identities, "ip") {
		t.Errorf("%+v", is)
	}
	api := New(d.options)
	one := api.Moment(t.Context()).Rule("c")
	if one.Load != want[2] || !slices.Equal(one.WouldRefuse, []uint64{7, 7}) || !slices.Equal(one.Traffic.Admitted, []uint64{8, 8}) {
		t.Errorf("%+v", one)
	}
	if none := api.Moment(t.Context()).Rule("none"); none.Load.Rule != "none" || len(none.Traffic.Admitted) != 0 {
		t.Errorf("%+v", none)
	}
}

// The verdict is the worst, and the rest is not hidden.
func TestVerdict(t *testing.T) {
	since := time.Now().Add(-3*time.Minute - time.Second)
	circuit := func(status string) *Circuit { return &Circuit{Status: status, Since: since} }
	f := func(level, text string, more int, change func(*Options)) {
		t.Helper()
		is := lookAt(t, newDesk(t, few, change)).Verdict
		if is.Level != level || !strings.Contains(is.Text, text) || len(is.More) != more {
			t.Errorf("got %+v, want %s %q", is, level, text)
		}
	}
	fleet := func(status string, all ...*Circuit) func(*Options) {
		return func(o *Options) {
			o.Health = func() Health { return Health{Status: status, Since: since} }
			o.Fleet = func(context.Context) (is Fleet, err error) {
				for i, c := range all {
					is.Instances = append(is.Instances, Instance{ID: string(rune('a' + i)), Name: "web", Circuit: c})
				}
				return is, nil
			}
		}
	}
	f("ok", "All well", 0, nil)
	f("ok", "All well", 0, fleet("ok", circuit("ok"), circuit("ok")))
	f("bad", "Redis degraded for 3 min, deciding locally on 2 of 3 nodes", 0, fleet("degraded", circuit("degraded"), circuit("degraded"), circuit("ok")))
	f("bad", "Redis degraded for 3 min, deciding locally on 1 of 2 nodes", 0, fleet("ok", circuit("ok"), circuit("degraded")))
	sinceWhen := func(own string, ownFor time.Duration, others ...time.Duration) func(*Options) {
		return func(o *Options) {
			var all []*Circuit
			for _, d := range others {
				all = append(all, &Circuit{Status: "degraded", Since: time.Now().Add(-d)})
			}
			fleet(own, append(all, circuit("ok"))...)(o)
			o.Health = func() Health { return Health{Status: own, Since: time.Now().Add(-ownFor)} }
		}
	}
	const days = 24 * time.Hour
	f("bad", "Redis degraded for 1 min, deciding locally on 1 of 2 nodes", 0, sinceWhen("ok", 10*days, time.Minute))
	f("bad", "Redis degraded for 3 h, deciding locally on 2 of 3 nodes", 0, sinceWhen("ok", 10*days, time.Minute, 3*time.Hour))
	f("bad", "Redis degraded for 3 h, deciding locally on 1 of 2 nodes", 0, sinceWhen("ok", time.Minute, 3*time.Hour))
	f("bad", "Redis degraded for 2 h, deciding locally on 1 of 2 nodes", 0, sinceWhen("degraded", 2*time.Hour, time.Minute))
	f("bad", "deciding locally on this node; the others cannot be asked", 0, func(o *Options) {
		fleet("degraded")(o)
		o.Fleet = func(context.Context) (Fleet, error) { return Fleet{}, errors.New("no answer") }
	})
	f("warn", "There are no rules", 0, func(o *Options) { o.Rules = nil })
	f("warn", "The memory of counters is full", 0, func(o *Options) { o.Health = func() Health { return Health{Status: "full"} } })
	f("bad", "Requests should go elsewhere: all upstreams fail their probes", 1, func(o *Options) {
		o.Ready = []func() error{func() error { return errors.New("all upstreams fail their probes") }}
		o.Warnings = func() []string { return []string{"the control plane is away"} }
	})
}

// Series of several instances are added up by their time, whatever their clocks differ by.
func TestMergeSeries(t *testing.T) {
	at := func(s float64) time.Time { return time.UnixMilli(1_800_000_000_000 + int64(1000*s)) }
	a := Series{Nodes: []string{"a"}, From: at(0.3), Step: 1, Lines: []Line{{"r", "ok", []uint32{1, 2, 3}}}}
	b := Series{Nodes: []string{"b"}, From: at(2.1), Step: 1, Lines: []Line{{"r", "ok", []uint32{10, 20}}, {"r", "refused", []uint32{5, 1<<32 - 1}}}, LeftOut: 2}
	m := MergeSeries(1, b, a, Series{Nodes: []string{"c"}, From: at(-900)})
	if !m.From.Equal(at(0)) || !slices.Equal(m.Nodes, []string{"a", "b", "c"}) || m.LeftOut != 2 || len(m.Lines) != 2 ||
		!slices.Equal(m.Lines[0].Counts, []uint32{1, 2, 13, 20}) || !slices.Equal(m.Lines[1].Counts, []uint32{0, 0, 5, 1<<32 - 1}) {
		t.Errorf("%+v", m)
	}
	far := a
	far.From = at(-1e6)
	if m := MergeSeries(1, a, far); m.length() > 3600 || m.Lines[0].Counts[m.length()-1] != 3 {
		t.Errorf("a clock that is far off: %d steps", m.length())
	}
}

// An instance whose clock is off is shown with the others, and hides nobody.
func TestSeriesOfAnotherClock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	series := func(from time.Time, each uint32) Series {
		return Series{From: from, Step: 1, Lines: []Line{{"api", "ok", slices.Repeat([]uint32{each}, 20)}}}
	}
	own := series(now, 1)
	for _, off := range []time.Duration{0, 5 * time.Second, 30 * time.Second, -30 * time.Second, time.Hour, -48 * time.Hour, 1000 * 24 * time.Hour} {
		for _, step := range []int{1, 5} {
			question := fmt.Appendf(nil, `{"step":%d}`, step)
			d := newDesk(t, few, func(o *Options) {
				o.Series = func() Series { return own }
				o.Board = fleetBoard{answers: map[board.Node][]byte{
					{ID: "a", Name: "web-1"}: AnswerSeries(question, own), {ID: "b", Name: "web-2"}: AnswerSeries(question, series(now.Add(off), 100)),
				}}
			})
			w := d.ask("GET", fmt.Sprintf("/series?step=%d", step), "")
			var got Series
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Lines) != 1 {
				t.Fatalf("%v: %d %s", err, w.Code, w.Body)
			}
			counts := got.Lines[0].Counts
			if n := sumOf(counts); n != 20*101 || len(counts) > 25 || got.From.Sub(now).Abs() > 10*time.Second {
				t.Errorf("a clock that is %v ahead, in steps of %d: %d decisions from %v on: %v", off, step, n, got.From, counts)
			}
		}
	}
}

// What does not fit an answer is left out, the least first, and what is sent is read as it was.
func TestSeriesAnswer(t *testing.T) {
	testdep.SkipUnderRace(t)
	own := Series{Nodes: []string{"a"}, From: time.Unix(1_800_000_000, 0).UTC(), Step: 1}
	seed := uint32(1)
	for i := range 256 {
		l := Line{Rule: strings.Repeat("r", i%100) + string(rune('a'+i%26)), Outcome: "ok", Counts: make([]uint32, 900)}
		for j := range l.Counts {
			seed = seed*1664525 + 1013904223
			l.Counts[j] = seed >> (8 + uint(i%16))
		}
		own.Lines = append(own.Lines, l)
	}
	packed := AnswerSeries([]byte(`{"step":1}`), own)
	is, ok := unpackSeries(packed, 1)
	if !ok || len(packed) > 64<<10 || is.LeftOut == 0 || len(is.Lines)+is.LeftOut != 256 || len(is.Lines) < 10 {
		t.Errorf("%v: %d bytes, %d lines, %d left out", ok, len(packed), len(is.Lines), is.LeftOut)
	}
	for _, bad := range [][]byte{nil, []byte("x"), packed[:100], AnswerSeries([]byte(`{"step":5}`), own)} {
		if _, ok := unpackSeries(bad, 1); ok {
			t.Errorf("%.20q was read", bad)
		}
	}
	// A step of any length would be as much memory, and anybody with write access to the store could ask for it.
	for _, question := range []string{"x", "{}", `{"step":0}`, `{"step":-1}`, `{"step":2}`, `{"step":6}`, `{"step":900}`, `{"step":2000000000}`} {
		if AnswerSeries([]byte(question), own) != nil {
			t.Fatalf("%s was answered", question)
		}
	}
}

// What an instance has decided in the first seconds of its life is in the steps of all, whenever it began; of
// one that remembers no more, the first step is left out if it is not whole.
func TestSeriesBegin(t *testing.T) {
	for at := range int64(5) {
		from := time.Unix(1_800_000_000+at, 0).UTC()
		young := Series{From: from, Step: 1, Lines: []Line{{Rule: "api", Outcome: "ok", Counts: make([]uint32, 12)}}}
		for i := range young.Lines[0].Counts {
			young.Lines[0].Counts[i] = 1
		}
		got := young.about(SeriesQuery{Step: 5})
		if first := got.Lines[0].Counts[0]; !got.From.Equal(time.Unix(1_800_000_000, 0)) || first != uint32(5-at) || got.Lines[0].Counts[1] != 5 || got.length() != int(12+at)/5 {
			t.Errorf("begun %d s after a step: %+v", at, got)
		}
		old := Series{From: from, Step: 1, Lines: []Line{{Rule: "api", Outcome: "ok", Counts: make([]uint32, keptSteps)}}}
		old.Lines[0].Counts[0] = 7
		got = old.about(SeriesQuery{Step: 5})
		begin := time.Unix(1_800_000_000, 0)
		if at > 0 {
			begin = begin.Add(5 * time.Second)
		}
		if !got.From.Equal(begin) || got.length() != int(keptSteps-(5-at)%5)/5 || (got.Lines[0].Counts[0] == 7) != (at == 0) {
			t.Errorf("full, begun %d s after a step: from %v, %d steps", at, got.From, got.length())
		}
	}
}
