package main

import (
	"fmt"
	"strings"
)

// frame is where a panel lies and which values its axes show.
type frame struct {
	left, top, width, height float64
	from, to                 float64 // seconds
	most                     float64 // events
}

func (f frame) x(second float64) float64 { return f.left + f.width*(second-f.from)/(f.to-f.from) }
func (f frame) y(count float64) float64  { return f.top + f.height*(1-count/f.most) }

// plotTimeline draws a panel per algorithm, so that lines at the same height
// do not hide one another.
func plotTimeline(a attack) string {
	shown := []string{"fixed", "token", "sliding", "sub 60", "ceiling 60", "log"}
	byShort := make(map[string]contestant)
	for _, c := range contestants() {
		byShort[c.short] = c
	}
	const columns, width, height = 3, 300.0, 148.0
	s := newSVG(1060, 542, a.title, a.how, a.about)
	x := s.key(62, 82, calm, "within the limit")
	s.key(x, 82, tooMuch, "above it")
	for i, short := range shown {
		c := byShort[short]
		f := frame{
			left: 62 + float64(i%columns)*(width+34), top: 130 + float64(i/columns)*(height+70),
			width: width, height: height, from: attackFrom, to: attackEnd, most: 210,
		}
		s.text(f.left, f.top-10, c.name, style{size: 13, bold: true})
		s.axes(f, i%columns == 0)
		points, most := a.timeline(c)
		s.area(f, points)
		s.text(f.left+f.width, f.top-10, fmt.Sprintf("at most %d", most), style{fill: muted, anchor: "end"})
	}
	s.text(530, 528, "time, minutes", style{anchor: "middle", fill: muted})
	s.text(20, 130+height+35, "admitted in the last 60 s", style{anchor: "middle", fill: muted, turn: -90})
	return s.done()
}

// axes draws the axes and the grid of a panel; numbers says whether the vertical axis is labelled.
func (s *svg) axes(f frame, numbers bool) {
	for _, count := range []float64{0, 50, 100, 150, 200} {
		s.line(f.left, f.y(count), f.left+f.width, f.y(count), rule, "")
		if numbers {
			s.text(f.left-8, f.y(count)+4, fmt.Sprint(count), style{size: 11, fill: muted, anchor: "end"})
		}
	}
	for second := f.from + 15; second <= f.to; second += 30 {
		label := fmt.Sprintf("%d:%02d", int(second)/60, int(second)%60)
		s.line(f.x(second), f.y(0), f.x(second), f.y(0)+4, muted, "")
		s.text(f.x(second), f.y(0)+17, label, style{size: 11, fill: muted, anchor: "middle"})
	}
	s.line(f.x(attackTurn), f.y(0), f.x(attackTurn), f.y(f.most), muted, "3 3")
}

// area draws what was admitted as a filled area, in another colour above the limit.
func (s *svg) area(f frame, points []point) {
	s.path(f.areaPath(points, 0, events), calm, "none")
	s.path(f.areaPath(points, events, 1e9), tooMuch, "none")
	s.path(f.stepPath(points, 0, 1e9), "none", ink)
	s.line(f.left, f.y(events), f.left+f.width, f.y(events), calmLine, "")
}

// stepPath returns the SVG path of the counts as steps, clamped to between low and high.
func (f frame) stepPath(points []point, low, high float64) string {
	var b strings.Builder
	last := -1.0
	for i, p := range points {
		count := min(max(float64(p.count), low), high)
		if i > 0 && count == last && i < len(points)-1 {
			continue
		}
		verb := "L"
		if i == 0 {
			verb = "M"
		} else {
			fmt.Fprintf(&b, "H%.5g", f.x(p.second))
		}
		fmt.Fprintf(&b, "%s%.5g %.5g", verb, f.x(p.second), f.y(count))
		last = count
	}
	return b.String()
}

// areaPath returns the SVG path around the area between low and the counts, up to high.
func (f frame) areaPath(points []point, low, high float64) string {
	return fmt.Sprintf("%sV%.5gH%.5gZ", f.stepPath(points, low, high), f.y(low), f.x(points[0].second))
}
