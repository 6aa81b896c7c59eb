package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// settle is how long after the last fault everything is as before.
const settle = 3 * time.Second

// Report is what came of a Scenario.
type Report struct {
	Scenario   Scenario
	Decisions  int64
	Took       time.Duration // of real time
	Rows       []Row
	Violations []string
}

// Row is what came of a Subject.
type Row struct {
	Name                              string
	Offered, Admitted, Local, Refused int64
	Limit                             float64       // how many requests the limit admits in the run
	Rate                              float64       // how many it admits in a second, in the long run
	Worst                             time.Duration // how long the slowest answer took
	Points                            []Point
}

// Point is what happened in a bin of time.
type Point struct{ Offered, Admitted, Local, Refused int64 }

// Columns are the heads of a table of Rows.
var Columns = []string{"limit", "offered", "admitted", "the limit admits", "by nodes alone", "refused", "slowest answer"}

// Cells returns the cells of r in a table with Columns.
func (r *Row) Cells() []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{
		r.Name, n(r.Offered), fmt.Sprintf("%d (%.1f %%)", r.Admitted, 100*float64(r.Admitted)/r.Limit), fmt.Sprintf("%.0f", r.Limit),
		n(r.Local), n(r.Refused), r.Worst.Round(10 * time.Microsecond).String(),
	}
}

// Describe returns a description of s in one line.
func (s *Scenario) Describe() string {
	text := fmt.Sprintf("%d nodes for %s, %s load, Redis %s away", s.Nodes, s.Lasts, s.Shape, s.Network.Latency)
	if s.Network.Jitter > 0 {
		text += fmt.Sprintf(" + up to %s", s.Network.Jitter)
	}
	if s.Network.Loss > 0 {
		text += fmt.Sprintf(", %.3g %% of messages lost", 100*s.Network.Loss)
	}
	if s.Server.PerCall > 0 {
		text += fmt.Sprintf(", %s a call", s.Server.PerCall)
	}
	if s.Rollout != (Span{}) {
		text += fmt.Sprintf(", rollout from %s to %s", s.Rollout.From, s.Rollout.To)
	}
	for _, f := range s.Faults {
		text += ", " + f.String()
	}
	text += s.Regions.describe()
	for i := range s.Subjects {
		sub := &s.Subjects[i]
		text += fmt.Sprintf("; %s: %s", sub.Name, sub.Versions[0])
		for _, v := range sub.Versions[1:] {
			text += fmt.Sprintf(" and %s", v)
		}
		text += fmt.Sprintf(" for %d keys", max(sub.Keys, 1))
	}
	return text + fmt.Sprintf("; seed %d", s.Seed)
}

// maxViolations is how many violations of a run are listed; one more line counts the rest.
const maxViolations = 5

func (r *run) report() *Report {
	p := &Report{Scenario: *r.s, Decisions: r.decided.Load()}
	for _, l := range r.loads {
		p.Rows = append(p.Rows, l.row())
		p.Violations = append(p.Violations, l.check()...)
	}
	if r.backlog > 0 && !slices.ContainsFunc(r.s.Faults, func(f Fault) bool { return f.Kind == Crash }) {
		p.Violations = append(p.Violations, fmt.Sprintf("%d counters still have a backlog %s after the last fault", r.backlog, settle))
	}
	if n := len(p.Violations); n > maxViolations {
		p.Violations = append(p.Violations[:maxViolations:maxViolations], fmt.Sprintf("and %d more", n-maxViolations))
	}
	return p
}

func (l *load) row() Row {
	row := Row{Name: l.Name, Worst: l.worst, Points: l.points[:]}
	for _, p := range l.points {
		row.Offered += p.Offered
		row.Admitted += p.Admitted
		row.Local += p.Local
		row.Refused += p.Refused
	}
	for _, v := range l.Versions {
		row.Limit = max(row.Limit, l.admits(v, l.run.s.Lasts))
		row.Rate = max(row.Rate, l.admits(v, l.run.s.Lasts+time.Second)-l.admits(v, l.run.s.Lasts))
	}
	return row
}
