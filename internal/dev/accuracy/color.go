package main

import "fmt"

// ramp goes through its colours, given as 0xRRGGBB, as x goes from 0 to 1.
type ramp []int

// towardsMuch is for values above the desired one, towardsFew for values below it.
var (
	towardsMuch = ramp{0xfdf0e3, 0xf2a65a, 0xc8452e}
	towardsFew  = ramp{0xe9f2f8, 0x7fb0cf, 0x22628c}
)

func (r ramp) at(x float64) string {
	x = min(max(x, 0), 1) * float64(len(r)-1)
	i := min(int(x), len(r)-2)
	part := x - float64(i)
	mix := func(shift int) int {
		a, b := r[i]>>shift&255, r[i+1]>>shift&255
		return a + int(part*float64(b-a))
	}
	return fmt.Sprintf("#%02x%02x%02x", mix(16), mix(8), mix(0))
}

// inkOn returns the colour of text on the colour of a ramp at x; ramps end dark.
func inkOn(x float64) string {
	if x > 0.7 {
		return paper
	}
	return ink
}
