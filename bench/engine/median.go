package main

import "slices"

// median of no figures is 0.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(figures))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
