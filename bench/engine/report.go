package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/report"
)

// findings are everything one run found.
type findings struct {
	tables  []report.Table
	summary summary
}

// addRace is a table of entrants, the first of which the others are held to.
func (f *findings) addRace(title, note string, es []*entrant) {
	t := report.Table{Title: title, Note: note, Head: []string{"contestant", "ns/op", "allocs/op", "against " + es[0].Name}}
	for _, e := range es {
		name := e.Name
		if e.MaxEvents > 0 && e.quota.Events == e.MaxEvents {
			name += fmt.Sprintf(" (%s events)", report.Thousands(e.MaxEvents))
		}
		t.Add(name, fmt.Sprintf("%.0f", report.Median(e.nanos)), fmt.Sprintf("%.2f", report.Median(e.allocs)), fmt.Sprintf("%.1fx", e.faster(es[0])))
	}
	f.tables = append(f.tables, t)
}

// report is them with the machine, the day and the versions of the rivals.
func (f *findings) report(start time.Time) *report.Report {
	r := report.New(start)
	for _, c := range contestant.Rivals() {
		r.Notes = append(r.Notes, c.Name+": "+c.Version)
	}
	r.Tables, r.LastLine = f.tables, f.summary.String()
	return r
}
