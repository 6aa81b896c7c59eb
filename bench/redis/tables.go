package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
)

// tables are those of the races that were run.
func (f *figures) tables(heat time.Duration) []report.Table {
	var all []report.Table
	if len(f.keys) > 0 {
		all = append(all, f.keysTable(heat))
	}
	if len(f.hot) > 0 {
		all = append(all, f.hotTable())
	}
	if len(f.attack) > 0 {
		all = append(all, f.attackTable())
	}
	if len(f.truth) > 0 {
		all = append(all, f.truthTable())
	}
	if len(f.scripts) > 0 {
		all = append(all, f.scriptTable())
	}
	if len(f.multi) > 0 {
		all = append(all, f.multiTable())
	}
	if len(f.cluster) > 0 {
		all = append(all, f.clusterTable())
	}
	return all
}

func (f *figures) clusterTable() report.Table {
	t := report.Table{
		Title: fmt.Sprintf("token_bucket, %s keys, all within the limit, on three masters of a Redis Cluster", report.Thousands(users)),
		Note:  fmt.Sprintf("%d callers. CPU is that of all masters; its ratio is that of the row by that of one Redis.", clusterCallers),
		Head:  []string{"", "decisions/s", "Redis CPU µs/decision", "by one Redis'", "own CPU µs", "decisions per call", "p50 ms", "p99 ms", "failed"},
	}
	for _, e := range f.cluster {
		t.Add(e.name, e.rateText(), e.microsText(), ratio(e.against(f.cluster[clusterOne], (*tally).micros)), e.ownText(),
			fmt.Sprintf("%.1f", e.figure((*tally).perCall)), e.p50Text(), e.p99Text(), report.Thousands(e.total.failed))
	}
	return t
}

func (f *figures) keysTable(heat time.Duration) report.Table {
	t := report.Table{
		Title: fmt.Sprintf("token_bucket, %s keys, all within the limit", report.Thousands(users)),
		Note: fmt.Sprintf("Closed loops, medians of %d rounds of %s; load generator and Redis share the cores. Ratios are Tidegate's decisions/s by those of the row.",
			len(f.keys[0][0].heats), heat),
		Head: []string{"", "callers", "decisions/s", "Tidegate is", "Redis CPU µs/decision", "own CPU µs", "p50 ms", "p99 ms", "failed"},
	}
	for i, es := range f.keys {
		for _, e := range es {
			t.Add(e.name, fmt.Sprint(callersByKeys[i]), e.rateText(), ratio(es[byKeysTidegate].against(e, (*tally).rate)), e.microsText(), e.ownText(), e.p50Text(), e.p99Text(), report.Thousands(e.total.failed))
		}
	}
	return t
}

func (f *figures) hotTable() report.Table {
	t := report.Table{
		Title: "token_bucket, one hot key, all within the limit",
		Note:  fmt.Sprintf("%d callers.", hotCallers),
		Head:  []string{"", "decisions/s", "Tidegate is", "Redis CPU µs/decision", "own CPU µs", "decisions per call", "p50 ms", "p99 ms", "failed"},
	}
	for _, e := range f.hot {
		t.Add(e.name, e.rateText(), ratio(f.hot[hotTidegate].against(e, (*tally).rate)), e.microsText(), e.ownText(), fmt.Sprintf("%.1f", e.figure((*tally).perCall)), e.p50Text(), e.p99Text(), report.Thousands(e.total.failed))
	}
	return t
}

func (f *figures) attackTable() report.Table {
	t := report.Table{
		Title: fmt.Sprintf("token_bucket, nine in ten requests are those of %s keys over their limit", report.Thousands(attackers)),
		Note: fmt.Sprintf("%d callers; those over their limit have %d a minute, the others plenty. The first two share calls.",
			hotCallers, scarce.events),
		Head: []string{"", "decisions/s", "Tidegate is", "Redis CPU µs/decision", "own CPU µs", "decisions per call", "attackers admitted", "due at most", "p99 ms", "failed"},
	}
	for _, e := range f.attack {
		t.Add(e.name, e.rateText(), ratio(f.attack[attackWith].against(e, (*tally).rate)), e.microsText(), e.ownText(), fmt.Sprintf("%.1f", e.figure((*tally).perCall)),
			report.Thousands(e.total.admitted), report.Thousands(scarce.due(attackers, e.span)), e.p99Text(), report.Thousands(e.total.failed))
	}
	return t
}

func (f *figures) truthTable() report.Table {
	t := report.Table{
		Title: "What is admitted when everybody asks for more",
		Note:  fmt.Sprintf("64 callers, %d keys of %d a second each.", steadyUsers, steady.events),
		Head:  []string{"", "decisions", "admitted", "share of what the limit allows", "failed"},
	}
	for i := range f.truth {
		e := &f.truth[i]
		t.Add(e.name, report.Thousands(e.decisions), report.Thousands(e.admitted), fmt.Sprintf("%.3f", e.used()), report.Thousands(e.failed))
	}
	return t
}

func (e *entrant) rateText() string   { return report.Thousands(int64(e.figure((*tally).rate))) }
func (e *entrant) microsText() string { return fmt.Sprintf("%.2f", e.figure((*tally).micros)) }
func (e *entrant) ownText() string    { return fmt.Sprintf("%.2f", e.figure((*tally).ownMicros)) }
func (e *entrant) p50Text() string {
	return millis(e.figure(func(t *tally) float64 { return float64(t.p50) }))
}

func (e *entrant) p99Text() string {
	return millis(e.figure(func(t *tally) float64 { return float64(t.p99) }))
}

func millis(nanos float64) string { return fmt.Sprintf("%.2f", nanos/1e6) }

func ratio(r float64) string { return fmt.Sprintf("%.2fx", r) }
