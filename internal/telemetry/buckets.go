package telemetry

import "math"

// decades returns 1, 2.5 and 5 times the powers of ten from low to high, which must be powers of
// ten.
func decades(low, high float64) []float64 {
	var all []float64
	for e := int(math.Round(math.Log10(low))); e < int(math.Round(math.Log10(high))); e++ {
		for _, digits := range []float64{10, 25, 50} { // quotients of integers have short decimal forms
			all = append(all, scale(digits, e-1))
		}
	}
	return append(all, scale(10, int(math.Round(math.Log10(high)))-1))
}

func scale(n float64, e int) float64 {
	if e < 0 {
		return n / math.Pow10(-e)
	}
	return n * math.Pow10(e)
}
