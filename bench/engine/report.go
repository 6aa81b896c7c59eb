package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
)

// report is everything one run found.
type report struct {
	machine machine
	date    time.Time
	took    time.Duration
	tables  []table
	summary summary
}

// table is one comparison; cells are text, the first column names the row.
type table struct {
	title, note string
	head        []string
	rows        [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// addRace is a table of entrants, the first of which the others are held to.
func (r *report) addRace(title, note string, es []*entrant) {
	t := table{title: title, note: note, head: []string{"contestant", "ns/op", "allocs/op", "against " + es[0].Name}}
	for _, e := range es {
		name := e.Name
		if e.MaxEvents > 0 && e.quota.Events == e.MaxEvents {
			name += fmt.Sprintf(" (%s events)", thousands(e.MaxEvents))
		}
		t.add(name, fmt.Sprintf("%.0f", median(e.nanos)), fmt.Sprintf("%.2f", median(e.allocs)), fmt.Sprintf("%.1fx", e.faster(es[0])))
	}
	r.tables = append(r.tables, t)
}

func (r *report) writeText(out io.Writer) {
	fmt.Fprintf(out, "%s\n", r.machine)
	for _, t := range r.tables {
		fmt.Fprintf(out, "\n%s\n", t.title)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.head}, t.rows...) {
			fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
		}
		_ = w.Flush()
	}
	fmt.Fprintf(out, "\n%s in all\n", r.took.Round(time.Second))
}

func (r *report) writeMarkdownFile(name string) error {
	var b strings.Builder
	r.writeMarkdown(&b)
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

func (r *report) writeMarkdown(out io.Writer) {
	fmt.Fprintf(out, "%s, %s.\n\n```\n%s\n```\n", r.machine, r.date.Format("2 January 2006"), r.summary)
	fmt.Fprint(out, "\nRivals, from their released modules:\n\n")
	for _, c := range contestant.Rivals() {
		fmt.Fprintf(out, "- %s: %s\n", c.Name, c.Version)
	}
	for _, t := range r.tables {
		fmt.Fprintf(out, "\n### %s\n\n%s\n\n", t.title, t.note)
		fmt.Fprintf(out, "| %s |\n|---|%s\n", strings.Join(t.head, " | "), strings.Repeat("---:|", len(t.head)-1))
		for _, row := range t.rows {
			fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		}
	}
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
