package main

const (
	wrongLeft   = 190.0
	wrongTop    = 104.0
	wrongColumn = 122.0
	wrongRow    = 20.0
	wrongHead   = 30.0
	wrongGap    = 34.0 // between the bands
	wrongLength = 35.0 // pixels of the longest bar
	wrongEnd    = 50.0 // percent that the longest bar stands for
)

// plotWrong draws bars to the left for wrong refusals and to the right for
// wrong admissions, in two bands of shapes.
func plotWrong(cs []contestant, results []result) string {
	const columns = 7
	bands := (len(results) + columns - 1) / columns
	band := wrongHead + wrongRow*float64(len(cs)) + wrongGap
	width := wrongLeft + wrongColumn*columns + 20
	s := newSVG(width, wrongTop+band*float64(bands)-10, "Wrong decisions, in % of all requests",
		"To the left refused though the limit was not used up, to the right admitted though it was. Bars end at 50 %; the number goes on.",
		"Bars of wrong decisions, by algorithm and by shape of traffic. The same numbers are in the tables.")
	x := s.key(24, 82, tooFewBy, "refused wrongly")
	x = s.key(x, 82, tooFew, "by more than 5 % of the limit")
	x = s.key(x, 82, tooBit, "admitted wrongly")
	s.key(x, 82, tooMuch, "by more than 5 % of the limit")
	for b := range bands {
		top := wrongTop + band*float64(b)
		for i, c := range cs {
			s.text(wrongLeft-10, top+wrongHead+wrongRow*(float64(i)+0.5)+4, c.name, style{anchor: "end"})
		}
		for j := range min(columns, len(results)-b*columns) {
			s.wrongPanel(wrongLeft+wrongColumn*float64(j), top, &results[b*columns+j])
		}
	}
	return s.done()
}

// wrongPanel draws one shape.
func (s *svg) wrongPanel(left, top float64, r *result) {
	middle := left + wrongColumn/2
	s.text(middle, top+16, r.shape.name, style{size: 11.5, anchor: "middle", bold: true})
	rows := top + wrongHead
	s.rect(left+2, rows-4, wrongColumn-4, wrongRow*float64(len(r.scores))+8, "#f6f8f9")
	s.line(middle, rows-4, middle, rows+wrongRow*float64(len(r.scores))+4, muted, "")
	for i, sc := range r.scores {
		y := rows + wrongRow*float64(i)
		s.wrongBar(middle, y, -1, r.requests, sc.wrongDeny, sc.farDeny, tooFewBy, tooFew)
		s.wrongBar(middle, y, 1, r.requests, sc.wrongAllow, sc.farAllow, tooBit, tooMuch)
	}
}

// wrongBar draws one bar to the right, or to the left if side is -1: all wrong decisions in the
// light color, and over it, in the dark one, those far from the limit.
func (s *svg) wrongBar(middle, y, side float64, of, wrong, far int64, light, dark string) {
	if wrong == 0 {
		return
	}
	length := func(n int64) float64 { return wrongLength * min(100*share(n, of)/wrongEnd, 1) }
	bar := func(n int64, fill string) {
		if l := length(n); l > 0 {
			s.rect(middle+min(side*l, 0), y+4, l, wrongRow-8, fill)
		}
	}
	bar(wrong, light)
	bar(far, dark)
	anchor := "start"
	if side < 0 {
		anchor = "end"
	}
	s.text(middle+side*(length(wrong)+3), y+wrongRow/2+3.5, percentShort(wrong, of), style{size: 10, fill: muted, anchor: anchor})
}
