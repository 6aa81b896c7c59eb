package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// measureOf is one number of each contestant under each shape.
type measureOf struct {
	title string
	about string
	cell  func(r *result, i int) string
}

var measures = []measureOf{
	{
		"Most admitted in any window", "In limits: 1.00 is 100 requests within 60 s.",
		func(r *result, i int) string { return fmt.Sprintf("%.2f", r.most(i)) },
	},
	{
		"Admitted when it should have been refused", "In % of all requests.",
		func(r *result, i int) string { return percent(r.scores[i].wrongAllow, r.requests) },
	},
	{
		"Refused when it should have been admitted", "In % of all requests.",
		func(r *result, i int) string { return percent(r.scores[i].wrongDeny, r.requests) },
	},
	{
		"Clearly wrong", "Of these, off by more than 5 % of the limit: admitted on top of 105 or more, or refused with fewer than 95. In % of all requests, admitted + refused.",
		func(r *result, i int) string {
			allow, deny := r.scores[i].farAllow, r.scores[i].farDeny
			if allow+deny == 0 {
				return "0"
			}
			return percent(allow, r.requests) + " + " + percent(deny, r.requests)
		},
	},
	{
		"Admitted in all", "Relative to an exact log: 1.000 is as many.",
		func(r *result, i int) string { return fmt.Sprintf("%.3f", r.relative(i)) },
	},
}

func (r *result) most(i int) float64     { return share(r.scores[i].most, events) }
func (r *result) relative(i int) float64 { return share(r.scores[i].admitted, r.exact) }

// percent keeps "never" apart from "hardly ever".
func percent(n, of int64) string {
	switch p := 100 * share(n, of); {
	case n == 0:
		return "0"
	case p < 0.001:
		return "<0.001"
	case p < 1:
		return fmt.Sprintf("%.3f", p)
	case p < 10:
		return fmt.Sprintf("%.2f", p)
	default:
		return fmt.Sprintf("%.1f", p)
	}
}

// percentShort is percent where room is scarce.
func percentShort(n, of int64) string {
	switch p := 100 * share(n, of); {
	case p < 0.1:
		return "<0.1"
	case p < 10:
		return fmt.Sprintf("%.1f", p)
	default:
		return fmt.Sprintf("%.0f", p)
	}
}

// report returns the tables, in markdown that is aligned to be read as it is.
func report(cs []contestant, results []result) string {
	var b strings.Builder
	rows := [][]string{{"traffic", "what it is", "requests", "refused by an exact log"}}
	for _, r := range results {
		rows = append(rows, []string{r.shape.name, r.shape.about, fmt.Sprint(r.requests), percent(r.requests-r.exact, r.requests) + " %"})
	}
	writeTable(&b, rows, 2)
	for _, m := range measures {
		fmt.Fprintf(&b, "\n**%s.** %s\n\n", m.title, m.about)
		head := []string{"traffic"}
		for _, c := range cs {
			head = append(head, c.short)
		}
		rows := [][]string{head}
		for i := range results {
			row := []string{results[i].shape.name}
			for j := range cs {
				row = append(row, m.cell(&results[i], j))
			}
			rows = append(rows, row)
		}
		writeTable(&b, rows, 1)
	}
	return b.String()
}

// writeTable aligns the first left columns to the left, the others to the right.
func writeTable(b *strings.Builder, rows [][]string, left int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < left {
				fmt.Fprintf(b, "| %s%s ", cell, pad)
			} else {
				fmt.Fprintf(b, "| %s%s ", pad, cell)
			}
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, width := range widths {
			if i < left {
				fmt.Fprintf(b, "|:%s", strings.Repeat("-", width+1))
			} else {
				fmt.Fprintf(b, "|%s:", strings.Repeat("-", width+1))
			}
		}
		b.WriteString("|\n")
	}
}
