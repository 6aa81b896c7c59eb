package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

// summary is the last line: what is promised of the doors.
type summary struct {
	resp   [3]float64 // times the INCR of redis-server, at the depths of a pipeline
	resp32 float64    // decisions/s in millions with a pipeline of 32
	http   float64    // POST /v1/check, times nginx that answers by itself
}

// depths are those that are compared with redis-server; millionDepth is looked at by itself.
var depths = [3]int{1, 16, 64}

const millionDepth = 32

func (es entrants) summary() summary {
	var s summary
	for _, e := range es {
		switch {
		case e.name == checkName:
			s.http = e.against()
		case e.race != "resp" || e.rival == nil:
		case e.depth == millionDepth:
			s.resp32 = report.Median(e.rates) / 1e6
		default:
			for i, depth := range depths {
				if e.depth == depth {
					s.resp[i] = e.against()
				}
			}
		}
	}
	return s
}

func (s summary) String() string {
	return fmt.Sprintf("bench-doors: resp %.1f/%.1f/%.1fx resp32 %.1fM http %.2fx", s.resp[0], s.resp[1], s.resp[2], s.resp32, s.http)
}

const (
	leastResp32 = 1.0 // million
	leastHTTP   = 0.38
)

var leastResp = [3]float64{0.85, 1.05, 1.6}

func (s summary) missed() []string {
	var bars []rig.Bar
	for i, depth := range depths {
		bars = append(bars, rig.Bar{Name: fmt.Sprintf("resp with a pipeline of %d", depth), Got: s.resp[i], Want: leastResp[i], Unit: "x"})
	}
	return rig.Missed(append(bars,
		rig.Bar{Name: "resp32", Got: s.resp32, Want: leastResp32, Unit: "M"},
		rig.Bar{Name: "http", Got: s.http, Want: leastHTTP, Unit: "x"})...)
}

func (es entrants) tables(heat time.Duration) []report.Table {
	head := []string{"", "answers/s", "against its rival", "CPU µs/answer", "p99 ms", "wrong answers"}
	resp := report.Table{
		Title: "CL.THROTTLE beside INCR",
		Note: fmt.Sprintf("%d connections from one thread, %d keys drawn at random, medians of %d rounds of %s; load generator and server share the cores. "+
			"The p99 is that of a whole batch.", connections, keys, len(es[0].rates), heat),
		Head: head,
	}
	http := report.Table{
		Title: "The HTTP check beside nginx",
		Note: fmt.Sprintf("wrk with %d kept connections and %d threads, medians of %d rounds of %s. The bar is for POST /v1/check; "+
			"forward-auth is what a proxy asks before it passes a request on.", wrk.Connections, wrk.Threads, len(es[0].rates), heat),
		Head: head,
	}
	for _, e := range es {
		t := &resp
		if e.race == "http" {
			t = &http
		}
		ratio := ""
		if e.rival != nil {
			ratio = fmt.Sprintf("%.2fx", e.against())
		}
		t.Add(e.name, report.Thousands(int64(report.Median(e.rates))), ratio,
			fmt.Sprintf("%.2f", report.Median(e.micros)), fmt.Sprintf("%.2f", report.Median(e.p99)), report.Thousands(e.bad))
	}
	return []report.Table{resp, http}
}
