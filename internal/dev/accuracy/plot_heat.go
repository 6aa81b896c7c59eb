package main

import "fmt"

const (
	heatLeft  = 196.0
	heatTop   = 158.0
	heatCell  = 60.0
	heatRow   = 32.0
	heatRight = 52.0 // the last turned label leans over it
)

// heat draws a number of each contestant under each shape. paint gives the
// cell's text, its colour and the colour of the text.
func heat(cs []contestant, results []result, title, how string, paint func(r *result, i int) (text, fill, ink string)) *svg {
	width := heatLeft + heatCell*float64(len(results)) + heatRight
	height := heatTop + heatRow*float64(len(cs)) + 56
	s := newSVG(width, height, title, how, title+", by algorithm and by shape of traffic. The same numbers are in the tables.")
	for j := range results {
		x := heatLeft + heatCell*float64(j)
		s.text(x+heatCell/2-2, heatTop-10, results[j].shape.name, style{turn: -38})
	}
	for i, c := range cs {
		y := heatTop + heatRow*float64(i)
		s.text(heatLeft-12, y+heatRow/2+4, c.name, style{anchor: "end"})
		for j := range results {
			text, fill, on := paint(&results[j], i)
			x := heatLeft + heatCell*float64(j)
			s.rect(x+1, y+1, heatCell-2, heatRow-2, fill)
			s.text(x+heatCell/2, y+heatRow/2+4, text, style{fill: on, anchor: "middle"})
		}
	}
	return s
}

// scaleBar explains a ramp by its ends.
func (s *svg) scaleBar(x, y float64, r ramp, from, to string) float64 {
	const steps, step = 24, 4.0
	for i := range steps {
		s.rect(x+step*float64(i), y-10, step+0.5, 12, r.at(float64(i)/(steps-1)))
	}
	x += steps * step
	s.text(x+8, y, from+" … "+to, style{fill: muted})
	return x + 8 + 6.3*float64(len(from+to)+3) + 22
}

func plotMost(cs []contestant, results []result) string {
	s := heat(cs, results, "Most admitted in any window of 60 s",
		"In limits L. 1.00 is what the limit says; 2.00 is twice as much.",
		func(r *result, i int) (string, string, string) {
			most := r.most(i)
			text := fmt.Sprintf("%.2f", most)
			if most <= 1 {
				return text, calm, ink
			}
			return text, towardsMuch.at(most - 1), inkOn(most - 1)
		})
	y := heatTop + heatRow*float64(len(cs)) + 32
	x := s.key(heatLeft, y, calm, "within the limit")
	s.scaleBar(x, y, towardsMuch, "just over", "twice the limit")
	return s.done()
}

func plotAdmitted(cs []contestant, results []result) string {
	// Half as much again, or half as much, is the end of the scale.
	const end = 0.5
	s := heat(cs, results, "Admitted in all, relative to an exact log",
		"1.00 is as many requests as an exact log admits of the same traffic.",
		func(r *result, i int) (string, string, string) {
			off := r.relative(i) - 1
			text := fmt.Sprintf("%.2f", 1+off)
			switch {
			case text == "1.00":
				return text, calm, ink
			case off < 0:
				return text, towardsFew.at(-off / end), inkOn(-off / end)
			}
			return text, towardsMuch.at(off / end), inkOn(off / end)
		})
	y := heatTop + heatRow*float64(len(cs)) + 32
	x := s.key(heatLeft, y, calm, "as many")
	x = s.scaleBar(x, y, towardsFew, "a few less", "half or less")
	s.scaleBar(x, y, towardsMuch, "a few more", "1.5 times or more")
	return s.done()
}
