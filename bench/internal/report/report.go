// Package report formats the results of a rig: tables of text, printed for people
// or written as Markdown, with the machine and the date, without which figures are
// worth nothing. Start with [New].
package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is everything one run found.
type Report struct {
	machine string
	date    time.Time
	took    time.Duration

	Notes    []string // what the figures depend on: versions of rivals, the neighbours
	Tables   []Table
	LastLine string // what scripts read
}

// Table is one comparison; cells are text, the first column names the row.
type Table struct {
	Title, Note string
	Head        []string
	rows        [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// New returns the report of a run that started at start and is over.
func New(start time.Time) *Report {
	return &Report{machine: thisMachine(), date: start, took: time.Since(start)}
}

// WriteText is for people at a terminal. The last line is not in it: what is said
// about it comes before it.
func (r *Report) WriteText(out io.Writer) {
	fmt.Fprintln(out, r.machine)
	for _, note := range r.Notes {
		fmt.Fprintf(out, "  %s\n", note)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(out, "\n%s\n", t.Title)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.Head}, t.rows...) {
			fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
		}
		_ = w.Flush()
	}
	fmt.Fprintf(out, "\n%s in all\n", r.took.Round(time.Second))
}

// Write is WriteText, and also WriteMarkdownFile if a file is given.
func (r *Report) Write(out io.Writer, markdown string) error {
	r.WriteText(out)
	if markdown == "" {
		return nil
	}
	return r.WriteMarkdownFile(markdown)
}

// WriteMarkdownFile is for the pages.
func (r *Report) WriteMarkdownFile(name string) error {
	var b strings.Builder
	r.writeMarkdown(&b)
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

func (r *Report) writeMarkdown(out io.Writer) {
	fmt.Fprintf(out, "%s, %s.\n\n```\n%s\n```\n", r.machine, r.date.Format("2 January 2006"), r.LastLine)
	if len(r.Notes) > 0 {
		fmt.Fprintf(out, "\n- %s\n", strings.Join(r.Notes, "\n- "))
	}
	for _, t := range r.Tables {
		fmt.Fprintf(out, "\n### %s\n\n%s\n\n", t.Title, t.Note)
		fmt.Fprintf(out, "| %s |\n|---|%s\n", strings.Join(t.Head, " | "), strings.Repeat("---:|", len(t.Head)-1))
		for _, row := range t.rows {
			fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		}
	}
}
