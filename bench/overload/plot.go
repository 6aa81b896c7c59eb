package main

import (
	"fmt"
	"html"
	"strings"
	"time"
)

var colours = []string{"#c8452e", "#22628c", "#8a949c"} // of the classes

const (
	ink, muted, lines = "#1f2933", "#5b6770", "#d5dbe0"
	panelWidth        = 300.0
	panelHeight       = 130.0
)

// panel is where one graph lies.
type panel struct {
	left, top float64
	most      float64 // of the y axis
	lasts     float64 // seconds
}

func (p panel) x(second float64) float64 { return p.left + panelWidth*second/p.lasts }
func (p panel) y(value float64) float64  { return p.top + panelHeight*(1-min(value/p.most, 1)) }

// plot draws two graphs for each run: what is served of each class, and how long the critical ones take.
func plot(runs []*run, phases []phase) string {
	var b strings.Builder
	const title = "A service that is asked for five times what it can do"
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060 470" width="1060" height="470" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">`+"\n")
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n", title, html.EscapeString(about(runs)))
	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="1059" height="469" rx="8" fill="#ffffff" stroke="%s"/>`+"\n", lines)
	text(&b, 24, 34, 17, ink, "", title)
	x := 24.0
	for i, c := range classes {
		fmt.Fprintf(&b, `<rect x="%g" y="48" width="12" height="12" fill="%s"/>`+"\n", x, colours[i])
		text(&b, x+18, 58, 12, muted, "", c.name)
		x += 100
	}
	text(&b, x, 58, 12, muted, "", "grey: five times the capacity is asked for")
	var lasts time.Duration
	for _, p := range phases {
		lasts += p.lasts
	}
	for i, r := range runs {
		left := 70 + float64(i)*(panelWidth+34)
		text(&b, left, 94, 13, ink, "", r.name)
		up := panel{left, 106, 100, lasts.Seconds()}
		up.draw(&b, phases, "served, %", i == 0, []float64{0, 50, 100})
		for c := range classes {
			up.line(&b, colours[c], r, func(from, to time.Duration) (float64, bool) {
				s := r.load.between(c, from, to)
				return 100 * float64(servedOf(s)) / float64(max(1, len(s))), len(s) > 0
			})
		}
		down := panel{left, 290, 1000, lasts.Seconds()}
		down.draw(&b, phases, "critical: p99, ms", i == 0, []float64{0, 500, 1000})
		down.line(&b, colours[0], r, func(from, to time.Duration) (float64, bool) {
			s := r.load.between(0, from, to)
			return float64(p99(s)) / float64(time.Millisecond), servedOf(s) > 0
		})
	}
	text(&b, 530, 456, 12, muted, "middle", "time, seconds")
	b.WriteString("</svg>\n")
	return b.String()
}

func about(runs []*run) string {
	var all []string
	for _, r := range runs {
		all = append(all, r.String())
	}
	return strings.Join(all, " ")
}

func text(b *strings.Builder, x, y, size float64, fill, anchor, s string) {
	if anchor != "" {
		anchor = ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(b, `<text x="%.5g" y="%.5g" font-size="%g" fill="%s"%s>%s</text>`+"\n", x, y, size, fill, anchor, html.EscapeString(s))
}

func (p panel) draw(b *strings.Builder, phases []phase, name string, labelled bool, marks []float64) {
	at := 0.0
	for _, ph := range phases {
		if ph.times > 1 {
			fmt.Fprintf(b, `<rect x="%.5g" y="%.5g" width="%.5g" height="%g" fill="#f1f3f5"/>`+"\n", p.x(at), p.top, p.x(at+ph.lasts.Seconds())-p.x(at), panelHeight)
		}
		at += ph.lasts.Seconds()
	}
	for _, m := range marks {
		fmt.Fprintf(b, `<line x1="%.5g" y1="%.5g" x2="%.5g" y2="%.5g" stroke="%s"/>`+"\n", p.left, p.y(m), p.left+panelWidth, p.y(m), lines)
		if labelled {
			text(b, p.left-8, p.y(m)+4, 11, muted, "end", fmt.Sprint(m))
		}
	}
	if labelled {
		fmt.Fprintf(b, `<text x="24" y="%.5g" font-size="12" fill="%s" text-anchor="middle" transform="rotate(-90 24 %.5g)">%s</text>`+"\n", p.top+panelHeight/2, muted, p.top+panelHeight/2, html.EscapeString(name))
	}
	for s := 0.0; s <= p.lasts; s += 20 {
		text(b, p.x(s), p.top+panelHeight+16, 11, muted, "middle", fmt.Sprint(s))
	}
}

// line draws a value for each second that has one.
func (p panel) line(b *strings.Builder, colour string, r *run, value func(from, to time.Duration) (float64, bool)) {
	var path strings.Builder
	for s := range int(p.lasts) {
		v, ok := value(time.Duration(s)*time.Second, time.Duration(s+1)*time.Second)
		if !ok {
			continue
		}
		verb := "L"
		if path.Len() == 0 {
			verb = "M"
		}
		fmt.Fprintf(&path, "%s%.5g %.5g", verb, p.x(float64(s)+0.5), p.y(v))
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-linejoin="round"/>`+"\n", path.String(), colour)
}
