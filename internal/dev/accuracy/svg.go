package main

import (
	"fmt"
	"html"
	"strings"
)

// Every plot is a card with a background of its own, so that it reads the same
// on a light and on a dark page.
const (
	ink      = "#1f2933"
	muted    = "#5b6770"
	rule     = "#d5dbe0"
	paper    = "#ffffff"
	tooMuch  = "#c8452e" // admitted beyond the limit
	tooBit   = "#efb0a4" // the same, by little
	tooFew   = "#22628c" // refused below the limit
	tooFewBy = "#a3c6dc" // the same, by little
	calm     = "#e4eeea" // within the limit
	calmLine = "#4f8a75"
)

// svg is a picture being drawn. Lengths are in pixels, y grows downwards.
type svg struct {
	strings.Builder
}

// newSVG begins a card with a title, a line that says how to read it, and a
// description for those who cannot see it.
func newSVG(width, height float64, title, how, description string) *svg {
	s := &svg{}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">`+"\n",
		width, height, width, height)
	fmt.Fprintf(s, "<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(title), html.EscapeString(description))
	fmt.Fprintf(s, `<rect x="0.5" y="0.5" width="%g" height="%g" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, paper, rule)
	s.text(24, 34, title, style{size: 17, bold: true})
	s.text(24, 56, how, style{size: 12.5, fill: muted})
	return s
}

// style is how text is set; its zero value is 12 px in ink, from its left end.
type style struct {
	size   float64
	fill   string
	anchor string // start, middle or end
	bold   bool
	turn   float64 // degrees
}

func (s *svg) text(x, y float64, text string, st style) {
	if st.size == 0 {
		st.size = 12
	}
	if st.fill == "" {
		st.fill = ink
	}
	fmt.Fprintf(s, `<text x="%.5g" y="%.5g" font-size="%g" fill="%s"`, x, y, st.size, st.fill)
	if st.anchor != "" {
		fmt.Fprintf(s, ` text-anchor="%s"`, st.anchor)
	}
	if st.bold {
		s.WriteString(` font-weight="600"`)
	}
	if st.turn != 0 {
		fmt.Fprintf(s, ` transform="rotate(%g %.5g %.5g)"`, st.turn, x, y)
	}
	fmt.Fprintf(s, ">%s</text>\n", html.EscapeString(text))
}

func (s *svg) rect(x, y, width, height float64, fill string) {
	fmt.Fprintf(s, `<rect x="%.5g" y="%.5g" width="%.5g" height="%.5g" fill="%s"/>`+"\n", x, y, width, height, fill)
}

func (s *svg) line(x1, y1, x2, y2 float64, stroke, dash string) {
	fmt.Fprintf(s, `<line x1="%.5g" y1="%.5g" x2="%.5g" y2="%.5g" stroke="%s"`, x1, y1, x2, y2, stroke)
	if dash != "" {
		fmt.Fprintf(s, ` stroke-dasharray="%s"`, dash)
	}
	s.WriteString("/>\n")
}

// path draws SVG path data.
func (s *svg) path(data, fill, stroke string) {
	fmt.Fprintf(s, `<path d="%s" fill="%s" stroke="%s" stroke-width="1.5" stroke-linejoin="round"/>`+"\n", data, fill, stroke)
}

// key explains a colour and returns where the next one goes.
func (s *svg) key(x, y float64, fill, text string) float64 {
	s.rect(x, y-10, 12, 12, fill)
	s.text(x+18, y, text, style{size: 12, fill: muted})
	return x + 18 + 6.3*float64(len([]rune(text))) + 22
}

func (s *svg) done() string {
	s.WriteString("</svg>\n")
	return s.String()
}
