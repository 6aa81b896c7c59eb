package main

import (
	"fmt"
	"strings"
	"time"
)

// faultTables returns the outcomes of faults as Markdown.
func faultTables(results []result) string {
	var all []*outcome
	for _, r := range results {
		all = append(all, r.(*outcome))
	}
	var b strings.Builder
	b.WriteString("| fault | requests | slowest answer, ms | bar, ms | as clients see it, ms | 5xx |\n|---|---:|---:|---:|---:|---:|\n")
	for _, o := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", o.name,
			o.each(func(p *phase) string { return fmt.Sprint(p.sent()) }),
			o.each(func(p *phase) string { return tenths(p.inside.Slowest) }),
			o.each(func(p *phase) string { return tenths(deadline + grace + p.inside.Oversleep) }),
			o.each(func(p *phase) string { return tenths(time.Duration(p.slowest.Load())) }),
			o.each(func(p *phase) string { return fmt.Sprint(p.failures() + int64(p.inside.Errors)) }))
	}
	b.WriteString("\n| fault | 100/s admitted | of at most | 1000/hour | of at most | degraded nodes, after | well again after | goroutines | heap, MiB | resident, MiB |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, o := range all {
		_, most := o.hourBounds()
		found := "none"
		if o.affected > 0 {
			found = fmt.Sprintf("%d, %s", o.affected, ms(o.noticed))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s | %s | %d, %d | %s, %s | %s, %s |\n", o.name,
			o.each(func(p *phase) string { return fmt.Sprint(p.passed(hotPath)) }), o.highs(), o.hour(), most, found, seconds(o.recovery, o.affected),
			o.memory[0].Goroutines, o.memory[1].Goroutines, bare(o.memory[0].Heap), bare(o.memory[1].Heap), bare(o.memory[0].RSS), bare(o.memory[1].RSS))
	}
	return b.String()
}

// each returns a cell about before, during and after.
func (o *outcome) each(of func(*phase) string) string {
	return of(o.before) + ", " + of(o.during) + ", " + of(o.after)
}

// highs returns a cell with the most that the hot path may admit in each phase.
func (o *outcome) highs() string {
	var all []string
	for _, name := range phaseNames {
		_, high := o.hotBounds(name)
		all = append(all, fmt.Sprint(high))
	}
	return strings.Join(all, ", ")
}

// tenths is d in milliseconds, without the unit.
func tenths(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// seconds returns a cell with the time until all were well again, if any was not.
func seconds(d time.Duration, affected int) string {
	switch {
	case affected == 0:
		return "–"
	case d == never:
		return "never"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// bare is n bytes in MiB, without the unit.
func bare(n int64) string { return strings.TrimSuffix(mib(n), " MiB") }
