package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// section is a table of the page.
type section struct {
	mark   string // the name of its marks in the page
	trials []trial
	tables func([]result) string
}

// sections in the order they are run: what takes little time first.
func sections() []section {
	return []section{
		{mark: "versions", trials: versionTrials(), tables: lines(versionHead)},
		{mark: "distance", trials: distanceTrials(), tables: lines(distanceHead)},
		{mark: "programs", trials: programTrials(), tables: lines(programHead)},
		{mark: "upgrade", trials: upgradeTrials(), tables: lines(upgradeHead)},
		{mark: "slots", trials: slotTrials(), tables: lines(slotHead)},
		{mark: "chaos", trials: faultTrials(), tables: faultTables},
		{mark: "masters", trials: masterTrials(), tables: lines(masterHead)},
		{mark: "shards", trials: shardTrials(), tables: lines(shardHead)},
		{mark: "added", trials: addedTrials(), tables: lines(addedHead)},
		{mark: "subjects", trials: subjectTrials(), tables: lines(subjectHead)},
	}
}

// trial is a row: something that is done to a fleet, and what is expected of it.
type trial struct {
	name, what string
	play       func(context.Context) (result, error)
}

// result is what came of a trial.
type result interface {
	tell(io.Writer)   // for people
	misses() []string // the bounds that do not hold
	// disturbed reports that a process stood still for so long that the row says little.
	disturbed() bool
}

// attempted is what came of a trial, after so many tries.
type attempted struct {
	trial
	result
	tries int
}

// indulgence is what a busy machine is granted.
type indulgence struct {
	tries int           // of a row that missed a bound while a process stood still
	wait  time.Duration // for the machine to be quiet, before each try
}

// attempt plays a trial, and again if it was disturbed. What cannot be played is missed.
func (t trial) attempt(ctx context.Context, with indulgence, out io.Writer) attempted {
	for try := 1; ; try++ {
		awaitQuiet(ctx, with.wait)
		r, err := t.play(ctx)
		if err != nil {
			r = broken{err}
		}
		r.tell(out)
		for _, m := range r.misses() {
			fmt.Fprintf(out, "  MISSED %s\n", m)
		}
		if len(r.misses()) == 0 || !r.disturbed() || try >= with.tries || ctx.Err() != nil {
			return attempted{t, r, try}
		}
		fmt.Fprintln(out, "  once more: the machine stood still for longer than the deadline allows, or the row could not be played")
	}
}

// broken is the result of a trial that could not be run to its end.
type broken struct{ err error }

func (b broken) tell(io.Writer) {}
func (b broken) misses() []string {
	return []string{fmt.Sprintf("it could not be run to its end: %v", b.err)}
}
func (b broken) disturbed() bool { return true } // it says nothing at all

// page returns the section as Markdown.
func (s section) page(all []attempted, started time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s.\n\n", machine(), started.Format("2 January 2006"))
	var results []result
	for _, a := range all {
		if _, ok := a.result.(broken); !ok {
			results = append(results, a.result)
		}
	}
	b.WriteString(s.tables(results))
	for _, a := range all {
		if a.tries > 1 {
			fmt.Fprintf(&b, "\n%s was run %d times: before, a process stood still for longer than the deadline allows and a bound was missed, or it could not be run to its end.\n", a.name, a.tries)
		}
		for _, m := range a.misses() {
			fmt.Fprintf(&b, "\n**Missed**, %s: %s.\n", a.name, m)
		}
	}
	return b.String()
}

// finding is a result that is one line of a table.
type finding struct {
	cells  []string
	missed []string
	still  time.Duration // the longest that a process stood still
	bears  time.Duration // how long that may be; 0 means deadline
}

func (f *finding) tell(out io.Writer) {
	fmt.Fprintf(out, "  %s (oversleep %s)\n", strings.Join(f.cells, " | "), ms(f.still))
}
func (f *finding) misses() []string { return f.missed }
func (f *finding) disturbed() bool  { return f.still > cmp.Or(f.bears, deadline) }

func (f *finding) miss(format string, args ...any) {
	f.missed = append(f.missed, fmt.Sprintf(format, args...))
}

// cell adds a column.
func (f *finding) cell(format string, args ...any) {
	f.cells = append(f.cells, fmt.Sprintf(format, args...))
}

// lines makes a table of findings, with these heads of columns.
func lines(heads []string) func([]result) string {
	return func(all []result) string {
		var b strings.Builder
		fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(heads, " | "), strings.Repeat("---:|", len(heads)-1))
		for _, r := range all {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(r.(*finding).cells, " | "))
		}
		return b.String()
	}
}

func faultTrials() (all []trial) {
	for _, r := range rows {
		all = append(all, trial{r.name, r.what, func(ctx context.Context) (result, error) {
			o, err := r.run(ctx)
			if err != nil {
				return nil, err
			}
			return o, nil
		}})
	}
	return all
}
