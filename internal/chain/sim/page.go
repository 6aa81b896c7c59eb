package sim

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// WriteHTML writes a page that needs nothing else: a table, and a plot for each subject of what
// was offered, what was admitted and what the limit is, over time.
func WriteHTML(w io.Writer, reports []*Report) error {
	var b strings.Builder
	b.WriteString(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tidegate sim</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;background:#fff;max-width:960px;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;border-bottom:1px solid #d5dbe0;text-align:right}
td:first-child,th:first-child{text-align:left}.broken{color:#c8452e}svg{width:100%;height:auto}
</style></head><body>
<h1>tidegate sim</h1>
`)
	for _, r := range reports {
		r.section(&b)
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) section(b *strings.Builder) {
	s := &r.Scenario
	fmt.Fprintf(b, "<h2>%s</h2>\n<p>%s</p>\n<table><tr>", html.EscapeString(s.Name), html.EscapeString(s.Describe()))
	for _, head := range Columns {
		fmt.Fprintf(b, "<th>%s</th>", head)
	}
	b.WriteString("</tr>\n")
	for _, row := range r.Rows {
		b.WriteString("<tr>")
		for _, cell := range row.Cells() {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(cell))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
	for _, v := range r.Violations {
		fmt.Fprintf(b, "<p class=broken>%s</p>\n", html.EscapeString(v))
	}
	for i := range r.Rows {
		r.plot(b, &r.Rows[i])
	}
}

// The frame of a plot, in pixels.
const (
	plotWidth, plotHeight = 900.0, 260.0
	plotLeft, plotTop     = 70.0, 30.0
	plotRight, plotBottom = 20.0, 40.0
)

// plot draws the rates of a row: offered as an area, admitted as a line, the limit dashed, and
// faults as bands behind them.
func (r *Report) plot(b *strings.Builder, row *Row) {
	s := &r.Scenario
	bin := s.Lasts.Seconds() / float64(len(row.Points))
	limit := row.Rate
	most := limit
	for _, p := range row.Points {
		most = max(most, float64(p.Offered)/bin)
	}
	most *= 1.05
	x := func(t time.Duration) float64 {
		return plotLeft + (plotWidth-plotLeft-plotRight)*min(1, t.Seconds()/s.Lasts.Seconds())
	}
	y := func(v float64) float64 { return plotTop + (plotHeight-plotTop-plotBottom)*(1-v/most) }
	line := func(of func(Point) int64) string {
		var path strings.Builder
		for i, p := range row.Points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x(time.Duration((float64(i)+0.5)*bin*1e9)), y(float64(of(p))/bin))
		}
		return path.String()
	}
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" font-family="system-ui, sans-serif" font-size="12"><title>%s</title>`+"\n", plotWidth, plotHeight, html.EscapeString(row.Name+": offered, admitted and limit over time"))
	for _, f := range s.Faults {
		from, to := x(f.At), x(f.At+f.For)
		fmt.Fprintf(b, `<rect x="%.1f" y="%g" width="%.1f" height="%g" fill="#f6e3df"><title>%s</title></rect>`+"\n", from, plotTop, max(1, to-from), plotHeight-plotTop-plotBottom, html.EscapeString(f.String()))
	}
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(b, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#d5dbe0"/><text x="%g" y="%.1f" text-anchor="end" fill="#5b6770">%s</text>`+"\n", plotLeft, y(v), plotWidth-plotRight, y(v), plotLeft-8, y(v)+4, short(v))
	}
	for i := range 6 {
		t := s.Lasts * time.Duration(i) / 5
		fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle" fill="#5b6770">%.3gs</text>`+"\n", x(t), plotHeight-plotBottom+18, t.Seconds())
	}
	base := y(0)
	fmt.Fprintf(b, `<path d="%sL%.1f %.1fL%.1f %.1fZ" fill="#cfe0d9" fill-opacity="0.6"/>`+"\n", line(func(p Point) int64 { return p.Offered }), x(s.Lasts), base, plotLeft, base)
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#22628c" stroke-width="1.5"/>`+"\n", line(func(p Point) int64 { return p.Admitted }))
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#c8452e" stroke-width="1"/>`+"\n", line(func(p Point) int64 { return p.Local }))
	fmt.Fprintf(b, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#1f2933" stroke-dasharray="5 4"/>`+"\n", plotLeft, y(limit), plotWidth-plotRight, y(limit))
	fmt.Fprintf(b, `<text x="%g" y="18" font-weight="600">%s, requests a second:</text><text x="%g" y="18" fill="#5b6770">offered (area)</text><text x="%g" y="18" fill="#22628c">admitted</text><text x="%g" y="18" fill="#c8452e">of these by nodes alone</text><text x="%g" y="18">limit (dashed)</text></svg>`+"\n",
		plotLeft, html.EscapeString(row.Name), 400.0, 500.0, 580.0, 740.0)
}

func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}
