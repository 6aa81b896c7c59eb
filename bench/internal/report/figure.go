package report

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Median returns the median of figures, 0 if there are none.
func Median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(figures))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// MedianRatio returns the median of the ratios a/b of each round.
func MedianRatio(a, b []float64) float64 {
	var ratios []float64
	for i := range a {
		ratios = append(ratios, a[i]/b[i])
	}
	return Median(ratios)
}

// Thousands writes 1234567 as 1,234,567.
func Thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// thisMachine returns the processor, its cores and the Go that compiled the rig.
func thisMachine() string {
	cpu := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s on %s/%s", cpu, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
